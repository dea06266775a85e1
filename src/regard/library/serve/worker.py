"""A worker thread for an event loop, with a bounded queue and cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from regard.system.errors import RegardError

WAITING = 16
"""Most waiting items; one page sends at most six requests at once."""
BUSY = "too much is being asked at once; ask again in a moment"
ENDING = "Regard is ending"

T = TypeVar("T")


class WorkerBusy(RegardError):
    """The worker's queue is full, or the worker has stopped."""


_END = object()


@dataclass(eq=False)
class _WorkItem:
    """A queued piece of work.

    Args:
        work: the function to run.
        loop: the caller's.
        said: a queue of values, then ``_END``; an exception in place of a value is raised.
        left: whether the caller is gone.
    """

    work: Callable[[], Iterable[object]]
    loop: asyncio.AbstractEventLoop
    said: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)
    left: bool = False

    def take(self) -> None:
        """Run the work; it stops between two values if the caller is gone."""
        try:
            values = self.work()
            for value in values:
                if self.left:
                    break
                self.deliver(value)
            if isinstance(values, Generator):
                values.close()
            self.deliver(_END)
        except Exception as error:
            self.deliver(error)

    def deliver(self, value: object) -> None:
        """Hand a value to the event loop's thread; a closed loop means the caller is gone."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.said.put_nowait, value)


class Worker:
    """One thread with a queue of at most :data:`WAITING`, used from an event loop without blocking it."""

    def __init__(self) -> None:
        self.waiting: deque[_WorkItem] = deque()
        self.now: _WorkItem | None = None
        """What is running."""
        self._ended = False
        self._changed = threading.Condition()
        self.thread: threading.Thread | None = None

    def start(self, first: Callable[[], object] | None = None) -> None:
        """Start the thread.

        Args:
            first: run before any work; its exceptions are ignored, as later work meets them again.
        """
        self.thread = threading.Thread(target=self._run, args=(first,))
        self.thread.start()

    def end(self) -> None:
        """Fail all waiting items and accept no more."""
        with self._changed:
            self._ended = True
            turns = [*self.waiting, *([self.now] if self.now else [])]
            self.waiting.clear()
            self._changed.notify_all()
        for turn in turns:
            turn.left = True
            turn.deliver(WorkerBusy(ENDING))

    async def call(self, work: Callable[[], T]) -> T:
        """Run the work on the thread and return its result.

        Raises:
            WorkerBusy: the queue is full, or the worker has stopped.
            Exception: what the work raises.
        """
        async with contextlib.aclosing(self.stream(lambda: [work()])) as values:
            return await anext(values)

    async def stream(self, work: Callable[[], Iterable[T]]) -> AsyncGenerator[T, None]:
        """Yield the work's values one by one; closing the generator ends the work, or keeps it from starting.

        Raises:
            WorkerBusy: the queue is full, or the worker has stopped.
            Exception: what the work raises.
        """
        turn = _WorkItem(work, asyncio.get_running_loop())
        with self._changed:
            if self._ended:
                raise WorkerBusy(ENDING)
            if len(self.waiting) >= WAITING:
                raise WorkerBusy(BUSY)
            self.waiting.append(turn)
            self._changed.notify_all()
        try:
            while (value := await turn.said.get()) is not _END:
                if isinstance(value, Exception):
                    raise value
                yield value
        finally:
            turn.left = True
            with self._changed, contextlib.suppress(ValueError):
                self.waiting.remove(turn)

    def _run(self, first: Callable[[], object] | None) -> None:
        if first is not None:
            with contextlib.suppress(Exception):
                first()
        while True:
            with self._changed:
                self.now = None
                self._changed.wait_for(lambda: self.waiting or self._ended)
                if self._ended:
                    return
                self.now = turn = self.waiting.popleft()
            turn.take()
