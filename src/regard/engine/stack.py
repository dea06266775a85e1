"""Texts end to end, and a stack of layers that reads them: recorded once and run for every batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.engine.layers import Floats, Ids, Ints, Recording, SubLayer
from regard.engine.past import CHUNK
from regard.engine.positions import Positions


@dataclass(frozen=True)
class Texts:
    """Texts end to end, nothing between or behind them.

    Args:
        ids_T: of their tokens.
        lengths_B: tokens of each text, one or more.
        segments_T: the segment of each token, where there are several texts in one; else all are of the first.
        words: the number of each token's word, from 1 on, 0 for none, and a row of features for each word.
    """

    ids_T: Ids
    lengths_B: Ids
    segments_T: Ids | None = None
    words: tuple[Ids, Ids] | None = None

    @property
    def starts_B(self) -> Ids:
        """The first token of each text."""
        return np.asarray(self.lengths_B.cumsum() - self.lengths_B)


def segments_after(ids_T: Ids, lengths_B: Ids, end: int) -> Ids:
    """``segments_T`` of texts in which tokens behind the first ``end`` are of the second segment, the others not."""
    is_end_T = ids_T == end
    before_T = is_end_T.cumsum() - is_end_T
    starts_B = lengths_B.cumsum() - lengths_B
    return np.minimum(before_T - np.repeat(before_T[starts_B], lengths_B), 1)


def word_vectors(features_XD: Floats, texts: Texts) -> Floats:
    """``added_TD``: for each token the sum of the vectors of its word's features, if it has a word [Miranda22].

    Raises:
        ValueError: the words are not given.
    """
    if texts.words is None:
        raise ValueError("a model with word features needs the words of its tokens")
    word_T, features_WE = texts.words
    word_WD = np.zeros((1 + len(features_WE), features_XD.shape[1]), np.float32)
    for chosen_W in features_WE.T:
        word_WD[1:] += features_XD[chosen_W]
    return word_WD[word_T]


class Stack:
    """``layers(Embedding(ids) · scale + positions)`` [Vaswani17 §3.4, §3.5], recorded once and run for every batch.

    Args:
        table_VD: of the embeddings; ``scale`` multiplies them.
        layers: all sub-layers with their norms.
    """

    def __init__(self, table_VD: Floats, scale: float, positions: Positions, layers: SubLayer) -> None:
        self.size = table_VD.shape[1]
        self.positions = positions
        recording = Recording()
        stream = recording.room("stream", self.size)
        recording.program.embed(table_VD, scale, stream)
        self._result = layers.record(recording, stream)
        self._program = recording.program
        self.bytes = recording.bytes

    def __call__(self, ids_T: Ids, place_T: Ints, length_T: Ints, longest: int, **more: Any) -> Floats:
        """``hidden_TD``.

        Args:
            ids_T: of the tokens.
            place_T: of each in its text.
            length_T: keys that it attends to, of its own text.
            longest: the most of them.
            more: where these are.
        """
        hidden_TD = np.empty((len(ids_T), self.size), np.float32)
        self._program.run(self._result, hidden_TD, ids_T, place_T, length_T, **more, **self.positions.tables(longest))
        return hidden_TD

    def search(self, longest: int, **given: Any) -> tuple[int, int, int]:
        """Steps of a search at once; the rows there are then, the steps and slots that were used.

        Args:
            longest: the most tokens of a row after all steps.
            given: further arguments of ``_native.Program.search``.
        """
        return self._program.search(self._result, **given, **self.positions.tables(longest))

    def read(self, texts: Texts, *, causal: bool = False, added_TD: Floats | None = None) -> Floats:
        """``hidden_TD`` of whole texts, in which each token attends to all, or by ``causal`` to none after it.

        Args:
            texts: to read.
            causal: see above.
            added_TD: what is added to the embeddings.
        """
        first_T = np.repeat(texts.starts_B, texts.lengths_B).astype(np.int32)
        place_T = np.arange(len(texts.ids_T), dtype=np.int32) - first_T
        length_T = place_T + np.int32(1) if causal else np.repeat(texts.lengths_B, texts.lengths_B).astype(np.int32)
        hidden_TD = np.empty((len(texts.ids_T), self.size), np.float32)
        longest = int(texts.lengths_B.max(initial=0))
        for begin, end in _parts(texts.lengths_B):
            now = slice(begin, end)
            added = None if added_TD is None else added_TD[now]
            first = first_T[now] - np.int32(begin)
            hidden_TD[now] = self(texts.ids_T[now], place_T[now], length_T[now], longest, first=first, added=added)
        return hidden_TD


def _parts(lengths_B: Ids) -> Iterator[tuple[int, int]]:
    """Where texts begin and end that are read at once: :data:`CHUNK` tokens at most, or one longer text."""
    begin = end = 0
    for length in lengths_B.tolist():
        if end > begin and end + length > begin + CHUNK:
            yield begin, end
            begin = end
        end += length
    if end > begin:
        yield begin, end
