"""Packed batches of sentence pairs, and of texts with labels: classes per text, or tags per word; word dropout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from regard.config import Recipe
from regard.data.batches.batch import (
    Capacity,
    EncoderBatch,
    Ids,
    Packed,
    PairBatch,
    Position,
    batches_in_order,
    capacity_for,
    make_pair_batch,
    pad_to_capacity,
)
from regard.data.batches.sampler import DataLoader, Made, Make, plan_batches, temper
from regard.data.prepare.shards import CONTINUES, NEIGHBOUR, TAGS, Side
from regard.system.keys import generator
from regard.text.language_tokens import Direction


class PairDataset(Protocol):
    """Prepared pairs of texts: ids of what is read and of what is written.

    ``pairs`` is how many are learned from, ``sizes`` how many of each corpus, ``start`` what begins a target,
    ``directions`` the languages of each corpus, where they differ.
    """

    fingerprint: str
    pairs: int
    sizes: tuple[int, ...]
    directions: Sequence[Direction]

    @property
    def source(self) -> Side:
        """Of the training pairs."""

    @property
    def target(self) -> Side:
        """Of the training pairs."""

    @property
    def validation_source(self) -> Side:
        """Of the validation pairs."""

    @property
    def validation_target(self) -> Side:
        """Of the validation pairs."""

    @property
    def start(self) -> int:
        """The symbol that begins what is written."""


class PairBatches(DataLoader[PairBatch]):
    """The batch at any position is a pure function of the prepared data, the recipe and the position.

    Args:
        prepared: ids on disk.
        recipe: ``training.tokens``, ``seed`` and the section ``data`` are read.
        source: what is read of each training pair; default: the prepared ids.
    """

    def __init__(self, prepared: PairDataset, recipe: Recipe, source: Side | None = None) -> None:
        source, target = prepared.source if source is None else source, prepared.target
        self._prepared, self.pairs = prepared, prepared.pairs
        longest = max(source.longest, prepared.validation_source.longest)
        self.capacity = capacity_for(recipe.training.shard_tokens, source.tokens, target.tokens, self.pairs, longest)
        lengths, fingerprint, weights = (source.lengths, target.lengths), prepared.fingerprint, recipe.data.weights
        if recipe.data.temperature and prepared.directions:
            weights = temper(prepared.sizes, prepared.directions, recipe.data.temperature)
        plan = plan_batches(lengths, prepared.sizes, target.tokens, self.capacity, recipe, fingerprint, weights)
        super().__init__(partial(self._pack, source, target), *plan)

    def _pack(self, source: Side, target: Side, place: Position, sentences_B: Ids) -> PairBatch:
        parts = source.gather(place.epoch, sentences_B), target.gather(place.epoch, sentences_B)
        return make_pair_batch(*parts, self._prepared.start, self.capacity, sentences_B)

    @cached_property
    def validation(self) -> list[PairBatch]:
        """The validation pairs in order, each once, packed into batches of the same shape."""
        source, target = self._prepared.validation_source, self._prepared.validation_target
        every = np.arange(source.count)
        lengths = [source.lengths(0, every), target.lengths(0, every)]
        room = [self.capacity.source, self.capacity.target]
        return [
            self._pack(source, target, Position(), part)
            for part in batches_in_order(lengths, room, self.capacity.sentences)
        ]


@dataclass(frozen=True)
class TextBatch(EncoderBatch):
    """Texts end to end, and labels end to end: one or several of a text, or one of each token.

    Args:
        text: the ids.
        labels_X: the labels of all texts, end to end.
        counts_B: how many labels each text has.
        sentences: which texts of the data these are.
    """

    labels_X: Ids
    counts_B: Ids
    sentences: Ids


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

    def feed(self, recipe: Recipe, fingerprint: str, make: Make[Made]) -> DataLoader[Made]:
        """Batches of these texts in random order, made by ``make`` of position and texts."""
        text = self.text
        plan = plan_batches((text.lengths,) * 2, (text.count,), text.tokens, self.capacity, recipe, fingerprint)
        return DataLoader(make, *plan)

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


@dataclass(frozen=True)
class WordMarks:
    """The words that packed windows count, end to end.

    Args:
        starts_R, lengths_R: where the pieces of each word lie in the batch.
        counts_B: words of each window.
        tags_R: the numbers of their tags.
        more_B: whether the text of a window continues in the next.
    """

    starts_R: Ids
    lengths_R: Ids
    counts_B: Ids
    tags_R: Ids
    more_B: NDArray[np.bool_]

    @classmethod
    def of(cls, text: Packed, marks_X: Ids) -> WordMarks:
        """The words of windows whose marks lie end to end as their pieces do."""
        last_B = (text.starts_B + text.lengths_B)[: text.count] - 1
        starts = np.flatnonzero(begins_word(marks_X))
        window = np.searchsorted(last_B, starts)
        ends = np.minimum(np.append(starts[1:], len(marks_X)), last_B[window])
        own = marks_X[starts] >= TAGS
        counts_B = np.bincount(window[own], minlength=text.count)
        tags_R = marks_X[starts[own]] - TAGS
        return cls(starts[own], (ends - starts)[own], counts_B, tags_R, marks_X[last_B] == CONTINUES)

    def known_words(self, tags: int) -> tuple[NDArray[np.bool_], Ids]:
        """Which words have a tag below ``tags``, and how many of each window."""
        known_R = self.tags_R < tags
        window = np.repeat(np.arange(len(self.counts_B)), self.counts_B)
        return known_R, np.bincount(window[known_R], minlength=len(self.counts_B))


def begins_word(marks_X: Ids) -> NDArray[np.bool_]:
    """Which pieces begin a word, whichever window counts it."""
    found: NDArray[np.bool_] = (marks_X == NEIGHBOUR) | (marks_X >= TAGS)
    return found


def text_lengths(counts_B: Ids, more_B: NDArray[np.bool_]) -> Ids:
    """Words of each text, from those its windows count; the windows of a text follow each other."""
    ends = np.flatnonzero(~more_B)
    return np.diff(np.concatenate([[0], counts_B.cumsum()[ends]]))
