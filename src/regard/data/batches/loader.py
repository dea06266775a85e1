"""Data loader with background prefetching; the batches do not depend on timing."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.config import Recipe
from regard.data.batches.batch import Batch, Capacity, Position
from regard.data.batches.sampler import BatchSampler, EpochSampler, Lengths

Item = TypeVar("Item")


def iterate_ahead(items: Iterator[Item], count: int = 2) -> Iterator[Item]:
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


Made = TypeVar("Made", bound=Batch)
Make = Callable[[Position, NDArray[np.int64]], Made]
"""A pure function of a position and the sentences of the batch there."""


class DataLoader(Generic[Made]):
    """The batch at any position is a pure function of the prepared data, the recipe and the position.

    Args:
        make: gathers and packs the sentences of a batch.
        plan: which sentences these are.
        fingerprint: changes when the data, or the plan, does.
        tokens: of an epoch, about; those that the plan packs by.
        prefetch: batches made in advance in the background; 0: none.
    """

    def __init__(
        self, make: Make[Made], plan: BatchSampler, fingerprint: str, tokens: float, prefetch: int = 2
    ) -> None:
        self.plan, self._make, self.fingerprint = plan, make, fingerprint
        self._tokens, self._prefetch = tokens, prefetch

    @property
    def batches_per_epoch(self) -> float:
        """About how many batches an epoch has: exact but for the gaps (under 1 %)."""
        return self._tokens / self.plan.capacity.target

    def iterate(self, position: Position | None = None) -> Iterator[tuple[Made, Position]]:
        """Endless batches from a position on, each with the position of the next one."""
        batches = self.plan.batches(position or Position())
        made = ((self._make(place, sentences_B), self.plan.after(place)) for place, sentences_B in batches)
        return iterate_ahead(made, self._prefetch) if self._prefetch else made


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
