"""BPE-dropout for tagged texts: words segmented anew in each epoch, the mark on the first piece [Provilkov20 §3.2]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regard.data.shards import Side
from regard.data.text_segments import Draws, Ragged, TextSegments
from regard.data.word_marks import GOES_ON, INSIDE

Ids = NDArray[np.int64]


class TagSegments(TextSegments):
    """The pieces of tagged texts, drawn anew in every epoch; :attr:`marks` beside them.

    Args:
        text, marks: pieces and marks of every text, without dropout.
        draws: of a word.
        seed: of the choice among them.
        max_tokens: a text that would become longer stays as it was in that epoch.
    """

    def __init__(self, text: Side, marks: Side, draws: Draws, seed: int, max_tokens: int) -> None:
        signs = []

        def units(number: int, pieces: Ids) -> Ids:
            marked = marks.gather(0, np.array([number]))[0]
            cuts = _units(marked)
            signs.append(marked[cuts])
            return cuts

        super().__init__(text, units, draws, seed, max_tokens)
        self._signs = Ragged(signs)
        self.marks = Marks(self)

    def marked(self, epoch: int, sentences_B: Ids) -> Ids:
        """The marks of these texts in an epoch, end to end."""
        rows_R, _ = self._chosen(epoch, sentences_B)
        lengths_R = self._row_lengths[rows_R]
        marks_X = np.full(int(lengths_R.sum()), INSIDE, np.int64)
        marks_X[lengths_R.cumsum() - lengths_R] = self._signs.gather(0, sentences_B)[0]
        return marks_X


class Marks:
    """The marks beside segments that are drawn; fits :class:`~regard.data.shards.Side`."""

    def __init__(self, text: TagSegments) -> None:
        self._text = text
        self.count, self.longest = text.count, text.longest

    @property
    def tokens(self) -> int:
        """As many as there are pieces."""
        return self._text.tokens

    def lengths(self, epoch: int, sentences_B: Ids) -> Ids:
        return self._text.lengths(epoch, sentences_B)

    def gather(self, epoch: int, sentences_B: Ids) -> tuple[Ids, Ids]:
        return self._text.marked(epoch, sentences_B), self.lengths(epoch, sentences_B)


def _units(marks_T: Ids) -> Ids:
    """Where words begin, and symbols: what opens a window, each of its pieces by itself, and what ends it."""
    begins = np.flatnonzero((marks_T != INSIDE) & (marks_T != GOES_ON))
    first = int(begins[0]) if len(begins) else len(marks_T) - 1
    return np.concatenate([np.arange(first), begins, [len(marks_T) - 1]])
