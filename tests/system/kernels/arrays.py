"""The compiled kernels, and arrays that tests of them are given."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from regard.system.kernels.packing import Precision, pack

native = pytest.importorskip(
    "regard.system.kernels._native", reason="no compiler was there when Regard was installed", exc_type=ImportError
)
SHAPES = [(1, 1, 1), (2, 3, 5), (3, 7, 33), (4, 16, 31), (5, 64, 32), (6, 5, 96), (12, 33, 65)]
SHAPES += [(13, 8, 40), (75, 22, 70)]
"""Of products: rows, inner size and columns, about the edges of tiles, panels and blocks."""


def draw(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    """Normally distributed numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def apart(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same rows, further apart in memory, with numbers between them that are none."""
    room = np.full((len(x), x.shape[1] + 5), np.nan, np.float32)
    room[:, : x.shape[1]] = x
    return room[:, : x.shape[1]]


def halved(x: NDArray[np.float32]) -> NDArray[np.uint16]:
    """bf16 as its bits: the upper halves, rounded to the nearest, ties to even."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def widened(halves: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Floats of such bits."""
    return (halves.astype(np.uint32) << 16).view(np.float32)


def ints(values: Any) -> NDArray[np.int32]:
    """Whole numbers, as kernels take them."""
    return np.asarray(values, np.int32)


def best(hidden: Any, weight: Any, k: int, without: Iterable[int] = (), precision: Precision = "fp32") -> Any:
    """The k best ids and scores of each row, and the logarithm of the sum, by the kernel."""
    rows, pieces = len(hidden), len(weight)
    ids, score, log_sum = np.empty((rows, k), np.int32), np.empty((rows, k), np.float32), np.empty(rows)
    packed = pack(weight, None, precision)
    native.vocabulary(hidden, packed, pieces, masked(pieces, without), ids, score, log_sum)
    return ids, score, log_sum


def masked(pieces: int, without: Iterable[int]) -> NDArray[np.uint8] | None:
    """Which pieces are left out, as kernels take it."""
    mask = np.zeros(pieces, np.uint8)
    mask[list(without)] = 1
    return mask if mask.any() else None
