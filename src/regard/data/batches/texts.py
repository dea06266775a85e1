"""Packed batches of texts with labels: classes per text, tags per token, or masked tokens; word dropout."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from regard.config import Recipe
from regard.data.batches.batch import Capacity, Packed, Position, capacity_for
from regard.data.batches.loader import DataLoader, Made, Make
from regard.data.batches.packing import batches_in_order, pad_to_capacity
from regard.data.batches.sampler import BatchSampler, EpochSampler
from regard.data.prepare.shards import Side
from regard.system.keys import generator

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class TextBatch:
    """Texts end to end, and labels end to end: one or several of a text, or one of each token.

    Args:
        text: the ids.
        labels_X: the labels of all texts, end to end.
        counts_B: how many labels each text has.
        sentences: which texts of the data these are.
    """

    text: Packed
    labels_X: Ids
    counts_B: Ids
    sentences: Ids

    @property
    def tokens(self) -> int:
        """Real tokens."""
        return int(self.text.lengths_B.sum())

    @property
    def room(self) -> int:
        """Tokens there is room for."""
        return len(self.text.ids_T)


@dataclass(frozen=True)
class Examples:
    """Texts and their labels in shards, as batches.

    Args:
        text, labels: two sides of as many sentences.
        capacity: of a batch.
    """

    text: Side
    labels: Side
    capacity: Capacity

    @classmethod
    def of(cls, text: Side, labels: Side, tokens: int) -> Examples:
        """With the capacity for batches of ``tokens`` tokens."""
        return cls(text, labels, capacity_for(tokens, text.tokens, text.tokens, text.count, text.longest))

    def batch(self, sentences_B: Ids, epoch: int = 0) -> TextBatch:
        """These texts, packed."""
        ids, lengths = self.text.gather(epoch, sentences_B)
        labels_X, counts_B = self.labels.gather(epoch, sentences_B)
        side = pad_to_capacity(ids, lengths, self.capacity.target, self.capacity.sentences)
        return TextBatch(side, labels_X, counts_B, sentences_B)

    def all(self) -> list[TextBatch]:
        """Every text once, in order."""
        lengths = self.text.lengths(0, np.arange(self.text.count))
        return [
            self.batch(part) for part in batches_in_order([lengths], [self.capacity.target], self.capacity.sentences)
        ]

    def feed(self, recipe: Recipe, fingerprint: str, make: Make[Made], prefetch: int = 2) -> DataLoader[Made]:
        """Batches of these texts in random order, made by ``make`` of position and texts."""
        return make_loader(self.text, self.capacity, recipe, fingerprint, make, prefetch)

    def plain(self, place: Position, sentences_B: Ids) -> TextBatch:
        """A ``make`` that adds nothing."""
        return self.batch(sentences_B, place.epoch)

    def with_word_dropout(self, share: float, mask: int, seed: int) -> Make[TextBatch]:
        """A ``make`` with word dropout: ``mask`` replaces a share of the tokens, drawn per position [Gal16]."""

        def make(place: Position, sentences_B: Ids) -> TextBatch:
            batch = self.batch(sentences_B, place.epoch)
            random = generator(seed, "word dropout", place.epoch, place.block, place.batch)
            ids_T = np.where(random.random(batch.room) < share, mask, batch.text.ids_T)
            return replace(batch, text=replace(batch.text, ids_T=ids_T))

        return make if share else self.plain


def make_loader(
    text: Side, capacity: Capacity, recipe: Recipe, fingerprint: str, make: Make[Made], prefetch: int = 2
) -> DataLoader[Made]:
    """Batches planned by the lengths of one side."""
    draws = EpochSampler((text.count,), recipe.seed, (), recipe.data.epoch)
    plan = BatchSampler(text.lengths, text.lengths, capacity, recipe.seed, recipe.data.look_ahead, draws)
    planned = (fingerprint, capacity, recipe.seed, recipe.data.look_ahead, draws.epoch)
    tokens = draws.epoch * text.tokens / max(1, text.count)
    return DataLoader(plan, make, hashlib.sha256(repr(planned).encode()).hexdigest(), tokens, prefetch)
