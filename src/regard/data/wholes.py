"""Which windows are of one example: shards hold windows, and a text that is too long for one has several in a row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.shards import Writing

Ids = NDArray[np.int64]


class WholesWriter:
    """Writes down how many windows each example has, example by example.

    Args:
        folder: where the file goes.
        name: of the file.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._file, self._windows = Writing(folder / name), 0
        self._file.write(np.zeros(1, dtype="<i8"))

    def add(self, windows: Sequence[int]) -> None:
        """Append examples of so many windows."""
        begins = self._windows + np.cumsum(windows, dtype=np.int64)
        self._file.write(begins.astype("<i8"))
        self._windows = int(begins[-1]) if len(begins) else self._windows

    def close(self) -> tuple[str, dict[str, Any]]:
        """Finish the file: its name, and its entries for the index."""
        return self._file.name, {self._file.name: self._file.close()}

    def release(self) -> None:
        """Let go of the file, finished or not."""
        self._file.release()


class Wholes:
    """The examples of one side: of example *b* the windows from ``first_B[b]`` on, ``windows_B[b]`` of them."""

    def __init__(self, path: Path) -> None:
        begins = np.fromfile(path, dtype="<i8").astype(np.int64)
        self.first_B: Ids = begins[:-1]
        self.windows_B: Ids = np.diff(begins)
        self.count = len(self.first_B)

    def windows(self, number: int) -> Ids:
        """The windows of one example, by their numbers."""
        return np.arange(self.first_B[number], self.first_B[number] + self.windows_B[number])

    def counted(self, what: str) -> str:
        """How many examples there are, and how many windows where some have several; for people."""
        windows = int(self.windows_B.sum())
        return f"{self.count:,} {what}" + (f" ({windows:,} windows)" if windows > self.count else "")
