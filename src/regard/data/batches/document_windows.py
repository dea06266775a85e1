"""Documents cut into fixed-length windows at a new offset every epoch; implements ``data.prepare.shards.Side``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regard.data.prepare.shards import Shards, ragged_indices
from regard.data.prepare.windowing import Frame
from regard.system.keys import generator

Ids = NDArray[np.int64]


class Windows:
    """The windows of all documents, numbered through.

    A document that fits is one window. A longer one is cut every ``length`` tokens, from an offset drawn anew
    for every epoch, so that no token is always first; a window at either end may be empty.

    Args:
        documents: shards, a document (or a part of one) each.
        length: tokens of a window at most.
        seed: of the places; ``None``: from the beginning on, always.
    """

    def __init__(self, documents: Shards, length: int, seed: int | None) -> None:
        self._documents, self._length, self._seed = documents, length, seed
        self._phases: dict[int, int] = {}
        self._tokens_D = documents.lengths(0, np.arange(documents.count))
        cuts_D = -(-self._tokens_D // length) + (seed is not None)
        slots_D = np.where(self._tokens_D <= length, 1, cuts_D)
        self._document_W = np.repeat(np.arange(documents.count), slots_D)
        self._place_W = ragged_indices(np.zeros_like(slots_D), slots_D)
        self.count = int(slots_D.sum())
        self.tokens = documents.tokens
        self.longest = min(length, documents.longest)

    def _phase(self, epoch: int) -> int:
        """Offset of the second window of a long document, drawn per epoch."""
        if self._seed is None:
            return self._length
        if epoch not in self._phases:
            self._phases[epoch] = int(generator(self._seed, "windows", epoch).integers(1, self._length + 1))
        return self._phases[epoch]

    def _cut(self, epoch: int, windows_B: Ids) -> tuple[Ids, Ids, Ids]:
        """Document, first token and length of each window."""
        document_B, place_B = self._document_W[windows_B], self._place_W[windows_B]
        tokens_B, phase = self._tokens_D[document_B], self._phase(epoch)
        whole_B = tokens_B <= self._length
        first_B = np.where(whole_B | (place_B == 0), 0, phase + (place_B - 1) * self._length)
        last_B = np.where(whole_B, tokens_B, phase + place_B * self._length)
        first_B, last_B = np.minimum(first_B, tokens_B), np.minimum(last_B, tokens_B)
        return document_B, first_B, last_B - first_B

    def lengths(self, epoch: int, sentences_B: Ids) -> Ids:
        return self._cut(epoch, sentences_B)[2]

    def gather(self, epoch: int, sentences_B: Ids) -> tuple[Ids, Ids]:
        document_B, first_B, lengths_B = self._cut(epoch, sentences_B)
        return self._documents.within(document_B, first_B, lengths_B), lengths_B

    def before(self, epoch: int, windows_B: Ids, nothing: int) -> Ids:
        """The token before each window; ``nothing`` before the very first.

        Documents follow each other, each with its end symbol: a document is
        preceded by the end of the previous one, a part of a document by the token before it.
        """
        document_B, first_B, _ = self._cut(epoch, windows_B)
        fresh_B = (first_B == 0) & (document_B > 0)
        document_B = document_B - fresh_B
        place_B = np.where(fresh_B, self._tokens_D[document_B], first_B) - 1
        inside_B = place_B >= 0
        before_B = np.full(len(first_B), nothing, np.int64)
        before_B[inside_B] = self._documents.within(
            document_B[inside_B], place_B[inside_B], np.ones(int(inside_B.sum()), np.int64)
        )
        return before_B


class FramedWindows:
    """The same windows between the symbols that open and close a text."""

    def __init__(self, documents: Shards, frame: Frame, seed: int | None) -> None:
        self._windows = Windows(documents, frame.room, seed)
        self._frame = frame
        self._more = len(frame.begin) + 1
        self.count = self._windows.count
        self.tokens = self._windows.tokens + self._more * self.count
        self.longest = self._windows.longest + self._more

    def lengths(self, epoch: int, sentences_B: Ids) -> Ids:
        return self._windows.lengths(epoch, sentences_B) + self._more

    def gather(self, epoch: int, sentences_B: Ids) -> tuple[Ids, Ids]:
        inner, inner_B = self._windows.gather(epoch, sentences_B)
        lengths_B = inner_B + self._more
        inner_T = self.inner(lengths_B)
        ids = np.empty(len(inner_T), np.int64)
        ids[inner_T] = inner
        ids[~inner_T] = np.tile([*self._frame.begin, self._frame.end], len(lengths_B))
        return ids, lengths_B

    def inner(self, lengths_B: Ids) -> NDArray[np.bool_]:
        """True for tokens of texts, False for the symbols around them, of windows of these lengths end to end."""
        inner_T, ends_B = np.ones(int(lengths_B.sum()), np.bool_), lengths_B.cumsum()
        inner_T[ends_B - 1] = False
        for place in range(len(self._frame.begin)):
            inner_T[ends_B - lengths_B + place] = False
        return inner_T
