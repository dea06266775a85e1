"""The next batches made in the background while one is computed on; results never depend on it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import TypeVar

Item = TypeVar("Item")


class _Failed:
    """What the background thread raised, on its way to the caller."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


_FINISHED = object()


def ahead(items: Iterator[Item], count: int = 2) -> Iterator[Item]:
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
    return _received(ready, stop, thread)


def _received(ready: queue.Queue[object], stop: threading.Event, thread: threading.Thread) -> Iterator[Item]:
    thread.start()  # only now: an iterator dropped before its first item leaves no thread behind
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
