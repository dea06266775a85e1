"""Keys and values of a search: of the rows' own tokens, found by ancestor tables, and of the sentences they read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regard.kernels.packing import aligned_array

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


ROOM = 32
"""Tokens that a row's ancestors have room for at first; it doubles."""


class Past:
    """Keys and values of tokens by layer, ``past_LXE``; a place that no row names any more is written again.

    Args:
        layers: of the decoder.
        size: entries of a token's keys and values in a layer.
        room: places at first; it grows by half where three quarters of them are named.
    """

    def __init__(self, layers: int, size: int, room: int = 64) -> None:
        self.past_LXE = aligned_array((layers, room, size))
        self._free = np.arange(room, dtype=np.int32)

    def take(self, count: int, ancestors_NS: Ints, lengths_N: Ints) -> Ints:
        """Places for ``count`` new tokens; those that the rows name are kept, with what is there."""
        if len(self._free) < count:
            self._sweep(count, ancestors_NS, lengths_N)
        taken, self._free = self._free[:count], self._free[count:]
        return taken

    def extend(self, ancestors_NS: Ints, lengths_N: Ints) -> tuple[Ints, Ints]:
        """The ancestors with a place for one more token of each row, and these places."""
        count, width = ancestors_NS.shape
        if int(lengths_N.max(initial=0)) >= width:
            ancestors_NS = np.pad(ancestors_NS, ((0, 0), (0, width)))
        taken_N = self.take(count, ancestors_NS, lengths_N)
        ancestors_NS[np.arange(count), lengths_N] = taken_N
        return ancestors_NS, taken_N

    def _sweep(self, count: int, ancestors_NS: Ints, lengths_N: Ints) -> None:
        layers, room, size = self.past_LXE.shape
        named = np.zeros(room, np.bool_)
        named[ancestors_NS[np.arange(ancestors_NS.shape[1]) < lengths_N[:, None]]] = True
        wanted = (int(named.sum()) + count) * 4 // 3
        if wanted > room:
            wider_LXE = aligned_array((layers, wanted * 3 // 2, size))
            wider_LXE[:, :room] = self.past_LXE
            self.past_LXE = wider_LXE
            named = np.append(named, np.zeros(wanted * 3 // 2 - room, np.bool_))
        self._free = np.flatnonzero(~named).astype(np.int32)


class Memory:
    """Keys and values of sentences by layer, end to end: ``memory_LSE``; what no sentence uses is dropped at times.

    Args:
        layers: of the decoder.
        size: entries of a token's keys and values in a layer.
    """

    def __init__(self, layers: int, size: int) -> None:
        self.memory_LSE = aligned_array((layers, 0, size))
        self.used = 0

    def extend(self, first_B: Ints, length_B: Ints, more: int) -> tuple[Floats, Ints]:
        """Room for ``more`` tokens, and where the sentences in use now begin."""
        layers, room, size = self.memory_LSE.shape
        if self.used + more > room:
            kept = int(length_B.sum())
            wanted = 2 * (kept + more)
            moved_B = (np.cumsum(length_B) - length_B).astype(np.int32)
            target_LSE = aligned_array((layers, wanted, size)) if wanted > room else self.memory_LSE
            target_LSE[:, :kept] = self.memory_LSE[:, np.repeat(first_B - moved_B, length_B) + np.arange(kept)]
            self.memory_LSE, first_B, self.used = target_LSE, moved_B, kept
        begin, self.used = self.used, self.used + more
        return self.memory_LSE[:, begin : self.used], first_B
