"""A connection that is given up when it asks nothing: uvicorn waits for the end of a question's head for ever."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 20.0
"""Seconds that the head of a question may take to arrive, the first from when the connection was made."""
MOST = 128
"""Connections at once; a browser makes six."""


class Connection(H11Protocol):
    """One of this server's; a connection beyond :data:`MOST` is closed as soon as it is made."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        if len(self.connections) > MOST:
            transport.close()
        else:
            self._wait()

    def data_received(self, data: bytes) -> None:
        """Wait until the head is whole; bytes that come one by one give no more time."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._wait()
        else:
            self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._forget()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(PATIENCE, self.transport.close)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
