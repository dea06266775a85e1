"""The server: on this machine's own address only, quiet, and at an end as soon as it is told."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import uvicorn

from regard.errors import UsageError
from regard.serve.app import Answers, Site, app
from regard.serve.connection import LIMITS, Connection, Limits
from regard.serve.page import File
from regard.serve.worker import Worker

HOST = "127.0.0.1"
PORT = 8017
TRIED = 100
"""How many ports from there on are tried."""
KEPT = 60
"""Seconds that an idle connection is kept."""


def listening(port: int | None = None) -> socket.socket:
    """A socket that listens on this machine's own address.

    Args:
        port: exactly this one, 0: any; default: the first that is free from ``PORT`` on.

    Raises:
        UsageError: the port cannot be had.
    """
    if port is not None and not 0 <= port < 1 << 16:
        raise UsageError(f"there is no port {port}; give one from 1024 to 65535, or 0 for any that is free", "--port")
    for one in range(PORT, PORT + TRIED) if port is None else [port]:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((HOST, one))
            listener.listen(128)
            return listener
        except OSError as error:
            listener.close()
            if error.errno in (errno.EACCES, errno.EPERM):
                raise UsageError(f"port {one} is for the system's own; give one from 1024 on", "--port") from None
            if error.errno != errno.EADDRINUSE:
                raise
    taken = f"ports {PORT} to {PORT + TRIED - 1} are taken" if port is None else f"port {port} is taken"
    raise UsageError(f"{taken}; name another, or 0 for any that is free", "--port")


def address(listener: socket.socket) -> str:
    """Where a browser finds the page."""
    return f"http://{HOST}:{listener.getsockname()[1]}/"


class Server(uvicorn.Server):
    """Serves the page until a signal comes.

    Args:
        models, answers, files: as of :class:`regard.serve.app.Site`.
        first: what the computing thread does before it is asked anything.
        limits: of every connection.
    """

    def __init__(
        self,
        models: Any,
        answers: Answers,
        files: Mapping[str, File],
        first: Callable[[], object] | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        self.computing, self.reading, self.following, self._first = Worker(), Worker(), Worker(), first
        config = uvicorn.Config(
            app(Site(models, answers, files, self.computing, self.reading, self.following)),
            loop="asyncio",
            http=partial(Connection, limits=limits),  # type: ignore[arg-type]
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",  # errors are told by the app
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=KEPT,
            timeout_graceful_shutdown=0,
        )
        super().__init__(config)

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve on these sockets.

        Raises:
            KeyboardInterrupt: that is how it was ended.
        """
        self.computing.start(self._first)
        self.reading.start()
        self.following.start()
        try:
            super().run(sockets)
        finally:
            self._end()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End; who still waits for an answer is told so before connections are closed."""
        self._end()
        await super().shutdown(sockets)
        for connection in self.server_state.connections:
            connection.transport.abort()
        await asyncio.sleep(0)

    def _end(self) -> None:
        self.computing.end()
        self.reading.end()
        self.following.end()
