"""Encoders that read texts by a recurrence [Lample16, Yang16], over pieces or over words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.fast.parts import Floats
from regard.fast.readers.pooling import mean
from regard.fast.recurrent.layers import Layer, read
from regard.fast.texts import Texts, word_vectors

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class RecurrentEncoder:
    """Embeddings and recurrent layers, over pieces or over words, each the mean of its pieces.

    Args:
        table_VD: of the embeddings, which are multiplied by the root of their size.
        features_XD: a vector for each feature of words, if the model reads them.
        layers: each reads the hidden vectors of the one below.
        over_words: step over words; the pieces of one share its hidden vector.
    """

    table_VD: Floats
    features_XD: Floats | None
    layers: Sequence[Layer]
    over_words: bool

    def __call__(self, texts: Texts) -> Floats:
        """``hidden_TD``."""
        x_TD = self.table_VD[texts.ids_T]
        if self.features_XD is not None:
            x_TD = x_TD + word_vectors(self.features_XD, texts)
        x_TD = x_TD * np.float32(self.table_VD.shape[1] ** 0.5)
        if not self.over_words:
            return read(self.layers, x_TD, texts.lengths_B)[0]
        starts_W, lengths_W, words_B = _runs(texts)
        hidden_WD, _ = read(self.layers, mean(x_TD, starts_W, lengths_W), words_B)
        return np.repeat(hidden_WD, lengths_W, axis=0)


def _runs(texts: Texts) -> tuple[Ids, Ids, Ids]:
    """Where the pieces of each word begin, how many these are, and the words of each text; no word is one by itself.

    Raises:
        ValueError: the words are not given.
    """
    if texts.words is None:
        raise ValueError("a recurrence over words needs the words of its tokens")
    word_T = texts.words[0]
    first_T = np.ones(len(word_T), np.bool_)
    first_T[1:] = (word_T[1:] != word_T[:-1]) | (word_T[1:] == 0)
    first_T[texts.starts_B] = True
    starts_W = np.flatnonzero(first_T)
    words_B = np.add.reduceat(first_T.astype(np.int64), texts.starts_B) if len(texts.lengths_B) else texts.lengths_B
    return starts_W, np.diff(np.append(starts_W, len(word_T))), words_B
