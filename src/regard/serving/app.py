"""The web application of a server: its guard, all interfaces, its page; and the process that runs it."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.library.serve.body import RequestRefused
from regard.library.serve.files import file_response, files
from regard.library.serve.guard import HEADERS, NAMES
from regard.library.serve.server import MALFORMED, Limits, uvicorn_config
from regard.serving.core import ServiceError
from regard.serving.interfaces import deepl, libretranslate, native, others
from regard.serving.interfaces.interface import SLOW, TRACE, Interface
from regard.serving.metrics import CONTENT_TYPE, Metrics
from regard.serving.service import TranslationService
from regard.serving.store.jobs import LARGEST

PAGE = Path(__file__).parent / "page"
CONNECTIONS = 512
"""At once; one that waits for a question makes room for a new one."""
GRACE = 3.0
"""Seconds after SIGTERM in which the server still listens, so that who sends to it hears that it ends."""
DRAIN = 60
"""Seconds in which calls may end."""
ARRIVES = SLOW * ((LARGEST >> 20) + 1)
"""Seconds for a request to arrive; most have fewer, and are told why."""
EXPOSED = f"Content-Disposition, Retry-After, {TRACE}"
"""What a page of another site may read of an answer, beside what is safe for all."""
PREFLIGHT = {"Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE", "Access-Control-Max-Age": "600"}
ELSEWHERE = ("cross-site", "same-site")
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Access:
    """Who may ask.

    Args:
        host: that is listened at.
        names: by which the server is asked beside those of this machine; none: by any where the host is another.
        origins: other pages that may ask.
        log: a line on stderr for each request: method, path, status, milliseconds; never a text.
    """

    host: str = "127.0.0.1"
    names: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    log: bool = False

    def refuse(self, headers: Headers) -> None:
        """Raise a RequestRefused for a name that is none of the server's, and for another page's request."""
        host = headers.get("host", "").lower()
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if (self.names or self.host in LOOPBACK) and name not in (*NAMES, *self.names):
            raise RequestRefused(421, "the server answers to no such name; regard serve --name allows one")
        origin, same = headers.get("origin", ""), headers.get("sec-fetch-site") == "same-origin"
        page = origin == "null" or origin.startswith("http")  # else of an extension, which the user installed
        if page and not same and origin.partition("://")[2] != host:
            if origin not in self.origins:
                raise RequestRefused(403, "requests from another page are refused; regard serve --origin allows one")
        elif not origin and headers.get("sec-fetch-site") in ELSEWHERE and headers.get("sec-fetch-mode") != "navigate":
            raise RequestRefused(403, "requests from another page are refused")


class ServiceGuard:
    """Middleware: refuses what may not be asked, adds headers to every answer, counts it.

    Args:
        app: that answers.
        access: who may ask.
        metrics: where requests are counted.
        interface_of: how errors of a path look.
    """

    def __init__(
        self, app: ASGIApp, access: Access, metrics: Metrics, interface_of: Callable[[str], Interface]
    ) -> None:
        self._app, self._access, self._metrics, self._interface_of = app, access, metrics, interface_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        begun, status = time.perf_counter(), 0
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        is_known = origin != "" and origin in self._access.origins

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                found = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    found.setdefault(name, value)
                if is_known:
                    found["Access-Control-Allow-Origin"] = origin
                    found["Access-Control-Expose-Headers"] = EXPOSED
                    found["Cross-Origin-Resource-Policy"] = "cross-origin"
                    found.add_vary_header("Origin")
                if status in (400, 408, 413, 415, 421):  # what is left of the request is not read
                    found["Connection"] = "close"
            await send(message)

        try:
            self._access.refuse(headers)
            answer = self._app
            if is_known and scope["method"] == "OPTIONS":
                wanted = headers.get("access-control-request-headers", "content-type")
                answer = Response(status_code=204, headers={**PREFLIGHT, "Access-Control-Allow-Headers": wanted})
            await answer(scope, receive, send_guarded)
        except Exception as error:
            if status:
                raise
            await self._interface_of(scope["path"]).error_response(error)(scope, receive, send_guarded)
        finally:
            if status:
                self._end(scope, status, time.perf_counter() - begun)

    def _end(self, scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("route")
        self._metrics.count(getattr(route, "path", ""), status, seconds)
        if self._access.log:
            path = getattr(route, "path", "(no such path)")  # one that was asked for may have a text, or a secret
            print(f"{scope['method'][:20]} {path!r} {status} {seconds * 1000:.0f} ms", file=sys.stderr)


class ServiceSite:
    """All that a server answers.

    Args:
        service: of the models.
        access: who may ask.
        attention: where an attention page of the models is, if there is one.
        most_bytes: of a document.
    """

    def __init__(
        self, service: TranslationService, access: Access, attention: str | None = None, most_bytes: int = 32 << 20
    ) -> None:
        self._service, self._metrics = service, Metrics(service)
        self._files = files(PAGE)
        self._operations = native.NativeInterface(service, attention, most_bytes).operations
        self._interfaces: Sequence[Interface] = (native.INTERFACE, deepl.INTERFACE, *others.INTERFACES)
        routes = [
            *native.INTERFACE.routes(service, self._operations),
            *libretranslate.routes(service, service.needs_key, most_bytes, service.limits.characters),
            *deepl.routes(service, service.store.glossaries, most_bytes),
            *others.routes(service),
            Route("/livez", self.live, methods=["GET"]),
            Route("/readyz", self.ready, methods=["GET"]),
            Route("/metrics", self.metrics, methods=["GET"]),
            Route("/openapi.json", self.openapi, methods=["GET"]),
            Route("/", self.file, methods=["GET"]),
            Route("/assets/{name:path}", self.file, methods=["GET"]),
        ]
        self._methods = dict[str, set[str]]()
        for route in routes:
            self._methods.setdefault(route.path, set()).update(route.methods or ())
        handlers: Any = {HTTPException: self._say}
        inner = Starlette(routes=routes, exception_handlers=handlers)
        inner.router.redirect_slashes = False
        self.app: ASGIApp = ServiceGuard(inner, access, self._metrics, self._interface_of)

    def _interface_of(self, path: str) -> Interface:
        return next((one for one in self._interfaces if one.owns(path)), libretranslate.INTERFACE)

    async def _say(self, request: Request, error: HTTPException) -> Response:
        if error.status_code == 405:
            error.headers = {"Allow": ", ".join(sorted(self._methods[request.scope["route"].path]))}
        return self._interface_of(request.url.path).error_response(error)

    async def live(self, request: Request) -> Response:
        """Whether the process answers."""
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Whether new work is accepted, and what lasts is there."""
        if self._service.admission.ending:
            return JSONResponse({"status": "ending"}, 503)
        try:
            self._service.store.database.refuse_gone()
        except ServiceError as error:
            return JSONResponse({"status": str(error)}, error.status)
        return JSONResponse({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        """What is counted."""
        return Response(await asyncio.to_thread(self._metrics.text), media_type=CONTENT_TYPE)

    async def openapi(self, request: Request) -> Response:
        """The native interface, described."""
        from regard.serving.interfaces.openapi import describe

        return JSONResponse(describe(self._operations, self._service.answers.kinds))

    async def file(self, request: Request) -> Response:
        """A file of the page."""
        return file_response(self._files, request)


class ServiceServer(uvicorn.Server):
    """Serves until a signal arrives; then what runs may end, and nothing new begins.

    Args:
        site: what it serves.
        service: of the site.
    """

    def __init__(self, site: ServiceSite, service: TranslationService) -> None:
        self._service, self._until = service, float("inf")
        malformed = json.dumps({"error": MALFORMED})
        limits = Limits(most=CONNECTIONS, whole=ARRIVES, malformed=malformed)
        super().__init__(uvicorn_config(site.app, limits, DRAIN))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal lets calls end, the second ends them; SIGTERM is waited for a moment, Ctrl-C is not."""
        if self._service.admission.ending:
            self.should_exit = self.force_exit = True
        self._service.refuse_new()
        self._until = time.monotonic() + (GRACE if sig == signal.SIGTERM else 0.0)

    async def on_tick(self, counter: int) -> bool:
        """Whether to end now."""
        return await super().on_tick(counter) or time.monotonic() > self._until

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for calls, unless it is to end at once; then end the service."""
        await super().shutdown(sockets)
        await asyncio.to_thread(self._service.end, 0.0 if self.force_exit else 1.0)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        OSError: it cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, so that asyncio sets TCP_NODELAY
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(1024)
    except OSError:
        found.close()
        raise
    return found
