"""The HTTP server: bound to the loopback address, stopped by a signal; idle, refused or slow clients are closed."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.library.serve.guard import HEADERS
from regard.system.errors import Option, UsageError

if TYPE_CHECKING:
    from regard.library.serve.app import Site

HOST = "127.0.0.1"
PORT = 8017
TRIED = 100
"""Number of ports to try."""
KEPT = 60
"""Seconds to keep an idle connection."""
LOOKS = 10
"""Checks per timeout interval."""
THROWN_AWAY = 16 << 20
"""Most bytes to discard after a refusal."""
MALFORMED = "this is no HTTP question"
IN_THE_SYSTEM = 1 << 16
"""Bytes of an answer that the system may hold for whoever reads, about: it asks for more in steps of a part of them, so
that the fewer there are the slower one may read and is still seen to read."""


class TimedTransport:
    """Wraps an asyncio transport; other attributes are passed through.

    What is still sent after the last answer is thrown away for a moment: a socket that is closed with bytes unread
    tells the other end so, which then may lose the answer (RFC 9112, 9.6).

    Args:
        transport: of the connection.
        loop: that it belongs to.
        limits: how long the other end may take nothing of what was written, or send after the last answer.
        sends: whether the other end has not sent all yet.
    """

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, limits: Limits, sends: Callable[[], bool]
    ) -> None:
        self._transport, self._loop, self._limits, self._sends = transport, loop, limits, sends
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
            self._transport.abort()
        else:
            self._look = self._loop.call_later(self._limits.stalled / LOOKS, self._watch, taken, times)

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
        self._end = self._loop.call_later(self._limits.drained, self._transport.close)
        with contextlib.suppress(OSError):  # the client has disconnected already
            self._transport.write_eof()
        self._transport.resume_reading()

    def throw_away(self, data: bytes) -> None:
        """Discard data received after the last response."""
        self._room -= len(data)
        if self._room < 0:
            self._transport.abort()

    def forget(self) -> None:
        """Cancel all timers."""
        for timer in (self._look, self._end):
            if timer is not None:
                timer.cancel()


@dataclass(frozen=True)
class Limits:
    """Timeouts and limits of the server.

    Args:
        head: seconds for a request head to arrive, for the first one counted from the connection.
        whole: seconds that what belongs to a question may take behind its head, whether it was answered meanwhile or
            not: more than :data:`regard.library.serve.guard.SLOW`, so that whoever asks too slowly reads why.
        stalled: seconds in which the client must read at least some of a response.
        drained: seconds for which input after a refusal is discarded, so that the refusal can be read.
        most: simultaneous connections; a browser opens six.
        malformed: the answer to what is no HTTP.
    """

    head: float = 20.0
    whole: float = 30.0
    stalled: float = 20.0
    drained: float = 0.5
    most: int = 128
    malformed: str = json.dumps({"error": MALFORMED, "where": None})


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
        watched = TimedTransport(transport, self.loop, self._limits, self._sends)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, IN_THE_SYSTEM)
        super().connection_made(watched)  # type: ignore[arg-type]
        self._since = self.loop.time()
        if len(self.connections) > self._limits.most:
            self._make_room()
        if not self.transport.is_closing():
            self._wait()

    def _make_room(self) -> None:
        """Close the connection that has been idle longest, else the one that reads nothing; else this one."""
        others: list[Connection] = [one for one in self.connections if one is not self and isinstance(one, Connection)]
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
            content = self._limits.malformed.encode()
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


def listen(port: int | None = None) -> socket.socket:
    """A socket listening on the loopback address.

    Args:
        port: exactly this one, 0: any; default: the first that is free from ``PORT`` on.

    Raises:
        UsageError: the port cannot be had.
    """
    if port is not None and not 0 <= port < 1 << 16:
        raise UsageError(f"there is no port {port}; give 1024 to 65535, or 0 for any that is free", Option("port"))
    for one in range(PORT, PORT + TRIED) if port is None else [port]:
        # The protocol is named, so that asyncio sets TCP_NODELAY: an answer is two packets.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((HOST, one))
            listener.listen(128)
            return listener
        except OSError as error:
            listener.close()
            if error.errno in (errno.EACCES, errno.EPERM):
                raise UsageError(f"port {one} is for the system's own; give one from 1024 on", Option("port")) from None
            if error.errno != errno.EADDRINUSE:
                raise
    taken = f"ports {PORT} to {PORT + TRIED - 1} are taken" if port is None else f"port {port} is taken"
    raise UsageError(f"{taken}; name another, or 0 for any that is free", Option("port"))


def page_url(listener: socket.socket) -> str:
    """The URL of the page."""
    return f"http://{HOST}:{listener.getsockname()[1]}/"


def uvicorn_config(app: ASGIApp, limits: Limits, end: int) -> uvicorn.Config:
    """How an application is served: by our connections, and without a word of uvicorn's.

    Args:
        app: that answers.
        limits: of each connection.
        end: seconds in which answers may end.
    """
    return uvicorn.Config(
        app,
        loop="asyncio",
        http=partial(Connection, limits=limits),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # the app reports errors
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEPT,
        timeout_graceful_shutdown=end,
    )


class Server(uvicorn.Server):
    """Serves the page until a signal arrives.

    Args:
        site: what it serves.
        first: what the computing thread does first.
        limits: of each connection.
    """

    def __init__(
        self,
        site: Site,
        first: Callable[[], object] | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        self.site, self._first = site, first
        super().__init__(uvicorn_config(site.app(), limits, 0))

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve on these sockets.

        Raises:
            KeyboardInterrupt: it was ended by Ctrl-C.
        """
        self.site.start(self._first)
        try:
            super().run(sockets)
        finally:
            self.site.end()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down; waiting clients get an answer before their connections close."""
        self.site.end()
        await super().shutdown(sockets)
        for connection in self.server_state.connections:
            connection.transport.abort()
        await asyncio.sleep(0)
