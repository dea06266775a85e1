"""BPE-dropout for texts that are prepared whole: their words segmented anew in each epoch [Provilkov20 §3.2].

Which segmentation a word of a batch gets is a function of (seed, epoch, text, word), as in
:mod:`~regard.data.segmented`; nothing is ever saved. The words of all texts are held in memory, as numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from regard.data.segmented import SegmentedShards
from regard.data.shards import Side, ragged
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


class TextSegments(SegmentedShards):
    """The pieces of texts, drawn anew in every epoch.

    Args:
        text: pieces of every text, symbols included, without dropout.
        units: of a text's number and pieces, where its words begin; a symbol is a word.
        draws: of a word.
        seed: of the choice among them.
        max_tokens: a text that would become longer stays as it was in that epoch.
    """

    def __init__(self, text: Side, units: Callable[[int, Ids], Ids], draws: Draws, seed: int, max_tokens: int) -> None:
        known: dict[tuple[int, ...], int] = {}
        words = []
        for number in range(text.count):
            pieces = text.gather(0, np.array([number]))[0]
            parts = (tuple(part.tolist()) for part in np.split(pieces, units(number, pieces)[1:]))
            words.append(np.array([known.setdefault(part, len(known)) for part in parts], np.int64))
        rows = [draws.of(part) for part in known]
        self._words = Ragged(words)
        self._rows = Ragged([row for some in rows for row in some])
        self._first = np.cumsum([0, *map(len, rows)])
        self._row_lengths = self._rows.lengths(0, np.arange(self._rows.count))
        self._seed, self.longest, self.count = seed, max(max_tokens, text.longest), text.count
