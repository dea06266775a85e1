"""Bin packing of sentence pairs into batches of fixed capacity, over 99 % full (ARCHITECTURE idea 1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regard.data.batches.batch import Capacity

TRIES = 256
"""Random small sets of waiting sentences that are tried at a batch's end; one of them nearly always fits to a token."""
DEPTH = 12
"""Sentences of such a set."""
GAP = 5.0
"""The end of a batch begins when room for about this many average sentences is left."""


class BinPacking:
    """Packs one block in order; sentences that do not fit wait and open the next batch.

    Args:
        source_B: tokens of each source sentence of the block, in shuffled order.
        target_B: of each target sentence.
        capacity: of a batch.
        look_ahead: sentences waiting to fill the gap.
    """

    def __init__(
        self, source_B: NDArray[np.int64], target_B: NDArray[np.int64], capacity: Capacity, look_ahead: int
    ) -> None:
        self._source, self._target = source_B, target_B
        self._capacity, self._look_ahead = capacity, look_ahead
        self._ratio = float(source_B.sum()) / float(target_B.sum())
        self._slack = max(0.0, capacity.source - self._ratio * capacity.target)
        self._margin = GAP * np.array([source_B.mean(), target_B.mean()])
        ranks = np.random.Generator(np.random.PCG64(0)).random((TRIES, max(DEPTH, look_ahead)))
        self._tries = np.argsort(ranks, axis=1)
        self._sets: dict[int, NDArray[np.int64]] = {}

    def batches(self) -> list[NDArray[np.int64]]:
        """The places (in the block) of each batch's sentences; every place once."""
        queue = np.arange(len(self._source))
        head, packed = 0, []
        while head < len(queue):
            batch, head = self._next(queue, head)
            packed.append(batch)
        return packed

    def _next(self, queue: NDArray[np.int64], head: int) -> tuple[NDArray[np.int64], int]:
        """Fill one batch from the head of the queue; skipped sentences move behind it."""
        begin = head
        aside: list[int] = []
        taken: list[NDArray[np.int64]] = []
        room = [self._capacity.source, self._capacity.target, self._capacity.sentences]
        while len(aside) < self._look_ahead:
            run = self._run(queue, head, room)
            taken.append(queue[head : head + run])
            self._take(room, taken[-1])
            head += run
            if head >= len(queue) or not room[2] or (room[0] < 2 * self._margin[0] or room[1] < 2 * self._margin[1]):
                break
            aside.append(int(queue[head]))  # too long for what is left: it opens the next batch
            head += 1
        more = max(0, self._look_ahead - len(aside))
        waiting = np.concatenate([np.array(aside, dtype=np.int64), queue[head : head + more]])
        head += len(waiting) - len(aside)
        chosen = self._closing(waiting, room)
        rest = np.delete(waiting, chosen)
        batch = np.concatenate([*taken, waiting[chosen]])
        head -= len(rest)
        queue[head : head + len(rest)] = rest
        queue[begin:head] = batch
        return batch, head

    def _run(self, queue: NDArray[np.int64], head: int, room: list[int]) -> int:
        """Number of sentences at the head of the queue that fit without using the reserve for the end."""
        ahead = queue[head : head + room[2]]
        source = np.searchsorted(self._source[ahead].cumsum(), room[0] - self._margin[0], side="right")
        target = np.searchsorted(self._target[ahead].cumsum(), room[1] - self._margin[1], side="right")
        return int(min(source, target))

    def _take(self, room: list[int], places: NDArray[np.int64]) -> None:
        room[0] -= int(self._source[places].sum())
        room[1] -= int(self._target[places].sum())
        room[2] -= len(places)

    def _closing(self, waiting: NDArray[np.int64], room: list[int]) -> list[int]:
        """The waiting sentences that best fill the room left on both sides: balance first, then the best set."""
        room, chosen = list(room), []
        free = np.ones(len(waiting), dtype=np.bool_)
        source, target = self._source[waiting], self._target[waiting]
        while (place := self._balancing(source, target, free, room)) >= 0:
            free[place] = False
            chosen.append(place)
            self._take(room, waiting[place : place + 1])
        while True:
            left = np.flatnonzero(free & (source <= room[0]) & (target <= room[1]))
            if not len(left) or room[2] <= 0:
                return chosen
            best = left[self._best_set(source[left], target[left], room)]
            free[best] = False
            chosen += best.tolist()
            self._take(room, waiting[best])

    def _balancing(
        self, source: NDArray[np.int64], target: NDArray[np.int64], free: NDArray[np.bool_], room: list[int]
    ) -> int:
        """The sentence that best brings the room on both sides back into the corpus's ratio; -1: it is."""
        excess = room[0] - self._ratio * room[1] - self._slack
        if abs(excess) <= max(2.0, self._slack) or room[2] <= 1 or room[1] <= self._margin[1]:
            return -1
        fits = free & (source <= room[0]) & (target <= room[1])
        if not fits.any():
            return -1
        after = np.abs(excess - (source - self._ratio * target))
        after[~fits] = np.inf
        best = int(after.argmin())
        return best if after[best] < abs(excess) - 1.0 else -1

    def _best_set(self, source: NDArray[np.int64], target: NDArray[np.int64], room: list[int]) -> NDArray[np.int64]:
        """The prefix of many random orders that leaves the least room."""
        sets = self._orders(len(source))
        source_left = room[0] - source[sets].cumsum(axis=1)
        target_left = room[1] - target[sets].cumsum(axis=1)
        fits = (source_left >= 0) & (target_left >= 0)
        fits[:, room[2] :] = False
        waste = np.where(fits, target_left + np.maximum(source_left - self._slack, 0.0), np.inf)
        row, depth = divmod(int(waste.argmin()), waste.shape[1])
        return sets[row, : depth + 1]

    def _orders(self, count: int) -> NDArray[np.int64]:
        """Random permutations of ``count`` items, truncated to the search depth; the same at every call."""
        if count not in self._sets:
            kept = self._tries[self._tries < count].reshape(len(self._tries), count)
            self._sets[count] = np.ascontiguousarray(kept[:, :DEPTH])
        return self._sets[count]
