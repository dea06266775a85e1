"""Who may ask, and what goes with every answer.

Every page that a browser shows can reach a server of its own machine. So a name that was made to point here is refused
by its Host (DNS rebinding), another page's question by Origin and Sec-Fetch-Site, and a form, which asks no browser for
leave, by its type.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.errors import RegardError
from regard.explore.asked import Replaced
from regard.serve.asked import Gone, Refused
from regard.serve.worker import Busy

NAMES = ("127.0.0.1", "localhost", "[::1]")
"""What this machine calls itself."""
OURS = ("same-origin", "none")
"""What a browser says of a question that no other page asks."""
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
"""What goes with every answer that does not say otherwise itself."""
SAID = {404: "there is nothing of this name", 405: "this is asked in another way"}
STATUS = {Busy: 503, Replaced: 409}
"""Of what is no mistake of the question's; of all else 400."""
UNEXPECTED = "this should not happen; the terminal says more"


class Guard:
    """Lets through what may be asked, and makes one clear sentence of every error.

    Args:
        app: that answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if message["status"] >= 400:  # whoever asks what it may not ask holds no connection
                    headers["Connection"] = "close"
            await send(message)

        try:
            refuse(scope)
            await self.app(scope, receive, guarded)
        except Gone:
            return
        except Exception as error:
            if started:
                traceback.print_exception(error, file=sys.stderr)
                raise
            status, values = told(error)
            await JSONResponse(values, status)(scope, receive, guarded)


def told(error: Exception) -> tuple[int, dict[str, Any]]:
    """The status of an answer, and what is said of an error; what nobody foresaw is shown on stderr."""
    if isinstance(error, RegardError):
        status = error.status if isinstance(error, Refused) else STATUS.get(type(error), 400)
        return status, {"error": error.message, "where": _field(error.where)}
    if isinstance(error, HTTPException):
        return error.status_code, {"error": SAID.get(error.status_code, error.detail), "where": None}
    traceback.print_exception(error, file=sys.stderr)
    return 500, {"error": UNEXPECTED, "where": None}


def _field(where: str | None) -> str | None:
    """What an error is about, by the name of a question's field where it has that of a command's option."""
    return where.lstrip("-").replace("-", "_") if where and where.startswith("--") else where


def refuse(scope: Scope) -> None:
    """Raise a Refused for what may not be asked."""
    headers, port = Headers(scope=scope), scope["server"][1]
    host = headers.get("host", "").lower()
    if host not in [f"{name}:{port}" for name in NAMES] and not (port == 80 and host in NAMES):
        raise Refused(421, f"this is http://{NAMES[0]}:{port}/ and answers to no other name, and at no other port")
    if not scope["path"].startswith(API):
        return
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    if origin not in (None, f"http://{host}") or site not in OURS:
        raise Refused(403, "another page may not ask this")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if scope["method"] == "POST" and kind != "application/json":
        raise Refused(415, "what is asked is JSON: Content-Type: application/json")
