"""What stands on an encoder: classes of a text, tags of its words, pieces in gaps, or a vector (``models/bert``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.engine.parts import Floats, Linear, Norm
from regard.engine.readers.pooling import Pool
from regard.engine.readers.tags import TagDecoder
from regard.engine.texts import Texts

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class TextHead:
    """Scores of a text's classes [Devlin19 §4.1], or without classes its vector.

    Args:
        pool: one vector for the tokens of a text.
        dense: a layer with tanh on it, if there is one.
        classes: from this to a score for each class.
    """

    pool: Pool
    dense: Linear | None
    classes: Linear | None

    def __call__(self, hidden_TD: Floats, texts: Texts) -> Floats:
        """``score_BC``, or ``vector_BD``."""
        vector_BD = self.pool(hidden_TD, texts.starts_B, texts.lengths_B)
        if self.dense is not None:
            vector_BD = np.tanh(self.dense.rows(vector_BD))
        return vector_BD if self.classes is None else self.classes.rows(vector_BD)


@dataclass(frozen=True)
class TagHead:
    """Scores of tags of a word, by its pieces [Devlin19 §5.3].

    Args:
        classes: from d_model to a score for each tag.
        pool: one vector for the pieces of a word.
        chain: chooses the tags of a text's words.
    """

    classes: Linear
    pool: Pool
    chain: TagDecoder

    def __call__(self, hidden_TD: Floats, texts: Texts) -> Floats:
        """``score_TC``: of every token, as a word of one piece."""
        return self.classes.rows(hidden_TD)

    def words(self, hidden_TD: Floats, starts_R: Ids, lengths_R: Ids) -> Floats:
        """``score_RC`` of words whose pieces lie there."""
        return self.classes.rows(self.pool(hidden_TD, starts_R, lengths_R))


@dataclass(frozen=True)
class WordHead:
    """Masked words: a dense layer with its activation, a norm, and scores of every piece [Devlin19 §3.1]."""

    dense: Linear
    norm: Norm
    output: Linear

    def __call__(self, hidden_ND: Floats, texts: Texts) -> Floats:
        """``score_NV``."""
        return self.output.rows(self.norm.rows(self.dense.rows(hidden_ND)))
