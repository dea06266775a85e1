"""HTTP connections with timeouts: idle, refused or slow clients are closed to free their place."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.serve.guard import HEADERS
from regard.serve.transport import TimedTransport

MALFORMED = "this is no HTTP question"
IN_THE_SYSTEM = 1 << 16
"""Bytes of an answer that the system may hold for whoever reads, about: it asks for more in steps of a part of them, so
that the fewer there are the slower one may read and is still seen to read."""


@dataclass(frozen=True)
class Limits:
    """Timeouts and limits of the server.

    Args:
        head: seconds for a request head to arrive, for the first one counted from the connection.
        whole: seconds that what belongs to a question may take behind its head, whether it was answered meanwhile or
            not: more than :data:`regard.serve.request_body.SLOW`, so that whoever asks too slowly reads why.
        stalled: seconds in which the client must read at least some of a response.
        drained: seconds for which input after a refusal is discarded, so that the refusal can be read.
        most: simultaneous connections; a browser opens six.
    """

    head: float = 20.0
    whole: float = 30.0
    stalled: float = 20.0
    drained: float = 0.5
    most: int = 128


LIMITS = Limits()


class Connection(H11Protocol):
    """One of this server's. Beyond the most there may be, one that waits for a question makes room for a new one.

    Args:
        limits: see there; the others are uvicorn's.
    """

    transport: Any
    _late: asyncio.TimerHandle | None = None
    _awaited: object = None
    _since = 0.0

    def __init__(self, *args: Any, limits: Limits, **named: Any) -> None:
        super().__init__(*args, **named)
        self._limits = limits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for a request."""
        limits = self._limits
        watched = TimedTransport(transport, self.loop, limits.stalled, limits.drained, self._sends)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, IN_THE_SYSTEM)
        super().connection_made(watched)  # type: ignore[arg-type]
        self._since = self.loop.time()
        if len(self.connections) > limits.most:
            self._make_room()
        if not self.transport.is_closing():
            self._wait()

    def _make_room(self) -> None:
        """Close the connection that has been idle longest, else the one that reads nothing; else this one."""
        others: list[Any] = [one for one in self.connections if one is not self and isinstance(one, Connection)]
        idle = [one for one in others if one.idle]
        stuck = [one for one in others if one.transport.stuck]
        oldest = max(stuck, key=lambda one: one.transport.stuck, default=self)
        oldest = min(idle, key=lambda one: one._since, default=oldest)
        self.connections.discard(oldest)
        oldest.transport.abort()

    @property
    def idle(self) -> bool:
        """Whether nothing is being computed or sent for the client; a request may be arriving."""
        answered = self.cycle is None or self.cycle.response_complete or self._sends()
        return bool(answered and not self.transport.get_write_buffer_size())

    def _sends(self) -> bool:
        """Whether the client is still sending: the rest of a request, or data that nobody asked for."""
        return self.conn.their_state in (h11.SEND_BODY, h11.ERROR) or bool(self.conn.trailing_data[0])

    def data_received(self, data: bytes) -> None:
        """Time out until the head is complete, then until the body is; single bytes do not extend the time."""
        if self.transport.is_closing():
            self.transport.throw_away(data)
            return
        super().data_received(data)
        self._wait()

    def on_response_complete(self) -> None:
        """Time out the rest of a request that was answered early; an idle connection is kept open."""
        super().on_response_complete()
        self._since = self.loop.time()
        if self.conn.their_state is h11.SEND_BODY:
            self._wait()

    def send_400_response(self, msg: str) -> None:
        """Answer malformed HTTP like any other error; once a response has started nothing more can be sent."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            content = json.dumps({"error": MALFORMED, "where": None}).encode()
            named = {"Content-Type": "application/json", "Content-Length": str(len(content)), "Connection": "close"}
            headers = [(name.lower().encode(), value.encode()) for name, value in (HEADERS | named).items()]
            begun = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
            for event in (begun, h11.Data(data=content), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._forget()
        self.transport.forget()
        super().connection_lost(exc)

    def _wait(self) -> None:
        """Start the timeout for what has yet to arrive, measured from the first wait."""
        awaited = self.conn.their_state
        if awaited is not self._awaited or self.transport.is_closing():
            self._forget()
        if self._late is None and awaited in (h11.IDLE, h11.SEND_BODY) and not self.transport.is_closing():
            seconds = self._limits.head if awaited is h11.IDLE else self._limits.whole
            self._late, self._awaited = self.loop.call_later(seconds, self.transport.abort), awaited

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = self._awaited = None
