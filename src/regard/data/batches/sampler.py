"""Epoch and batch samplers: which sentences, in which order, as a pure function of (seed, epoch)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from regard.data.batches.batch import Capacity, Position
from regard.data.batches.bin_packing import BinPacking
from regard.system.errors import RegardError, UsageError
from regard.system.keys import generator


class EpochSampler:
    """Every sentence once an epoch; or, of weighted corpora, a fixed number of draws.

    A weighted corpus gives its share of each epoch from shuffled passes over it: no sentence comes a third time before
    every other of its corpus came a second time.

    Args:
        sizes: sentences of each corpus; their numbers follow each other.
        seed: of the shuffling.
        weights: one for each corpus; empty: by size.
        epoch: draws of an epoch; 0: as many as there are sentences.
    """

    def __init__(self, sizes: Sequence[int], seed: int, weights: Sequence[float] = (), epoch: int = 0) -> None:
        refuse_weights(weights, len(sizes))
        self.sizes, self.seed = tuple(sizes), seed
        self.epoch = epoch or sum(sizes)
        self._whole = not weights and self.epoch == sum(sizes)
        present = [weight if size else 0 for weight, size in zip(weights or sizes, sizes, strict=True)]
        if not sum(present):
            raise UsageError("no corpus with a weight above zero holds a sentence", "data.weights")
        self._shares = _shares(self.epoch, present)

    def of(self, epoch: int) -> NDArray[np.int64]:
        """The sentences of an epoch, shuffled."""
        shuffle = generator(self.seed, "shuffle", epoch)
        if self._whole:
            return shuffle.permutation(sum(self.sizes))
        first, parts = 0, []
        for number, (size, share) in enumerate(zip(self.sizes, self._shares, strict=True)):
            if share:
                parts.append(first + self._passes(number, size, epoch * share, share))
            first += size
        return shuffle.permutation(np.concatenate(parts))

    def _passes(self, corpus: int, size: int, begin: int, count: int) -> NDArray[np.int64]:
        """``count`` sentences from draw ``begin`` on of the endless row of shuffled passes over one corpus."""
        first, last = begin // size, (begin + count - 1) // size
        passes = [generator(self.seed, "pass", corpus, turn).permutation(size) for turn in range(first, last + 1)]
        return np.concatenate(passes)[begin - first * size :][:count]


def refuse_weights(weights: Sequence[float], corpora: int) -> None:
    """Raise a UsageError unless there are no weights or one per corpus, with something to draw from."""
    if weights and len(weights) != corpora:
        raise UsageError(f"{len(weights)} weights for {corpora} corpora; give one for each", "data.weights")
    if weights and (min(weights) < 0 or sum(weights) <= 0):
        raise UsageError("weights must not be negative, nor all be zero", "data.weights")


def _shares(total: int, weights: Sequence[float]) -> list[int]:
    """``total`` shared out by weight in whole numbers, the largest remainders rounded up."""
    exact = np.array(weights, dtype=np.float64) / sum(weights) * total
    shares = np.floor(exact).astype(np.int64)
    shares[np.argsort(shares - exact, kind="stable")[: total - int(shares.sum())]] += 1
    return [int(share) for share in shares]


BLOCK = 65_536
Lengths = NDArray[np.integer] | Callable[[int, NDArray[np.int64]], NDArray[np.int64]]
"""Tokens of every sentence; or, where they differ from epoch to epoch, a function of (epoch, sentences)."""


class BatchSampler:
    """Which sentences are in which batch: epoch after epoch, each sentence once per epoch.

    Args:
        source_lengths: tokens of each source sentence, ``</s>`` counted.
        target_lengths: of each target sentence.
        capacity: the shape of every batch.
        seed: of the shuffling.
        look_ahead: sentences waiting to fill the gap at a batch's end.
        draws: which sentences an epoch holds; default: each once.
    """

    def __init__(
        self,
        source_lengths: Lengths,
        target_lengths: Lengths,
        capacity: Capacity,
        seed: int,
        look_ahead: int = 64,
        draws: EpochSampler | None = None,
    ) -> None:
        if draws is None:
            if callable(source_lengths):
                raise TypeError("lengths that differ by epoch need draws")
            draws = EpochSampler((len(source_lengths),), seed)
        self.capacity, self.draws, self.look_ahead = capacity, draws, look_ahead
        self._lengths = (source_lengths, target_lengths)
        self._packed: tuple[tuple[int, int], list[NDArray[np.int64]]] | None = None
        self._drawn: tuple[int, NDArray[np.int64]] | None = None

    @property
    def blocks(self) -> int:
        """Blocks of an epoch."""
        return -(-self.draws.epoch // BLOCK)

    def batches(self, position: Position | None = None) -> Iterator[tuple[Position, NDArray[np.int64]]]:
        """Each batch's position and sentences, from a position on, without end."""
        position = position or Position()
        epoch, block, batch = position.epoch, position.block, position.batch
        while True:
            if block >= self.blocks:
                epoch, block, batch = epoch + 1, 0, 0
            packed = self.block(epoch, block)
            for number in range(batch, len(packed)):
                yield Position(epoch, block, number), packed[number]
            block, batch = block + 1, 0

    def after(self, position: Position) -> Position:
        """The position of the batch that follows."""
        epoch, block, batch = position.epoch, position.block, position.batch + 1
        if batch >= len(self.block(epoch, block)):
            block, batch = block + 1, 0
        return Position(epoch, block, batch) if block < self.blocks else Position(epoch + 1)

    def block(self, epoch: int, block: int) -> list[NDArray[np.int64]]:
        """The batches of one block; the latest one is cached."""
        latest = self._packed  # read once: several iterators, each in a thread, may share a plan
        if latest is None or latest[0] != (epoch, block):
            sentences_B = self._order(epoch)[block * BLOCK : (block + 1) * BLOCK]
            source_B, target_B = (self._of(side, epoch, sentences_B) for side in self._lengths)
            self._check(source_B, target_B)
            chosen = BinPacking(source_B, target_B, self.capacity, self.look_ahead).batches()
            latest = self._packed = ((epoch, block), [sentences_B[places] for places in chosen])
        return latest[1]

    def _order(self, epoch: int) -> NDArray[np.int64]:
        latest = self._drawn
        if latest is None or latest[0] != epoch:
            latest = self._drawn = (epoch, self.draws.of(epoch))
        return latest[1]

    @staticmethod
    def _of(lengths: Lengths, epoch: int, sentences_B: NDArray[np.int64]) -> NDArray[np.int64]:
        found = lengths(epoch, sentences_B) if callable(lengths) else lengths[sentences_B]
        return np.asarray(found, dtype=np.int64)

    def _check(self, source_B: NDArray[np.int64], target_B: NDArray[np.int64]) -> None:
        longest, room = (int(source_B.max()), int(target_B.max())), (self.capacity.source, self.capacity.target)
        if longest[0] > room[0] or longest[1] > room[1]:
            raise RegardError(f"a pair of {longest} tokens does not fit into a batch of {room}", "training.tokens")
