"""Data loader with background prefetching; the batches do not depend on timing."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.data.batches.batch import Batch, Position
from regard.data.batches.sampler import BatchSampler

Item = TypeVar("Item")


class _Failed:
    """An exception of the background thread, to be raised in the caller."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


_FINISHED = object()


def iterate_ahead(items: Iterator[Item], count: int = 2) -> Iterator[Item]:
    """The same items in the same order, up to ``count`` of them made in advance by one thread.

    Closing the iterator (or dropping it) stops the thread and waits for it. An error of ``items`` is raised where its
    item would have come.
    """
    ready: queue.Queue[object] = queue.Queue(maxsize=max(1, count))
    stop = threading.Event()

    def put(item: object) -> bool:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for item in items:
                if not put(item):
                    return
            put(_FINISHED)
        except BaseException as error:  # handed over, whatever it is
            put(_Failed(error))

    thread = threading.Thread(target=work, name="regard-batches", daemon=True)
    return _receive(ready, stop, thread)


def _receive(ready: queue.Queue[object], stop: threading.Event, thread: threading.Thread) -> Iterator[Item]:
    thread.start()  # only now: an iterator dropped before its first item leaves no thread running
    try:
        while True:
            try:
                item = ready.get(timeout=1.0)
            except queue.Empty:
                if thread.is_alive():
                    continue
                raise RuntimeError("the thread that makes batches is gone (was the process forked?)") from None
            if item is _FINISHED:
                return
            if isinstance(item, _Failed):
                raise item.error
            yield item  # type: ignore[misc]
    finally:
        stop.set()
        if thread.is_alive():
            thread.join()


Made = TypeVar("Made", bound=Batch)
Make = Callable[[Position, NDArray[np.int64]], Made]
"""A pure function of a position and the sentences of the batch there."""


class DataLoader(Generic[Made]):
    """The batch at any position is a pure function of the prepared data, the recipe and the position.

    Args:
        plan: which sentences are in which batch.
        make: gathers and packs them.
        fingerprint: changes when the data, or the plan, does.
        tokens: of an epoch, about; those that the plan packs by.
        prefetch: batches made in advance in the background; 0: none.
    """

    def __init__(
        self, plan: BatchSampler, make: Make[Made], fingerprint: str, tokens: float, prefetch: int = 2
    ) -> None:
        self.plan, self._make, self.fingerprint = plan, make, fingerprint
        self._tokens, self._prefetch = tokens, prefetch

    @property
    def batches_per_epoch(self) -> float:
        """About how many batches an epoch has: exact but for the gaps (under 1 %)."""
        return self._tokens / self.plan.capacity.target

    def iterate(self, position: Position | None = None) -> Iterator[tuple[Made, Position]]:
        """Endless batches from a position on, each with the position of the next one."""
        made = self._make_batches(position or Position())
        return iterate_ahead(made, self._prefetch) if self._prefetch else made

    def _make_batches(self, position: Position) -> Iterator[tuple[Made, Position]]:
        for place, sentences_B in self.plan.batches(position):
            yield self._make(place, sentences_B), self.plan.after(place)
