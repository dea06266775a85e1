"""Request guard: checks host, origin, content type and body, adds security headers, and turns errors into JSON.

Any page in a browser can send requests to a local server. The guard therefore refuses foreign Host names (DNS
rebinding), requests of other pages (by Origin and Sec-Fetch-Site), and form posts (by content type), which need no CORS
preflight.
"""

from __future__ import annotations

import sys
import traceback

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.inspection.requests import WeightsReplaced
from regard.library.serve.body import ClientDisconnected, RequestRefused, json_object, read_chunks
from regard.library.serve.worker import WorkerBusy
from regard.system.errors import RegardError

MOST_BYTES = 1 << 20
SLOW = 20.0
"""Seconds for a request body to arrive."""
NAMES = ("127.0.0.1", "localhost", "[::1]")
"""Names of the loopback address."""
OURS = ("same-origin", "none")
"""Values of Sec-Fetch-Site on requests from no other page."""
API = "/api/"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Default headers of every response."""
SAID = {404: "not found", 405: "method not allowed"}
STATUS = {WorkerBusy: 503, WeightsReplaced: 409}
"""Statuses of errors that are not the request's fault; all others are 400."""
UNEXPECTED = "unexpected error; see the terminal for details"


async def read_object(request: Request) -> dict[str, object]:
    """The JSON object that is the request's body.

    Raises:
        RequestRefused: it is too large, arrives too slowly, or is no JSON object in UTF-8.
        ClientDisconnected: the client has disconnected.
    """
    return json_object(b"".join([chunk async for chunk in read_chunks(request, MOST_BYTES, SLOW)]))


class Guard:
    """Middleware that lets allowed requests through and turns every exception into one clear message.

    Args:
        app: that answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if message["status"] >= 400:  # a refused client keeps no connection
                    headers["Connection"] = "close"
            await send(message)

        try:
            refuse(scope)
            await self.app(scope, receive, send_guarded)
        except ClientDisconnected:
            return
        except Exception as error:
            if started:
                traceback.print_exception(error, file=sys.stderr)
                raise
            status, values = error_body(error)
            await JSONResponse(values, status)(scope, receive, send_guarded)


def error_body(error: Exception) -> tuple[int, dict[str, str | None]]:
    """Status and JSON body of an error; an unexpected one is printed to stderr."""
    if isinstance(error, RegardError):
        status = error.status if isinstance(error, RequestRefused) else STATUS.get(type(error), 400)
        return status, {"error": error.message, "where": error.where}
    if isinstance(error, HTTPException):
        return error.status_code, {"error": SAID.get(error.status_code, error.detail), "where": None}
    traceback.print_exception(error, file=sys.stderr)
    return 500, {"error": UNEXPECTED, "where": None}


def refuse(scope: Scope) -> None:
    """Raise a RequestRefused for a forbidden request."""
    headers, port = Headers(scope=scope), scope["server"][1]
    host = headers.get("host", "").lower()
    if host not in [f"{name}:{port}" for name in NAMES] and not (port == 80 and host in NAMES):
        raise RequestRefused(
            421, f"this is http://{NAMES[0]}:{port}/ and answers to no other name, and at no other port"
        )
    if not scope["path"].startswith(API):
        return
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    if origin not in (None, f"http://{host}") or site not in OURS:
        raise RequestRefused(403, "requests from another page are refused")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if scope["method"] == "POST" and kind != "application/json":
        raise RequestRefused(415, "a request must be JSON: Content-Type: application/json")
