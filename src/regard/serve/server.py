"""The HTTP server: bound to the loopback address, stopped by a signal."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import uvicorn

from regard.serve.app import Answers, File, Site, create_app
from regard.serve.connection import LIMITS, Connection, Limits
from regard.system.errors import UsageError

HOST = "127.0.0.1"
PORT = 8017
TRIED = 100
"""Number of ports to try."""
KEPT = 60
"""Seconds to keep an idle connection."""


def listen(port: int | None = None) -> socket.socket:
    """A socket listening on the loopback address.

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


def page_url(listener: socket.socket) -> str:
    """The URL of the page."""
    return f"http://{HOST}:{listener.getsockname()[1]}/"


class Server(uvicorn.Server):
    """Serves the page until a signal arrives.

    Args:
        models, answers, files: as of :class:`regard.serve.app.Site`.
        first: what the computing thread does first.
        limits: of each connection.
    """

    def __init__(
        self,
        models: Any,
        answers: Answers,
        files: Mapping[str, File],
        first: Callable[[], object] | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        self.site, self._first = Site(models, answers, files), first
        config = uvicorn.Config(
            create_app(self.site),
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
            timeout_graceful_shutdown=0,
        )
        super().__init__(config)

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
