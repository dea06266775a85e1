"""Models of texts without a second side: the Transformer's encoder, or another, and one head [Devlin19]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.engine.parts import Floats
from regard.engine.readers.heads import TagHead, TextHead, WordHead
from regard.engine.readers.tags import TagDecoder
from regard.engine.stack import Stack
from regard.engine.texts import Texts, word_vectors

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Encoder:
    """The Transformer's encoder, with what is added to a token's embedding beside its position.

    Args:
        stack: the layers.
        segments_XD: a vector for each kind of segment, if there are several.
        features_XD: a vector for each feature of words, if the model reads them.
    """

    stack: Stack
    segments_XD: Floats | None
    features_XD: Floats | None

    def __call__(self, texts: Texts) -> Floats:
        """``hidden_TD``."""
        return self.stack.read(texts, added_TD=self._added(texts))

    def _added(self, texts: Texts) -> Floats | None:
        added_TD = None if self.features_XD is None else word_vectors(self.features_XD, texts)
        if self.segments_XD is None:
            return added_TD
        segments_T = np.zeros_like(texts.ids_T) if texts.segments_T is None else texts.segments_T
        of_segments_TD = self.segments_XD[segments_T]
        return of_segments_TD if added_TD is None else added_TD + of_segments_TD


class FastReader:
    """A model of texts without a second side: it labels them, tags their words, fills gaps, or gives vectors."""

    def __init__(self, encoder: Callable[[Texts], Floats], head: TextHead | TagHead | WordHead) -> None:
        self.read = encoder
        self.head = head

    def __call__(self, texts: Texts) -> Floats:
        """What the head gives: ``score_BC`` or ``vector_BD`` of texts, a row for each token of the other heads."""
        return self.head(self.read(texts), texts)

    def words(self, texts: Texts, starts_R: Ids, lengths_R: Ids) -> Floats:
        """``score_RC``: scores of tags for words, whose pieces lie there."""
        assert isinstance(self.head, TagHead)
        return self.head.words(self.read(texts), starts_R, lengths_R)

    def pieces(self, texts: Texts, places_N: Ids) -> Floats:
        """``score_NV`` of every piece at some tokens."""
        assert isinstance(self.head, WordHead)
        return self.head(np.ascontiguousarray(self.read(texts)[places_N]), texts)

    @property
    def chain(self) -> TagDecoder:
        """What chooses tags."""
        assert isinstance(self.head, TagHead)
        return self.head.chain
