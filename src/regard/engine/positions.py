"""Positional encodings as the kernels take them: vectors to add, a bias by distance, or angles to turn by.

Each is the equation of ``nn/positions``, in NumPy; tables grow when a longer text comes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from regard.engine.layers import Floats, Ids

Rows = Callable[[int], Floats]
FIRST = 128
"""Positions that a table is made for at first."""


class Table:
    """Rows that a function computes for the first so many positions, kept and doubled."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._table = rows(FIRST)
        self._size = FIRST

    def __call__(self, longest: int) -> Floats:
        """The table for ``longest`` positions at least."""
        if longest > self._size:
            self._size = max(longest, 2 * self._size)
            self._table = self._rows(self._size)
        return self._table


def sinusoids(d_model: int) -> Table:
    """``PE(pos, 2i) = sin(pos / 10000^(2i / d_model))``, ``PE(pos, 2i+1) = cos(…)`` [Vaswani17 §3.5]."""

    def rows(length: int) -> Floats:
        angle = np.arange(length)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
        return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(length, -1)[:, :d_model].astype(np.float32)

    return Table(rows)


def timing_signal(d_model: int, first: int) -> Table:
    """Sines, then cosines, of ``pos / 10000^(i / (d_model/2 - 1))``; ``pos`` begins at ``first`` [Vaswani18]."""
    half = d_model // 2

    def rows(length: int) -> Floats:
        angle = np.arange(first, first + length)[:, None] / 10000 ** (np.arange(half) / max(1, half - 1))
        nothing = np.zeros((length, d_model % 2))
        return np.concatenate([np.sin(angle), np.cos(angle), nothing], axis=1).astype(np.float32)

    return Table(rows)


def learned(weight_SD: Floats) -> Rows:
    """One learned vector a position; a sequence that is longer than the table raises a ``ValueError``."""

    def rows(longest: int) -> Floats:
        if longest > len(weight_SD):
            raise ValueError(f"a sequence of {longest} tokens is longer than the {len(weight_SD)} learned positions")
        return weight_SD

    return rows


def linear_bias(heads: int) -> Table:
    """``-m_h · |distance|``, ``m_h = 2^(-8h / heads)`` [Press22 §3]; distance zero in the middle of a row."""
    power = 2 ** (heads.bit_length() - 1)
    first = [2 ** (-8 * (head + 1) / power) for head in range(power)]
    slopes = first + [2 ** (-4 * (head + 1) / power) for head in range(0, 2 * (heads - power), 2)]

    def rows(longest: int) -> Floats:
        distance = np.abs(np.arange(-longest, longest + 1, dtype=np.float32))
        return -np.asarray(slopes, np.float32)[:, None] * distance

    return Table(rows)


def relative_bias(weight_CH: Floats, distance: int, two_way: bool) -> Table:
    """A learned number for each head and bucket of distances [Raffel20 §2.1]; distance zero in the middle of a row."""

    def rows(longest: int) -> Floats:
        ahead = np.arange(-longest, longest + 1)
        return np.ascontiguousarray(weight_CH[bucket(ahead, len(weight_CH), distance, two_way)].T)

    return Table(rows)


def bucket(ahead: Ids, count: int, distance: int, two_way: bool) -> Ids:
    """The bucket of each distance, of key behind query; borders are computed in float32, as there."""
    first = np.zeros_like(ahead)
    if two_way:
        count //= 2
        first, far = count * (ahead > 0), np.abs(ahead)
    else:
        far = np.maximum(-ahead, 0)
    exact = count // 2
    steps = np.log(np.maximum(far, 1).astype(np.float32) / np.float32(exact)) / np.float32(math.log(distance / exact))
    rough = np.minimum(exact + (steps * np.float32(count - exact)).astype(np.int64), count - 1)
    return np.asarray(first + np.where(far < exact, far, rough))


def rotary(size: int, base: float, scaling: float) -> tuple[Table, Table]:
    """Cosines and sines of the angles by which queries and keys are turned [Su24 §3.4.2]."""

    def angles(length: int) -> NDArray[np.float64]:
        entry = np.arange(0, size, 2) / size
        return np.asarray(np.arange(length)[:, None] / scaling * base**-entry)

    return (
        Table(lambda length: np.cos(angles(length)).astype(np.float32)),
        Table(lambda length: np.sin(angles(length)).astype(np.float32)),
    )


class PositionArrays(TypedDict):
    """Arrays of positions, by the names that a program has for them."""

    positions: Floats | None
    bias: Floats | None
    cos: Floats | None
    sin: Floats | None


@dataclass(frozen=True)
class Positions:
    """What a pass needs of positions, each kind one of these: from the longest length to a table of this or more."""

    added: Rows | None = None
    """A vector to add for each position."""
    bias: Rows | None = None
    """For each head the addend of scores by distance, which is zero in the middle of a row."""
    turned: tuple[Rows, Rows] | None = None
    """Cosines and sines of the angles to turn by."""
    most: int | None = None
    """Positions there are; None: any number."""

    def room(self, steps: int, behind: int) -> int:
        """As many of ``steps`` further positions as there are behind so many."""
        return steps if self.most is None else max(0, min(steps, self.most - behind))

    def tables(self, longest: int) -> PositionArrays:
        """The arrays, by the names that a program has for them; None where there is none."""
        kinds = self.added, self.bias, *(self.turned or (None, None))
        added, bias, cos, sin = (None if rows is None else rows(longest) for rows in kinds)
        return {"positions": added, "bias": bias, "cos": cos, "sin": sin}
