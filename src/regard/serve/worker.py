"""A thread that works while pages are answered: one thing at a time, in a queue that has an end."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from regard.errors import RegardError

WAITING = 16
"""How many may wait; one page asks at most six things at once."""
BUSY = "too much is being asked at once; ask again in a moment"
ENDING = "Regard is ending"

T = TypeVar("T")


class Busy(RegardError):
    """This cannot be done now."""


@dataclass(frozen=True)
class _Failed:
    """What was raised instead of a value."""

    error: Exception


_END = object()


@dataclass(eq=False)
class _Turn:
    """What somebody waits for.

    Args:
        work: what is to be done when the turn comes.
        loop: of whoever waits.
        said: values, then ``_END``; or ``_Failed`` in their midst.
        left: whether nobody waits any more.
    """

    work: Callable[[], Iterable[Any]]
    loop: asyncio.AbstractEventLoop
    said: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)
    left: bool = False

    def take(self) -> None:
        """Do it; between one value and the next it ends if nobody waits."""
        try:
            values = self.work()
            for value in values:
                if self.left:
                    break
                self.tell(value)
            if isinstance(values, Generator):
                values.close()
            self.tell(_END)
        except Exception as error:
            self.tell(_Failed(error))

    def tell(self, value: object) -> None:
        """Hand a value over to the other thread; if its loop is closed, nobody waits."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.said.put_nowait, value)


class Worker:
    """One thread, and who waits for it. It is asked from an event loop, which goes on meanwhile.

    Args:
        most: how many may wait for their turn.
    """

    def __init__(self, most: int = WAITING) -> None:
        self._most = most
        self._waiting: deque[_Turn] = deque()
        self._now: _Turn | None = None
        self._ended = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """How many wait, without the one whose turn it is."""
        return len(self._waiting)

    @property
    def free(self) -> bool:
        """Whether it is nobody's turn."""
        return self._now is None

    def start(self, first: Callable[[], object] | None = None) -> None:
        """Begin.

        Args:
            first: done before anything that is asked; what it raises will be met again by whoever needs it.
        """
        self._thread = threading.Thread(target=self._run, args=(first,))
        self._thread.start()

    def end(self) -> None:
        """Tell all who wait that there will be nothing, and begin nothing more."""
        with self._changed:
            self._ended = True
            turns = [*self._waiting, *([self._now] if self._now else [])]
            self._waiting.clear()
            self._changed.notify_all()
        for turn in turns:
            turn.left = True
            turn.tell(_Failed(Busy(ENDING)))

    def idle(self, seconds: float) -> bool:
        """Whether the thread is through, or is within so many seconds."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self._thread is None or not self._thread.is_alive()

    async def one(self, work: Callable[[], T]) -> T:
        """What the work gives, when its turn has come.

        Raises:
            Busy: too many wait, or the end has come.
            Exception: what the work raises.
        """
        async with contextlib.aclosing(self.each(lambda: [work()])) as values:
            return await anext(values)

    async def each(self, work: Callable[[], Iterable[T]]) -> AsyncGenerator[T, None]:
        """What the work gives one by one; the work ends when this is closed, or is never begun.

        Raises:
            Busy: too many wait, or the end has come.
            Exception: what the work raises.
        """
        turn = _Turn(work, asyncio.get_running_loop())
        self._queue(turn)
        try:
            while (value := await turn.said.get()) is not _END:
                if isinstance(value, _Failed):
                    raise value.error
                yield value
        finally:
            self._leave(turn)

    def _queue(self, turn: _Turn) -> None:
        with self._changed:
            if self._ended:
                raise Busy(ENDING)
            if len(self._waiting) >= self._most:
                raise Busy(BUSY)
            self._waiting.append(turn)
            self._changed.notify_all()

    def _leave(self, turn: _Turn) -> None:
        turn.left = True
        with self._changed, contextlib.suppress(ValueError):
            self._waiting.remove(turn)

    def _run(self, first: Callable[[], object] | None) -> None:
        if first is not None:
            with contextlib.suppress(Exception):
                first()
        while (turn := self._next()) is not None:
            turn.take()

    def _next(self) -> _Turn | None:
        with self._changed:
            self._now = None
            self._changed.wait_for(lambda: self._waiting or self._ended)
            if not self._ended:
                self._now = self._waiting.popleft()
            return self._now
