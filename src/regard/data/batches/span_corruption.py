"""Batches for span corruption: the encoder reads the text, the decoder the missing spans [Raffel20 §3.1.4]."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.config import Masking, Recipe
from regard.data.batches.batch import Capacity, PairBatch, Position, capacity_for
from regard.data.batches.document_windows import Windows
from regard.data.batches.loader import DataLoader
from regard.data.batches.masking import corrupt_spans, corrupted_lengths
from regard.data.batches.packing import batches_in_order, make_pair_batch
from regard.data.batches.sampler import BatchSampler, EpochSampler
from regard.system.keys import generator

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class SpanSymbols:
    """Symbols for span corruption: sentinels, ``</s>`` and the start symbol."""

    sentinels: tuple[int, ...]
    end: int
    start: int


class SpanCorruptionExamples:
    """Windows of running text as pairs; the spans are drawn anew for every batch.

    How long both sides of a window are is known before, so that batches can be planned.

    Args:
        windows: of documents.
        tokens: of a batch's source side, the longer one.
        symbols: of the vocabulary.
        section: the share that is missing, and the mean length of a span.
    """

    def __init__(self, windows: Windows, tokens: int, symbols: SpanSymbols, section: Masking) -> None:
        self.windows, self._symbols, self._section = windows, symbols, section
        source_B, target_B = self._lengths(0, np.arange(windows.count))
        _, longest = corrupted_lengths(np.array([windows.longest]), len(symbols.sentinels), section)
        self.target_tokens = int(target_B.sum())
        turned = capacity_for(tokens, self.target_tokens, int(source_B.sum()), windows.count, int(longest[0]))
        self.capacity = Capacity(turned.target, turned.source, turned.sentences)

    def _lengths(self, epoch: int, windows_B: Ids) -> tuple[Ids, Ids]:
        lengths_B = self.windows.lengths(epoch, windows_B)
        return corrupted_lengths(lengths_B, len(self._symbols.sentinels), self._section)

    def feed(self, recipe: Recipe, fingerprint: str, prefetch: int = 2) -> DataLoader[PairBatch]:
        """The windows in random order; what is missing is a pure function of the seed and the position."""

        def make(place: Position, windows_B: Ids) -> PairBatch:
            random = generator(recipe.seed, "spans", place.epoch, place.block, place.batch)
            return self._assemble(*self._pairs(place.epoch, windows_B, random), windows_B)

        draws = EpochSampler((self.windows.count,), recipe.seed, (), recipe.data.epoch)
        plan = BatchSampler(
            lambda epoch, windows_B: self._lengths(epoch, windows_B)[0],
            lambda epoch, windows_B: self._lengths(epoch, windows_B)[1],
            self.capacity,
            recipe.seed,
            recipe.data.look_ahead,
            draws,
        )
        planned = (fingerprint, self.capacity, recipe.seed, recipe.data.look_ahead, draws.epoch)
        tokens = draws.epoch * self.target_tokens / max(1, self.windows.count)
        return DataLoader(plan, make, hashlib.sha256(repr(planned).encode()).hexdigest(), tokens, prefetch)

    def some(self, seed: int, most: int) -> list[PairBatch]:
        """Windows in order, each once, the same whatever a batch's size; evenly chosen ones, if all hold too much.

        Args:
            seed: of what is missing.
            most: tokens of windows that they may hold together.
        """
        share = min(1.0, most / max(1, self.windows.tokens))
        count = max(1, round(share * self.windows.count))
        windows_B = np.linspace(0, self.windows.count - 1, count).round().astype(np.int64)
        sources, targets = self._pairs(0, windows_B, generator(seed, "validation spans"))
        lengths = [np.array([len(ids) for ids in side], np.int64) for side in (sources, targets)]
        room = [self.capacity.source, self.capacity.target]
        return [
            self._assemble([sources[b] for b in part], [targets[b] for b in part], windows_B[part])
            for part in batches_in_order(lengths, room, self.capacity.sentences)
        ]

    def _pairs(self, epoch: int, windows_B: Ids, random: np.random.Generator) -> tuple[list[Ids], list[Ids]]:
        ids, lengths_B = self.windows.gather(epoch, windows_B)
        symbols, section = self._symbols, self._section
        found = [
            corrupt_spans(text, symbols.sentinels, symbols.end, section, random)
            for text in np.split(ids, lengths_B.cumsum()[:-1])
        ]
        return [source for source, _ in found], [target for _, target in found]

    def _assemble(self, sources: list[Ids], targets: list[Ids], windows_B: Ids) -> PairBatch:
        sides = [(np.concatenate(side), np.array([len(ids) for ids in side], np.int64)) for side in (sources, targets)]
        return make_pair_batch(sides[0], sides[1], self._symbols.start, self.capacity, windows_B)
