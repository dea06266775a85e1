"""The way out of a connection: given up where nobody reads, and closed so that the last answer can be read."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

LOOKS = 10
"""How often it is looked whether something was read, in the time in which something must be."""
THROWN_AWAY = 16 << 20
"""Bytes that are thrown away behind a refusal at most."""


class Watched:
    """A transport of asyncio; what is not said here is as there.

    Args:
        transport: of the connection.
        loop: that it belongs to.
        stalled: seconds after which the connection ends where the other end took nothing of what was written.
        drained: seconds in which what is still sent is thrown away after the last answer. A socket that is closed with
            bytes unread tells the other end so, which then may lose the answer (RFC 9112, 9.6).
        sends: whether the other end has not sent all yet.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        stalled: float,
        drained: float,
        sends: Callable[[], bool],
    ) -> None:
        self._transport, self._loop = transport, loop
        self._stalled, self._drained, self._sends = stalled, drained, sends
        self._written, self._room = 0, THROWN_AWAY
        self.stuck = 0
        """How often in a row it was seen that the other end took nothing of what was written."""
        self._look: asyncio.TimerHandle | None = None
        self._end: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send; what is not taken at once is waited for, as long as some of it is taken in time."""
        if self.is_closing():
            return
        self._written += len(data)
        self._transport.write(data)
        if self._look is None:
            self._watch(self._taken, 0)

    @property
    def _taken(self) -> int:
        """Bytes that the system took over for the other end: it takes more only where that reads."""
        return self._written - self._transport.get_write_buffer_size()

    def _watch(self, before: int, times: int) -> None:
        """Look again in a moment while something is left, or end it where nothing was taken for too many."""
        self._look, taken = None, self._taken
        if taken == self._written:
            self.stuck = 0
            return
        self.stuck = times = times + 1 if taken == before else 0
        if times > LOOKS:
            self.abort()
        else:
            self._look = self._loop.call_later(self._stalled / LOOKS, self._watch, taken, times)

    def is_closing(self) -> bool:
        """Whether nothing more is written."""
        return self._end is not None or self._transport.is_closing()

    def close(self) -> None:
        """Send what was written, and end; where the other end is still sending, throw that away for a moment."""
        if self.is_closing():
            return
        if not self._sends():
            self._transport.close()
            return
        self._end = self._loop.call_later(self._drained, self._transport.close)
        with contextlib.suppress(OSError):  # the other end has left already
            self._transport.write_eof()
        self._transport.resume_reading()

    def throw_away(self, data: bytes) -> None:
        """What came after the last answer."""
        self._room -= len(data)
        if self._room < 0:
            self.abort()

    def abort(self) -> None:
        """End at once, whatever was not sent."""
        self._transport.abort()

    def forget(self) -> None:
        """Nothing is waited for any more."""
        for timer in (self._look, self._end):
            if timer is not None:
                timer.cancel()
