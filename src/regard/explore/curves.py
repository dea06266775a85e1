"""Numbers that are noted at some steps, and their means where there are more than are to be shown."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

UNKNOWN = float("nan")


class Curves:
    """Columns of equal length; what a row says nothing of is not a number.

    Args:
        names: of the columns that are there from the start; others begin when a row has them.
        most: columns there may be; what would be another is left out.
    """

    def __init__(self, names: Iterable[str] = (), most: int = 256) -> None:
        self._most = most
        self.steps = array("d")
        self.columns = {name: array("d") for name in names}

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """A row."""
        if not values.keys() <= self.columns.keys():
            self._begin(values)
        for name, column in self.columns.items():
            column.append(values.get(name, UNKNOWN))
        self.steps.append(step)

    def _begin(self, names: Iterable[str]) -> None:
        """Columns of the names that have none yet."""
        for name in names:
            if name not in self.columns and len(self.columns) < self._most:
                self.columns[name] = array("d", [UNKNOWN]) * len(self.steps)

    def thinned(self, points: int) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """Steps and columns as means of equally many rows, in at most so many points; what is not known is left out."""
        count = len(self.steps)
        edges = np.arange(0, count, max(1, -(-count // points)))
        return _means(self.steps, edges), {name: _means(column, edges) for name, column in self.columns.items()}


def _means(column: array[float], edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean of the finite numbers between each edge and the next; not a number where there is none."""
    if not len(edges):
        return np.zeros(0)
    values = np.array(column)
    finite = np.isfinite(values)
    sums = np.add.reduceat(np.where(finite, values, 0.0), edges)
    counts = np.add.reduceat(finite.astype(np.float64), edges)
    return np.divide(sums, counts, out=np.full(len(edges), np.nan), where=counts > 0)
