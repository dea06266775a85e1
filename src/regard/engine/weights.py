"""The weights of a model file, mapped into memory: what is read of it is what is looked at."""

from __future__ import annotations

import math
import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.config.weights import infinite_weight, read_header, wrong_weight, wrong_weights
from regard.system.errors import RegardError

Floats = NDArray[np.float32]


class WeightFile:
    """A ``.safetensors`` file; every tensor that is asked for is checked before it is read.

    Raises:
        RegardError: the file is missing, broken or newer than this Regard.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._header = read_header(path)
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._bytes = np.frombuffer(self._map, np.uint8)
        self._begin = 8 + int.from_bytes(self._bytes[:8].tobytes(), "little")
        self._taken: dict[str, tuple[int, ...]] = {}

    def take(self, name: str, *shape: int) -> Floats:
        """A tensor, as a view of the file; a copy where numbers of four bytes do not lie at multiples of four.

        Raises:
            RegardError: it is not there, or of another type or shape, or lies outside of the file.
        """
        self._taken[name] = shape
        self._release()
        if name not in self._header:
            raise RegardError(f"lacks {name!r}, which the recipe's model has", str(self.path))
        if wrong := wrong_weight(self._header, name, shape):
            raise RegardError(wrong, str(self.path))
        begin, end = self._place(self._header[name], 4 * math.prod(shape))
        return np.require(self._bytes[begin:end].view(np.float32).reshape(shape), requirements="A")

    def take_finite(self, name: str, *shape: int) -> Floats:
        """The same, read once to see that its numbers are finite.

        Raises:
            RegardError: as :meth:`take`, or one is not.
        """
        found = self.take(name, *shape)
        with np.errstate(all="ignore"):  # a sum may leave float32 where no number does
            finite = np.isfinite(found.sum()) or np.isfinite(found).all()
        if not finite:
            raise RegardError(infinite_weight(name), str(self.path))
        return found

    def refuse_surplus(self) -> None:
        """Refuse a file with tensors that nothing has taken.

        Raises:
            RegardError: it names the first.
        """
        self._release()
        if wrong := wrong_weights(self._header, self._taken):
            raise RegardError(wrong, str(self.path))

    def _release(self) -> None:
        """Give back the memory of what was read, which most are done with; whoever is not reads it again unnoticed."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def _place(self, entry: dict[str, Any], size: int) -> tuple[int, int]:
        match entry.get("data_offsets"):
            case [int(begin), int(end)] if begin >= 0 and begin % 4 == 0 and end - begin == size:
                begin, end = self._begin + begin, self._begin + end
                if end <= len(self._bytes):
                    return begin, end
        raise RegardError("is broken: a tensor lies outside of the file", str(self.path))
