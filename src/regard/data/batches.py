"""The batches of a run: planned, gathered from the shards, packed (ARCHITECTURE idea 5)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from regard.config import Recipe
from regard.data.batch import PairBatch, Position
from regard.data.capacity import capacity_for
from regard.data.draws import Draws
from regard.data.packing import assembled
from regard.data.plan import Plan
from regard.data.prefetch import ahead
from regard.data.prepared import Prepared


class Batches:
    """The batch at any position is a pure function of the prepared data, the recipe and the position.

    Args:
        prepared: ids on disk.
        recipe: ``training.tokens``, ``seed`` and the section ``data`` are read.
        prefetch: batches made in advance in the background; 0: none.
    """

    def __init__(self, prepared: Prepared, recipe: Recipe, prefetch: int = 2) -> None:
        source, target = prepared.source, prepared.target
        self._prepared, self._prefetch = prepared, prefetch
        self.pairs: int = prepared.pairs
        self.source_tokens, self.target_tokens = source.tokens, target.tokens
        longest = max(source.longest, prepared.validation_source.longest)
        self.capacity = capacity_for(recipe.training.tokens, source.tokens, target.tokens, self.pairs, longest)
        draws = Draws(prepared.sizes, recipe.seed, recipe.data.weights, recipe.data.epoch)
        look_ahead = recipe.data.look_ahead
        self.plan = Plan(source.lengths, target.lengths, self.capacity, recipe.seed, look_ahead, draws)
        planned = (prepared.fingerprint, self.capacity, recipe.seed, look_ahead, recipe.data.weights, draws.epoch)
        self.fingerprint = hashlib.sha256(repr(planned).encode()).hexdigest()

    @property
    def batches_per_epoch(self) -> float:
        """About how many batches an epoch has: exact but for the gaps (under 1 %)."""
        return self.plan.draws.epoch * self.target_tokens / self.pairs / self.capacity.target

    def iterate(self, position: Position | None = None) -> Iterator[tuple[PairBatch, Position]]:
        """Batches from a position on, without end, each with the position of the one behind it."""
        made = self._made(position or Position())
        return ahead(made, self._prefetch) if self._prefetch else made

    def _made(self, position: Position) -> Iterator[tuple[PairBatch, Position]]:
        for place, sentences_B in self.plan.batches(position):
            batch = self._batch(place.epoch, sentences_B)
            yield batch, self.plan.after(place)

    def _batch(self, epoch: int, sentences_B: np.ndarray[tuple[int], np.dtype[np.int64]]) -> PairBatch:
        source, target = self._prepared.source, self._prepared.target
        parts = source.gather(epoch, sentences_B), target.gather(epoch, sentences_B)
        return assembled(*parts, self._prepared.vocabularies.target.start, self.capacity, sentences_B)

    @cached_property
    def validation(self) -> list[PairBatch]:
        """The validation pairs in order, each once, packed into batches of the same shape."""
        source, target = self._prepared.validation_source, self._prepared.validation_target
        every = np.arange(source.count)
        lengths = np.stack([source.lengths(0, every), target.lengths(0, every), np.ones_like(every)])
        room = np.array([self.capacity.source, self.capacity.target, self.capacity.sentences])
        start = self._prepared.vocabularies.target.start
        batches, begin = [], 0
        while begin < source.count:
            used = lengths[:, begin : begin + int(room[2])].cumsum(axis=1)
            count = int((used <= room[:, None]).all(axis=0).sum())
            part = every[begin : begin + count]
            batches.append(assembled(source.gather(0, part), target.gather(0, part), start, self.capacity, part))
            begin += count
        return batches
