"""Keys and values of a search: of the rows' own tokens, found by ancestor tables, and of the sentences they read.

Where the weights are bf16 or int8, these are bf16: half the memory, which is most of what a large batch takes. The
states of a recurrence, which lie where its tokens' keys and values would, stay fp32, for an error would be carried on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.engine.layers import Floats, Ids, Ints, Linear
from regard.system.kernels import _native
from regard.system.kernels.packing import Precision, aligned_array
from regard.system.processor import lazy_pages

Kept = NDArray[Any]
"""Keys and values: float32, or uint16, which are bf16 as the bits they are."""

ROOM = 32
"""Tokens that a row's ancestors have room for at first; it doubles."""
CHUNK = 512
"""Tokens that are read or projected at once: what they need between two calls of kernels should stay in the cache."""
LARGE = 1 << 20
"""Bytes from which on the room of a layer takes memory only as it is filled."""


class Past:
    """Keys and values of tokens, ``past_XE`` of each layer; a place that no row names any more is written again.

    Args:
        layers: of the decoder.
        size: entries of a token's keys and values in a layer.
        precision: of the weights; see above.
        room: places at first; it grows by a quarter where three quarters of them are named.
    """

    def __init__(self, layers: int, size: int, precision: Precision = "fp32", room: int = 64) -> None:
        self.of_layer = [aligned_array((room, size), _type(precision)) for _ in range(layers)]
        self._room = room
        self._free = np.arange(room, dtype=np.int32)

    def take(self, count: int, ancestors_NS: Ints, lengths_N: Ints) -> Ints:
        """Places for ``count`` new tokens; those that the rows name are kept, with what is there."""
        taken = self.peek(count, ancestors_NS, lengths_N)
        self._free = self._free[count:]
        return taken

    def peek(self, count: int, ancestors_NS: Ints, lengths_N: Ints) -> Ints:
        """Places for ``count`` new tokens at most; :meth:`take` those that are used, which are the first ones."""
        if len(self._free) < count:
            self._sweep(count, ancestors_NS, lengths_N)
        return self._free[:count]

    def extend(self, ancestors_NS: Ints, lengths_N: Ints, longest: int) -> tuple[Ints, Ints]:
        """The ancestors with a place for one more token of each row, and these places.

        Args:
            ancestors_NS, lengths_N: of the rows.
            longest: the most of the lengths.
        """
        count, width = ancestors_NS.shape
        if longest >= width:
            ancestors_NS = np.pad(ancestors_NS, ((0, 0), (0, width)))
        taken_N = self.take(count, ancestors_NS, lengths_N)
        ancestors_NS[np.arange(count), lengths_N] = taken_N
        return ancestors_NS, taken_N

    def _sweep(self, count: int, ancestors_NS: Ints, lengths_N: Ints) -> None:
        named = np.zeros(self._room, np.bool_)
        named[ancestors_NS[np.arange(ancestors_NS.shape[1]) < lengths_N[:, None]]] = True
        wanted = (int(named.sum()) + count) * 4 // 3
        if wanted > self._room:
            room = wanted * 5 // 4
            _enlarge(self.of_layer, room, np.arange(self._room))
            named = np.append(named, np.zeros(room - self._room, np.bool_))
            self._room = room
        self._free = np.flatnonzero(~named).astype(np.int32)


class Memory:
    """Keys and values of sentences end to end, ``memory_SE`` of each layer.

    Where room is short, what no sentence uses is dropped, and there is a quarter more of it than is then needed.

    Args:
        layers: of the decoder.
        size: entries of a token's keys and values in a layer.
        precision: of the weights; see above.
    """

    def __init__(self, layers: int, size: int, precision: Precision = "fp32") -> None:
        self.of_layer = [aligned_array((0, size), _type(precision)) for _ in range(layers)]
        self._room = self._used = 0

    def extend(self, first_B: Ints, length_B: Ints, lengths_A: Ids) -> tuple[list[Kept], Ints]:
        """Room of each layer for further sentences, and where all of them begin now, the further ones last.

        Args:
            first_B, length_B: of the sentences in use.
            lengths_A: of the further ones.
        """
        more = int(lengths_A.sum())
        if self._used + more > self._room:
            kept_S = np.repeat(first_B - _begins(length_B), length_B) + np.arange(int(length_B.sum()))
            wanted = (len(kept_S) + more) * 5 // 4
            if wanted > self._room:
                _enlarge(self.of_layer, wanted, kept_S)
                self._room = wanted
            else:
                for memory_SE in self.of_layer:
                    memory_SE[: len(kept_S)] = memory_SE[kept_S]
            first_B, self._used = _begins(length_B), len(kept_S)
        begin, self._used = self._used, self._used + more
        rooms = [memory_SE[begin : self._used] for memory_SE in self.of_layer]
        return rooms, np.append(first_B, begin + _begins(lengths_A)).astype(np.int32)


def project(linear: Linear, x_TD: Floats, room_TE: Kept) -> None:
    """Keys and values of tokens, by a linear layer, written to their room."""
    if room_TE.dtype == np.float32:
        linear(x_TD, room_TE)
        return
    for begin in range(0, len(x_TD), CHUNK):
        part = slice(begin, begin + CHUNK)
        _native.halve(linear.rows(x_TD[part]), room_TE[part])


def _type(precision: Precision) -> type[np.generic]:
    return np.float32 if precision == "fp32" else np.uint16


def _enlarge(of_layer: list[Kept], room: int, kept_K: Ids) -> None:
    """Replace each array by one with room for so many tokens, which begins with those kept.

    One layer after another: only one of them is in memory twice.
    """
    for number, old_XE in enumerate(of_layer):
        shape, kind = (room, old_XE.shape[1]), old_XE.dtype.type
        if (bytes_ := old_XE.itemsize * math.prod(shape)) < LARGE:
            new_XE = aligned_array(shape, kind)
        else:
            new_XE = np.frombuffer(lazy_pages(bytes_), kind).reshape(shape)
        np.take(old_XE, kept_K, axis=0, out=new_XE[: len(kept_K)], mode="clip")
        of_layer[number] = new_XE


def _begins(length_B: NDArray[Any]) -> NDArray[Any]:
    """Where each of these lengths begins when they lie end to end."""
    return np.cumsum(length_B) - length_B
