"""Parser for the lines of a metrics log, tolerant of damaged ones; curves downsampled for plotting.

Logs may be damaged by power cuts, full disks or manual edits, so every value is validated.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.text.tokenizers.byte_pieces import replace_surrogates

LARGEST = float(np.finfo(np.float32).max)
STEPS = 2**53
"""Largest step that a page handles."""
NAME, TEXT = 60, 1000
"""Most characters of a name, and of a sample's text."""
SCORES = 32
"""Most scores of one validation."""
NUMBERS = (float, int)
"""Types of JSON numbers; booleans are excluded."""
TEXTS = ("source", "reference", "hypothesis")

Values = dict[str, Any]


def parse_line(line: bytes) -> Values | None:
    """The object in a line; ``None`` if invalid, since a power cut may leave half a line between complete ones."""
    try:
        values = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def parse_step(value: Any) -> int | None:
    """A step number; ``None`` if invalid."""
    return value if type(value) is int and 0 <= value <= STEPS else None


def parse_number(value: Any) -> float:
    """A number to plot; NaN if invalid."""
    if type(value) in NUMBERS and -LARGEST <= value <= LARGEST:
        return float(value)
    return UNKNOWN


def parse_numbers(values: Any) -> dict[str, float]:
    """The valid numbers of an object by name."""
    return {name: found for name, value in _valid_items(values) if isfinite(found := parse_number(value))}


def parse_validation(values: Values) -> Values | None:
    """Step, loss and scores of a validation; ``None`` without a step or a loss."""
    step, found = parse_step(values.get("step")), dict(list(parse_numbers(values).items())[:SCORES])
    if step is None or "loss" not in found:
        return None
    return {**found, "step": step, "best": values.get("best") is True}


def parse_sample(values: Values) -> Values | None:
    """A sample output and its source, truncated; ``None`` if one of the texts is missing."""
    step, texts = parse_step(values.get("step")), [values.get(name) for name in TEXTS]
    if step is None or not all(isinstance(text, str) for text in texts):
        return None
    return {"step": step, **{name: _shorten(text) for name, text in zip(TEXTS, texts, strict=True)}}


def _valid_items(values: Any) -> Iterator[tuple[str, Any]]:
    """The values whose name has a reasonable length."""
    if isinstance(values, dict):
        yield from ((replace_surrogates(name), value) for name, value in values.items() if len(name) <= NAME)


def _shorten(text: str | None) -> str:
    text = replace_surrogates(text or "")
    return text if len(text) <= TEXT else text[:TEXT] + "…"


UNKNOWN = float("nan")


class Curves:
    """Columns of equal length; missing values are NaN.

    Args:
        names: of the columns that are there from the start; others begin when a row has them.
        most: columns there may be; what would be another is left out.
    """

    def __init__(self, names: Iterable[str] = (), most: int = 256) -> None:
        self._most = most
        self.steps = array("d")
        self.columns = {name: array("d") for name in names}

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Append a row."""
        if not values.keys() <= self.columns.keys():
            self._begin(values)
        for name, column in self.columns.items():
            column.append(values.get(name, UNKNOWN))
        self.steps.append(step)

    def _begin(self, names: Iterable[str]) -> None:
        """Add columns for new names."""
        for name in names:
            if name not in self.columns and len(self.columns) < self._most:
                self.columns[name] = array("d", [UNKNOWN]) * len(self.steps)

    def downsample(self, points: int) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """Steps and columns averaged over equal groups of rows, at most ``points``; missing values are ignored."""
        count = len(self.steps)
        edges = np.arange(0, count, max(1, -(-count // points)))
        return _means(self.steps, edges), {name: _means(column, edges) for name, column in self.columns.items()}


def _means(column: array[float], edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean of the finite numbers between consecutive edges; NaN if there is none."""
    if not len(edges):
        return np.zeros(0)
    values = np.array(column)
    finite = np.isfinite(values)
    sums = np.add.reduceat(np.where(finite, values, 0.0), edges)
    counts = np.add.reduceat(finite.astype(np.float64), edges)
    return np.divide(sums, counts, out=np.full(len(edges), np.nan), where=counts > 0)
