"""A connection that is given up when it asks nothing: uvicorn waits for the end of a question for ever."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 20.0
"""Seconds that the head of a question may take to arrive, the first from when the connection was made."""
WHOLE = 30.0
"""Seconds that what belongs to a question may take behind its head, whether it was answered meanwhile or not: more than
:data:`regard.serve.asked.SLOW`, so that whoever asks too slowly reads why."""
MOST = 128
"""Connections at once; a browser makes six."""


class Connection(H11Protocol):
    """One of this server's; a connection beyond :data:`MOST` is closed as soon as it is made."""

    _late: asyncio.TimerHandle | None = None
    _awaited: object = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        if len(self.connections) > MOST:
            transport.close()
        else:
            self._wait()

    def data_received(self, data: bytes) -> None:
        """Wait until the head is whole, then what belongs to it; bytes that come one by one give no more time."""
        super().data_received(data)
        self._wait()

    def on_response_complete(self) -> None:
        """An answer that came before all was asked does not keep a connection open; one that rests may rest."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._forget()
        super().connection_lost(exc)

    def _wait(self) -> None:
        """For what has yet to come, so long from when it was first waited for."""
        awaited = self.conn.their_state
        if awaited is not self._awaited or self.transport.is_closing():
            self._forget()
        if self._late is None and awaited in (h11.IDLE, h11.SEND_BODY) and not self.transport.is_closing():
            seconds = PATIENCE if awaited is h11.IDLE else WHOLE
            self._late, self._awaited = self.loop.call_later(seconds, self.transport.abort), awaited

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = self._awaited = None
