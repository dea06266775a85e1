"""Texts as an engine reads them: what ``models/inputs`` are to a model, in NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]
Ints = NDArray[np.int32]


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

    @property
    def first_T(self) -> Ints:
        """The first token of each token's text."""
        return np.repeat(self.starts_B, self.lengths_B).astype(np.int32)

    @property
    def place_T(self) -> Ints:
        """The place of each token in its text."""
        return np.arange(len(self.ids_T), dtype=np.int32) - self.first_T


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
