"""Batches of sentence pairs: planned, gathered from the shards, packed (ARCHITECTURE idea 5)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from regard.config import Recipe
from regard.data.batches.batch import Ids, PairBatch, Position, batches_in_order, capacity_for, make_pair_batch
from regard.data.batches.loader import DataLoader, plan_batches
from regard.data.prepare.prepared import PreparedPairs
from regard.data.prepare.shards import Side


class PairBatches(DataLoader[PairBatch]):
    """The batch at any position is a pure function of the prepared data, the recipe and the position.

    Args:
        prepared: ids on disk.
        recipe: ``training.tokens``, ``seed`` and the section ``data`` are read.
    """

    def __init__(self, prepared: PreparedPairs, recipe: Recipe) -> None:
        source, target = prepared.source, prepared.target
        self._prepared, self.pairs = prepared, prepared.pairs
        longest = max(source.longest, prepared.validation_source.longest)
        self.capacity = capacity_for(recipe.training.tokens, source.tokens, target.tokens, self.pairs, longest)
        lengths, fingerprint, weights = (source.lengths, target.lengths), prepared.fingerprint, recipe.data.weights
        plan = plan_batches(lengths, prepared.sizes, target.tokens, self.capacity, recipe, fingerprint, weights)
        super().__init__(self._batch, *plan)

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
