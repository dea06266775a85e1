"""BPE-dropout for tagged texts: words segmented anew in each epoch, the mark on the first piece [Provilkov20 §3.2].

Which segmentation a word of a batch gets is a function of (seed, epoch, text, word), as in
:mod:`~regard.data.segmented`; nothing is ever saved. The words of all texts are held in memory, as numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.data.segmented import SegmentedShards
from regard.data.shards import Side, ragged
from regard.data.word_marks import GOES_ON, INSIDE
from regard.text.bpe_dropout import Segmenter
from regard.text.tokenizer import Tokenizer

Ids = NDArray[np.int64]


class Ragged:
    """Rows of different lengths in memory; fits :class:`~regard.data.shards.Side`."""

    def __init__(self, rows: Sequence[Sequence[int]] | Sequence[Ids]) -> None:
        lengths = np.array([len(row) for row in rows], np.int64)
        self._ends = np.concatenate([[0], lengths.cumsum()])
        self._ids = np.concatenate([np.zeros(0, np.int64), *(np.asarray(row, np.int64) for row in rows)])
        self.count, self.tokens, self.longest = len(rows), len(self._ids), int(lengths.max(initial=0))

    def lengths(self, epoch: int, sentences_B: Ids) -> Ids:
        return self._ends[sentences_B + 1] - self._ends[sentences_B]

    def gather(self, epoch: int, sentences_B: Ids) -> tuple[Ids, Ids]:
        lengths_B = self.lengths(epoch, sentences_B)
        return self._ids[ragged(self._ends[sentences_B], lengths_B)], lengths_B


class Draws:
    """The segmentations of words, each word being its pieces: first as it was, then those drawn.

    Args:
        tokenizer: made the pieces.
        segmenter: draws.
        count: draws kept for each word.
    """

    def __init__(self, tokenizer: Tokenizer, segmenter: Segmenter, count: int) -> None:
        self._tokenizer, self._segmenter, self._count = tokenizer, segmenter, count

    def of(self, pieces: tuple[int, ...]) -> list[list[int]]:
        """Those of a word; one that is always the same, or a symbol, has only the first."""
        plain = list(pieces)
        if any(piece < self._tokenizer.symbols for piece in plain):
            return [plain]
        starts = np.flatnonzero(self._tokenizer.word_starts(plain))
        parts = ["".join(self._tokenizer.names[id] for id in part) for part in np.split(np.array(plain), starts[1:])]
        drawn = zip(*(self._segmenter.drawn(part, self._count) for part in parts), strict=True)
        found = [[id for part in one for id in part] for one in drawn]
        return [plain, *found] if any(one != plain for one in found) else [plain]


class TagSegments(SegmentedShards):
    """The pieces of tagged texts, drawn anew in every epoch; :attr:`marks` beside them.

    Args:
        text, marks: pieces and marks of every text, without dropout.
        draws: of a word.
        seed: of the choice among them.
        max_tokens: a text that would become longer stays as it was in that epoch.
    """

    def __init__(self, text: Side, marks: Side, draws: Draws, seed: int, max_tokens: int) -> None:
        known: dict[tuple[int, ...], int] = {}
        words, signs = [], []
        for number in range(text.count):
            pieces, marked = (side.gather(0, np.array([number]))[0] for side in (text, marks))
            cuts = _units(marked)
            units = (tuple(part.tolist()) for part in np.split(pieces, cuts[1:]))
            words.append(np.array([known.setdefault(unit, len(known)) for unit in units], np.int64))
            signs.append(marked[cuts])
        rows = [draws.of(unit) for unit in known]
        self._words, self._signs = Ragged(words), Ragged(signs)
        self._rows = Ragged([row for some in rows for row in some])
        self._first = np.cumsum([0, *map(len, rows)])
        self._row_lengths = self._rows.lengths(0, np.arange(self._rows.count))
        self._seed, self.longest, self.count = seed, max(max_tokens, text.longest), text.count
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
