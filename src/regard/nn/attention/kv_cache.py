"""KV cache: the keys and values of sequences being decoded, preallocated."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass
class KVCache:
    """Row *n* holds a sequence's keys and values from ``n * stride`` on. The arena handed in is consumed by every call.

    ``key_SHK`` and ``value_SHU`` have ``rows * stride`` entries. The rows in use are the first ones, without gaps, so
    that a padded view of them is a plain slice.
    """

    key_SHK: Tensor
    value_SHU: Tensor
    stride: int

    @classmethod
    def empty(cls, like: tuple[Tensor, Tensor], rows: int, stride: int) -> KVCache:
        """An arena for tensors like ``(key_SHK, value_SHU)``."""
        key, value = (x.new_zeros(rows * stride, *x.shape[1:]) for x in like)
        return cls(key, value, stride)

    @property
    def rows(self) -> int:
        """Rows there is room for."""
        return len(self.key_SHK) // self.stride

    def write(self, places_R: Tensor, key_RHK: Tensor, value_RHU: Tensor) -> None:
        """Put entries at the given places of the axis."""
        self.key_SHK.index_copy_(0, places_R, key_RHK)
        self.value_SHU.index_copy_(0, places_R, value_RHU)

    def select(self, rows_R: Tensor, longest: int) -> KVCache:
        """Row *i* becomes a copy of the first ``longest`` entries of row ``rows_R[i]``; grows for more rows."""
        count = len(rows_R)
        room = self if count <= self.rows else self.grow(2 * count, self.stride)
        for old, new in ((self.key_SHK, room.key_SHK), (self.value_SHU, room.value_SHU)):
            kept = old.unflatten(0, (-1, self.stride))[:, :longest].index_select(0, rows_R)
            new.unflatten(0, (-1, self.stride))[:count, :longest] = kept
        return room

    def grow(self, rows: int, stride: int) -> KVCache:
        """The same rows with room for ``rows`` rows of ``stride`` entries (never less than now)."""
        rows, stride = max(rows, self.rows), max(stride, self.stride)
        if (rows, stride) == (self.rows, self.stride):
            return self
        larger = KVCache.empty((self.key_SHK, self.value_SHU), rows, stride)
        for old, new in ((self.key_SHK, larger.key_SHK), (self.value_SHU, larger.value_SHU)):
            new.unflatten(0, (rows, stride))[: self.rows, : self.stride] = old.unflatten(0, (-1, self.stride))
        return larger
