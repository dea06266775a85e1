"""An asyncio transport with write timeouts, which drains unread input before closing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

LOOKS = 10
"""Checks per timeout interval."""
THROWN_AWAY = 16 << 20
"""Most bytes to discard after a refusal."""


class TimedTransport:
    """Wraps an asyncio transport; other attributes are passed through.

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
        """Write; data that is not sent at once must make some progress within the timeout."""
        if self.is_closing():
            return
        self._written += len(data)
        self._transport.write(data)
        if self._look is None:
            self._watch(self._bytes_taken, 0)

    @property
    def _bytes_taken(self) -> int:
        """Bytes that the system has accepted; it accepts more only while the client reads."""
        return self._written - self._transport.get_write_buffer_size()

    def _watch(self, before: int, times: int) -> None:
        """Check again later while data is left; abort after too many checks without progress."""
        self._look, taken = None, self._bytes_taken
        if taken == self._written:
            self.stuck = 0
            return
        self.stuck = times = times + 1 if taken == before else 0
        if times > LOOKS:
            self.abort()
        else:
            self._look = self._loop.call_later(self._stalled / LOOKS, self._watch, taken, times)

    def is_closing(self) -> bool:
        """Whether the transport is closed for writing."""
        return self._end is not None or self._transport.is_closing()

    def close(self) -> None:
        """Flush and close; if the client is still sending, discard that for a moment."""
        if self.is_closing():
            return
        if not self._sends():
            self._transport.close()
            return
        self._end = self._loop.call_later(self._drained, self._transport.close)
        with contextlib.suppress(OSError):  # the client has disconnected already
            self._transport.write_eof()
        self._transport.resume_reading()

    def throw_away(self, data: bytes) -> None:
        """Discard data received after the last response."""
        self._room -= len(data)
        if self._room < 0:
            self.abort()

    def abort(self) -> None:
        """Close at once and discard unsent data."""
        self._transport.abort()

    def forget(self) -> None:
        """Cancel all timers."""
        for timer in (self._look, self._end):
            if timer is not None:
                timer.cancel()
