"""The target pieces that a text may be translated with, as Marian's students have them: a list for each source piece.

A translation then is of the most frequent pieces, of those that the source's pieces are usually translated by, and of
these themselves where both sides have one vocabulary: some 1,000 of 32,000.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.system.errors import RegardError

MAGIC = 0xF11A48D5013417F5
HEAD = 6
"""Numbers of eight bytes at the beginning: magic, a checksum, frequent pieces, pieces of a list, offsets, entries."""


@dataclass(frozen=True)
class Shortlist:
    """The lists of all source pieces.

    Args:
        content: the file.
        frequent: so many pieces, the first, may be in any translation.
        offsets: where each piece's list begins and the last one ends.
        entries: target pieces, list after list.
    """

    content: bytes
    frequent: int
    offsets: NDArray[np.int64]
    entries: NDArray[np.uint32]

    @classmethod
    def of(cls, content: bytes, sizes: tuple[int, int], where: str) -> Shortlist:
        """What a file holds.

        Args:
            content: of the file.
            sizes: source and target pieces of the model.
            where: its name.

        Raises:
            RegardError: it is damaged, or of another model.
        """
        head = np.frombuffer(content, "<u8", HEAD).tolist() if len(content) >= 8 * HEAD else [0]
        if head[0] != MAGIC:
            raise RegardError("is no list of likely pieces as Marian's tools write them", where)
        (frequent, _, count, total), begin = head[2:], 8 * HEAD
        if count != sizes[0] + 1 or len(content) != begin + 8 * count + 4 * total:
            raise RegardError(f"is damaged, or not of a model that reads {sizes[0]:,} pieces", where)
        offsets = np.frombuffer(content, "<u8", count, begin).astype(np.int64)
        entries = np.frombuffer(content, "<u4", offset=begin + 8 * count)
        ordered = offsets[0] == 0 and offsets[-1] == total and bool((np.diff(offsets) >= 0).all())
        if not ordered or int(entries.max(initial=0)) >= sizes[1]:
            raise RegardError("is damaged: its lists overlap, or name pieces that the model has not", where)
        return cls(content, min(frequent, sizes[1]), offsets, entries)

    def pieces(self, source: NDArray[np.int64], joint: bool) -> NDArray[np.int64]:
        """The pieces that a translation of ``source`` may have, in order.

        Args:
            source: ids, ``</s>`` among them.
            joint: whether both sides have one vocabulary, so that what is read may be written.
        """
        read = np.unique(source)
        lists = [self.entries[self.offsets[piece] : self.offsets[piece + 1]] for piece in read]
        found = np.concatenate([np.arange(self.frequent), *lists, read if joint else read[:0]])
        return np.unique(found).astype(np.int64)
