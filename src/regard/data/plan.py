"""The plan of packed batches: a pure function of (seed, lengths, capacity, position); nothing of it is ever saved.

Random packed batches: sentences in shuffled order fill a fixed token capacity on both sides; a few waiting ones close
the gap at the end. Each block of 65,536 shuffled sentences is packed on its own, so any position is
reached without replaying what came before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from regard.data.batch import Position
from regard.data.capacity import Capacity
from regard.data.draws import Draws
from regard.data.filling import Filling
from regard.errors import RegardError

BLOCK = 65_536
Lengths = NDArray[np.integer] | Callable[[int, NDArray[np.int64]], NDArray[np.int64]]
"""Tokens of every sentence; or, where they differ from epoch to epoch, a function of (epoch, sentences)."""


class Plan:
    """Which sentences stand in which batch, for ever: epoch after epoch, each sentence once in each.

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
        draws: Draws | None = None,
    ) -> None:
        if draws is None:
            if callable(source_lengths):
                raise TypeError("lengths that differ by epoch need draws")
            draws = Draws((len(source_lengths),), seed)
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
        """The batches of one block; the latest one made is kept."""
        latest = self._packed  # looked at once: several iterators, each in a thread, may share a plan
        if latest is None or latest[0] != (epoch, block):
            sentences_B = self._shuffled(epoch)[block * BLOCK : (block + 1) * BLOCK]
            source_B, target_B = (self._of(side, epoch, sentences_B) for side in self._lengths)
            self._check(source_B, target_B)
            chosen = Filling(source_B, target_B, self.capacity, self.look_ahead).batches()
            latest = self._packed = ((epoch, block), [sentences_B[places] for places in chosen])
        return latest[1]

    def _shuffled(self, epoch: int) -> NDArray[np.int64]:
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
