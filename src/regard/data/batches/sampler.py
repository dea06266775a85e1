"""Samplers and the data loader: which sentences, in which batch, as a pure function of (seed, epoch).

The loader prefetches batches in the background; they do not depend on timing.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.config import Recipe
from regard.data.batches.batch import EVERY_BATCH, Batch, BatchRange, Capacity, Ids, Position
from regard.system.errors import RegardError, UsageError
from regard.system.keys import generator

BLOCK = 65_536
Lengths = NDArray[np.integer] | Callable[[int, Ids], Ids]
"""Tokens of every sentence; or, where they differ from epoch to epoch, a function of (epoch, sentences)."""
TRIES = 256
"""Random small sets of waiting sentences that are tried at a batch's end; one of them nearly always fits to a token."""
DEPTH = 12
"""Sentences of such a set."""
GAP = 5.0
"""The end of a batch begins when room for about this many average sentences is left."""
AHEAD = 2
"""Batches that are made in advance at least."""
Item = TypeVar("Item")
Made = TypeVar("Made", bound=Batch)
Make = Callable[[Position, Ids], Made]
"""A pure function of a position and the sentences of the batch there."""


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

    def of(self, epoch: int) -> Ids:
        """The sentences of an epoch, shuffled."""
        shuffle = generator(self.seed, "shuffle", epoch)
        if self._whole:
            return shuffle.permutation(sum(self.sizes))
        first, parts = 0, []
        for number, (size, share) in enumerate(zip(self.sizes, self._shares, strict=True)):
            if share:
                begin = epoch * share  # of the endless row of shuffled passes over this corpus
                turns = range(begin // size, (begin + share - 1) // size + 1)
                passes = [generator(self.seed, "pass", number, turn).permutation(size) for turn in turns]
                parts.append(first + np.concatenate(passes)[begin - turns[0] * size :][:share])
            first += size
        return shuffle.permutation(np.concatenate(parts))


def refuse_weights(weights: Sequence[float], corpora: int) -> None:
    """Raise a UsageError unless there are no weights or one per corpus, with something to draw from."""
    if weights and len(weights) != corpora:
        raise UsageError(f"{len(weights)} weights for {corpora} corpora; give one for each", "data.weights")
    if weights and (min(weights) < 0 or sum(weights) <= 0):
        raise UsageError("weights must not be negative, nor all be zero", "data.weights")


def temper(sizes: Sequence[int], directions: Sequence[Hashable], temperature: float) -> tuple[float, ...]:
    """The weight of each corpus where a direction of n pairs is drawn as n to the power of 1/T [Fan21 §4.2].

    Args:
        sizes: pairs of each corpus, which share that of their direction by size.
        directions: of each corpus.
        temperature: T.
    """
    whole = Counter[Hashable]()
    for size, direction in zip(sizes, directions, strict=True):
        whole[direction] += size
    return tuple(
        size * whole[direction] ** (1 / temperature - 1) if size else 0.0
        for size, direction in zip(sizes, directions, strict=True)
    )


def _shares(total: int, weights: Sequence[float]) -> list[int]:
    """``total`` shared out by weight in whole numbers, the largest remainders rounded up."""
    exact = np.array(weights, dtype=np.float64) / sum(weights) * total
    shares = np.floor(exact).astype(np.int64)
    shares[np.argsort(shares - exact, kind="stable")[: total - int(shares.sum())]] += 1
    return [int(share) for share in shares]


class BatchSampler:
    """Which sentences are in which batch: epoch after epoch, each sentence once per epoch.

    Args:
        source_lengths: tokens of each source sentence, ``</s>`` counted.
        target_lengths: of each target sentence.
        capacity: the shape of every batch.
        draws: which sentences an epoch holds.
        look_ahead: sentences waiting to fill the gap at a batch's end.
    """

    def __init__(
        self, source_lengths: Lengths, target_lengths: Lengths, capacity: Capacity, draws: EpochSampler, look_ahead: int
    ) -> None:
        self.capacity, self.draws, self.look_ahead = capacity, draws, look_ahead
        self.blocks = -(-draws.epoch // BLOCK)
        """Of an epoch."""
        self._lengths = (source_lengths, target_lengths)
        self._packed: tuple[tuple[int, int], list[Ids]] | None = None
        self._drawn: tuple[int, Ids] | None = None

    def batches(self, position: Position | None = None) -> Iterator[tuple[Position, Ids]]:
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

    def block(self, epoch: int, block: int) -> list[Ids]:
        """The batches of one block; the latest one is cached."""
        latest = self._packed  # read once: several iterators, each in a thread, may share a plan
        if latest is None or latest[0] != (epoch, block):
            drawn = self._drawn
            if drawn is None or drawn[0] != epoch:
                drawn = self._drawn = (epoch, self.draws.of(epoch))
            sentences_B = drawn[1][block * BLOCK : (block + 1) * BLOCK]
            source_B, target_B = (
                np.asarray(side(epoch, sentences_B) if callable(side) else side[sentences_B], dtype=np.int64)
                for side in self._lengths
            )
            longest, room = (int(source_B.max()), int(target_B.max())), (self.capacity.source, self.capacity.target)
            if longest[0] > room[0] or longest[1] > room[1]:
                raise RegardError(f"a pair of {longest} tokens does not fit into a batch of {room}", "training.tokens")
            chosen = BinPacking(source_B, target_B, self.capacity, self.look_ahead).batches()
            latest = self._packed = ((epoch, block), [sentences_B[places] for places in chosen])
        return latest[1]


class BinPacking:
    """Packs one block in order; sentences that do not fit wait and open the next batch.

    Args:
        source_B: tokens of each source sentence of the block, in shuffled order.
        target_B: of each target sentence.
        capacity: of a batch.
        look_ahead: sentences waiting to fill the gap.
    """

    def __init__(self, source_B: Ids, target_B: Ids, capacity: Capacity, look_ahead: int) -> None:
        self._source, self._target = source_B, target_B
        self._capacity, self._look_ahead = capacity, look_ahead
        self._ratio = float(source_B.sum()) / float(target_B.sum())
        self._slack = max(0.0, capacity.source - self._ratio * capacity.target)
        self._margin = GAP * np.array([source_B.mean(), target_B.mean()])
        ranks = np.random.Generator(np.random.PCG64(0)).random((TRIES, max(DEPTH, look_ahead)))
        self._tries = np.argsort(ranks, axis=1)
        self._sets: dict[int, Ids] = {}

    def batches(self) -> list[Ids]:
        """The places (in the block) of each batch's sentences; every place once."""
        queue = np.arange(len(self._source))
        head, packed = 0, []
        while head < len(queue):
            batch, head = self._next(queue, head)
            packed.append(batch)
        return packed

    def _next(self, queue: Ids, head: int) -> tuple[Ids, int]:
        """Fill one batch from the head of the queue; skipped sentences move behind it."""
        begin = head
        aside: list[int] = []
        taken: list[Ids] = []
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

    def _run(self, queue: Ids, head: int, room: list[int]) -> int:
        """Number of sentences at the head of the queue that fit without using the reserve for the end."""
        ahead = queue[head : head + room[2]]
        source = np.searchsorted(self._source[ahead].cumsum(), room[0] - self._margin[0], side="right")
        target = np.searchsorted(self._target[ahead].cumsum(), room[1] - self._margin[1], side="right")
        return int(min(source, target))

    def _take(self, room: list[int], places: Ids) -> None:
        room[0] -= int(self._source[places].sum())
        room[1] -= int(self._target[places].sum())
        room[2] -= len(places)

    def _closing(self, waiting: Ids, room: list[int]) -> list[int]:
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

    def _balancing(self, source: Ids, target: Ids, free: NDArray[np.bool_], room: list[int]) -> int:
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

    def _best_set(self, source: Ids, target: Ids, room: list[int]) -> Ids:
        """The prefix of many random orders that leaves the least room."""
        if (count := len(source)) not in self._sets:
            kept = self._tries[self._tries < count].reshape(len(self._tries), count)
            self._sets[count] = np.ascontiguousarray(kept[:, :DEPTH])
        sets = self._sets[count]
        source_left = room[0] - source[sets].cumsum(axis=1)
        target_left = room[1] - target[sets].cumsum(axis=1)
        fits = (source_left >= 0) & (target_left >= 0)
        fits[:, room[2] :] = False
        waste = np.where(fits, target_left + np.maximum(source_left - self._slack, 0.0), np.inf)
        row, depth = divmod(int(waste.argmin()), waste.shape[1])
        return sets[row, : depth + 1]


def iterate_ahead(items: Iterator[Item], count: int) -> Iterator[Item]:
    """The same items in the same order, up to ``count`` of them made in advance by one thread.

    Closing the iterator (or dropping it) stops the thread and waits for it. An error of ``items`` is raised where its
    item would have come.
    """
    end, owner = object(), os.getpid()
    thread = ThreadPoolExecutor(1, "regard-batches")  # it starts with the first item that is asked for
    try:
        waiting = deque(thread.submit(next, items, end) for _ in range(count + 1))
        while (item := waiting.popleft().result()) is not end:
            waiting.append(thread.submit(next, items, end))
            yield item  # type: ignore[misc]
            if os.getpid() != owner:
                raise RuntimeError("the thread that makes batches is gone: the process was forked")
    finally:
        thread.shutdown(cancel_futures=True)


class DataLoader(Generic[Made]):
    """The batch at any position is a pure function of the prepared data, the recipe and the position.

    Args:
        make: gathers and packs the sentences of a batch.
        plan: which sentences these are.
        fingerprint: changes when the data, or the plan, does.
        tokens: of an epoch, about; those that the plan packs by.
    """

    def __init__(self, make: Make[Made], plan: BatchSampler, fingerprint: str, tokens: float) -> None:
        self.plan, self._make, self.fingerprint = plan, make, fingerprint
        self.batches_per_epoch = tokens / plan.capacity.target
        """About: exact but for the gaps (under 1 %)."""

    def iterate(
        self, position: Position | None = None, among: BatchRange = EVERY_BATCH
    ) -> Iterator[tuple[Made, Position]]:
        """Endless batches of a share from a position on, each with the position that follows its group."""
        made = self._made(self.plan.batches(position or Position()), among)
        return iterate_ahead(made, max(AHEAD, among.end - among.first))

    def _made(self, batches: Iterator[tuple[Position, Ids]], among: BatchRange) -> Iterator[tuple[Made, Position]]:
        while True:
            group = list(islice(batches, among.of))
            after = self.plan.after(group[-1][0])
            for place, sentences_B in group[among.first : among.end]:
                yield self._make(place, sentences_B), after


def plan_batches(
    lengths: tuple[Lengths, Lengths],
    sizes: Sequence[int],
    tokens: int,
    capacity: Capacity,
    recipe: Recipe,
    fingerprint: str,
    weights: Sequence[float] | None = None,
) -> tuple[BatchSampler, str, float]:
    """The plan of a recipe's batches, its fingerprint, and about how many tokens of the target side an epoch has.

    Args:
        lengths: tokens of each sentence, of source and target.
        sizes: sentences of each corpus.
        tokens: of the target side of them all.
        capacity: the shape of every batch.
        recipe: ``seed`` and the section ``data`` are read.
        fingerprint: of the data.
        weights: of the corpora, for data that can be weighted; empty: by size.
    """
    data = recipe.data
    draws = EpochSampler(sizes, recipe.seed, weights or (), data.epoch)
    rests = (fingerprint, capacity, recipe.seed, data.look_ahead, *([] if weights is None else [weights]), draws.epoch)
    digest = hashlib.sha256(repr(rests).encode()).hexdigest()
    return BatchSampler(*lengths, capacity, draws, data.look_ahead), digest, draws.epoch * tokens / max(1, sum(sizes))
