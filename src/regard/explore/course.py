"""The course of a training, read off its log while it is written: losses, rates, gradients, scores, sample outputs."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError

LOG = Path("training") / "metrics.jsonl"
COLUMNS = ("step", "seconds", "loss", "rate", "tokens_per_second", "norm")
"""What is followed of every update."""
CHUNK = 1 << 24
"""Bytes read at once."""
SAMPLES = 2_000
"""Sample outputs that are kept, the newest."""

Values = dict[str, Any]


class Course:
    """Follows ``training/metrics.jsonl`` of a model folder; a line that is not whole yet is left for the next time.

    Args:
        folder: of the model.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOG
        self._forget()

    def _forget(self) -> None:
        self._place, self._rest = 0, b""
        self.planned: int | None = None
        self.columns: dict[str, list[float]] = {name: [] for name in COLUMNS}
        self.norms: list[Values] = []
        self.valid: list[Values] = []
        self.samples: deque[Values] = deque(maxlen=SAMPLES)

    def advance(self) -> bool:
        """Read what was written since the last time; whether anything was.

        Raises:
            RegardError: there is no log.
        """
        try:
            with self.path.open("rb") as file:
                if file.seek(0, 2) < self._place:  # a run went on from an earlier checkpoint, and its log was cut
                    self._forget()
                file.seek(self._place)
                found = False
                while some := file.read(CHUNK):
                    self._place += len(some)
                    *lines, self._rest = (self._rest + some).split(b"\n")
                    for line in lines:
                        self._take(line)
                    found = found or bool(lines)
        except OSError as error:
            raise RegardError(f"the log of the training cannot be read: {error.strerror}", str(self.path)) from None
        return found

    def _take(self, line: bytes) -> None:
        try:
            values = json.loads(line)
        except ValueError:
            return  # a power cut may leave half a line between whole ones
        if not isinstance(values, dict):
            return
        kind = values.get("kind")
        if kind in ("start", "planned"):
            self.planned = values.get("steps")
        elif kind == "step":
            for name, column in self.columns.items():
                value = values.get(name)
                column.append(float("nan") if value is None else float(value))
            if "norms" in values:
                self.norms.append({"step": values.get("step"), "norms": values["norms"]})
        elif kind == "valid":
            self.valid.append({name: value for name, value in values.items() if name != "kind"})
        elif kind == "sample":
            self.samples.append({name: value for name, value in values.items() if name != "kind"})

    def thinned(self, points: int) -> dict[str, NDArray[np.float64]]:
        """The columns as means of equally many updates, in at most so many points; what is not known is left out."""
        arrays = {name: np.array(column, np.float64) for name, column in self.columns.items()}
        count = len(arrays["step"])
        width = max(1, -(-count // points))
        edges = np.arange(0, count, width)
        return {name: _means(array, edges) for name, array in arrays.items()}


def _means(values: NDArray[np.float64], edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean of the finite numbers between each edge and the next; not a number where there is none."""
    if not len(edges):
        return np.zeros(0)
    finite = np.isfinite(values)
    sums = np.add.reduceat(np.where(finite, values, 0.0), edges)
    counts = np.add.reduceat(finite.astype(np.float64), edges)
    return np.divide(sums, counts, out=np.full(len(edges), np.nan), where=counts > 0)
