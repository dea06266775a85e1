"""Batches of sentence pairs: planned, gathered from the shards, packed (ARCHITECTURE idea 5)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from regard.config import Recipe
from regard.data.batches.batch import PairBatch, Position, capacity_for
from regard.data.batches.loader import DataLoader
from regard.data.batches.packing import Ids, batches_in_order, make_pair_batch
from regard.data.batches.sampler import BatchSampler, EpochSampler
from regard.data.prepare.prepared import PreparedPairs
from regard.data.prepare.shards import Side


class PairBatches:
    """The batch at any position is a pure function of the prepared data, the recipe and the position.

    Args:
        prepared: ids on disk.
        recipe: ``training.tokens``, ``seed`` and the section ``data`` are read.
        prefetch: batches made in advance in the background; 0: none.
    """

    def __init__(self, prepared: PreparedPairs, recipe: Recipe, prefetch: int = 2) -> None:
        source, target = prepared.source, prepared.target
        self._prepared = prepared
        self.pairs: int = prepared.pairs
        self.source_tokens, self.target_tokens = source.tokens, target.tokens
        longest = max(source.longest, prepared.validation_source.longest)
        self.capacity = capacity_for(recipe.training.tokens, source.tokens, target.tokens, self.pairs, longest)
        draws = EpochSampler(prepared.sizes, recipe.seed, recipe.data.weights, recipe.data.epoch)
        look_ahead = recipe.data.look_ahead
        self.plan = BatchSampler(source.lengths, target.lengths, self.capacity, recipe.seed, look_ahead, draws)
        planned = (prepared.fingerprint, self.capacity, recipe.seed, look_ahead, recipe.data.weights, draws.epoch)
        self.fingerprint = hashlib.sha256(repr(planned).encode()).hexdigest()
        tokens = draws.epoch * self.target_tokens / self.pairs
        self._feed = DataLoader(self.plan, self._batch, self.fingerprint, tokens, prefetch)

    @property
    def batches_per_epoch(self) -> float:
        """About how many batches an epoch has: exact but for the gaps (under 1 %)."""
        return self._feed.batches_per_epoch

    def iterate(self, position: Position | None = None) -> Iterator[tuple[PairBatch, Position]]:
        """Endless batches from a position on, each with the position of the next one."""
        return self._feed.iterate(position)

    def _batch(self, place: Position, sentences_B: Ids) -> PairBatch:
        return self._pack(self._prepared.source, self._prepared.target, place.epoch, sentences_B)

    def _pack(self, source: Side, target: Side, epoch: int, sentences_B: Ids) -> PairBatch:
        parts = source.gather(epoch, sentences_B), target.gather(epoch, sentences_B)
        return make_pair_batch(*parts, self._prepared.vocabularies.target.start, self.capacity, sentences_B)

    @cached_property
    def validation(self) -> list[PairBatch]:
        """The validation pairs in order, each once, packed into batches of the same shape."""
        source, target = self._prepared.validation_source, self._prepared.validation_target
        every = np.arange(source.count)
        lengths = [source.lengths(0, every), target.lengths(0, every)]
        room = [self.capacity.source, self.capacity.target]
        return [
            self._pack(source, target, 0, part) for part in batches_in_order(lengths, room, self.capacity.sentences)
        ]
