"""The page and its questions over HTTP: questions go to the thread that computes, the page is answered at once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from regard.errors import UsageError
from regard.serve.asked import Gone, body, values
from regard.serve.guard import API, Guard, told
from regard.serve.page import INDEX, File
from regard.serve.worker import Worker

GET, POST = ("state", "course"), ("write", "export")
"""Questions that are answered each in its own way."""
NUMBER = re.compile(r"\d{1,6}", re.ASCII)
POINTS = 600
"""Of a training's course, where none are asked."""

T = TypeVar("T")


class Answers(Protocol):
    """What answers: :mod:`regard.explore.answers`, or what stands for it in a test."""

    @property
    def ANSWERS(self) -> Mapping[str, object]: ...

    def state(self, models: Any, /) -> dict[str, Any]: ...

    def course(self, models: Any, number: int, points: int, /) -> bytes: ...

    def answer(self, models: Any, name: str, asked: dict[str, Any], /) -> bytes: ...

    def written(self, models: Any, asked: dict[str, Any], /) -> Iterator[dict[str, Any]]: ...

    def exported(self, models: Any, asked: dict[str, Any], /) -> tuple[bytes, str, str]: ...


class Site:
    """The page, and what it asks.

    Args:
        models: what is looked into.
        answers: what is asked of it.
        files: of the page, by name.
        computing: the thread for what computes.
        reading: the thread for what only looks at files, which does not wait for the other.
        following: the thread for what reads a log, which may be long, and neither waits for.
    """

    def __init__(
        self,
        models: Any,
        answers: Answers,
        files: Mapping[str, File],
        computing: Worker,
        reading: Worker,
        following: Worker,
    ) -> None:
        self.models = models
        self.answers = answers
        self.files = files
        self.computing = computing
        self.reading = reading
        self.following = following

    async def file(self, request: Request) -> Response:
        """A file of the page."""
        file = self.files.get(request.scope["path"].removeprefix("/") or INDEX)
        if file is None:
            raise HTTPException(404)
        headers = {**file.headers, "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", "") and file.zipped is not None:
            return Response(file.zipped, headers={**headers, "Content-Encoding": "gzip"})
        return Response(file.content, headers=headers)

    async def state(self, request: Request) -> Response:
        """What there is."""
        return JSONResponse(await _there(request, self.reading.one(lambda: self.answers.state(self.models))))

    async def course(self, request: Request) -> Response:
        """How a training went, or goes."""
        number, points = _number(request, "model", 0), _number(request, "points", POINTS)
        work = self.following.one(lambda: self.answers.course(self.models, number, points))
        return _payload(await _there(request, work))

    async def answer(self, request: Request) -> Response:
        """The answer to a question by name."""
        name = request.path_params["name"]
        if name not in self.answers.ANSWERS:
            raise HTTPException(405, headers={"Allow": "GET"}) if name in GET else HTTPException(404)
        asked = values(await body(request))
        work = self.computing.one(lambda: self.answers.answer(self.models, name, asked))
        return _payload(await _there(request, work))

    async def export(self, request: Request) -> Response:
        """A file to keep."""
        asked = values(await body(request))
        work = self.computing.one(lambda: self.answers.exported(self.models, asked))
        content, kind, name = await _there(request, work)
        disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
        return Response(content, headers={"Content-Type": kind, "Content-Disposition": disposition})

    async def write(self, request: Request) -> Response:
        """Each token as it is decided, a line each."""
        asked = values(await body(request))
        said = self.computing.each(lambda: self.answers.written(self.models, asked))
        first = await _there(request, anext(said, None))  # before the first token an error is an error, not a line
        return Lines(first, said)

    def refused(self, request: Request, error: Exception) -> Response:
        """What is not there, or is asked in another way; what is not there can be asked in no way."""
        path = request.scope["path"]
        if path.startswith(API) and path.removeprefix(API) not in {*GET, *POST, *self.answers.ANSWERS}:
            error = HTTPException(404)
        status, said = told(error)
        return JSONResponse(said, status, headers=getattr(error, "headers", None))


class Lines(StreamingResponse):
    """Values as lines of JSON, as they come; an error is the last. Whoever leaves ends what makes them.

    Args:
        first: the first value, or none.
        rest: those that follow.
    """

    def __init__(self, first: dict[str, Any] | None, rest: AsyncGenerator[dict[str, Any], None]) -> None:
        self._first = first
        self._rest = rest
        super().__init__(self._lines(), media_type="application/x-ndjson")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with contextlib.aclosing(self._rest):
            await super().__call__(scope, receive, send)

    async def _lines(self) -> AsyncGenerator[bytes, None]:
        try:
            if self._first is not None:
                yield _line(self._first)
            async for value in self._rest:
                yield _line(value)
        except Exception as error:
            yield _line({"error": told(error)[1]["error"]})


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _payload(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not NUMBER.fullmatch(text):
        raise UsageError(f"a whole number from 0 to 999999 is wanted, not {text[:20]!r}", name)
    return int(text)


async def _there(request: Request, work: Awaitable[T]) -> T:
    """What the work gives, which is given up when whoever asked leaves.

    Raises:
        Gone: nobody waits any more.
    """
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(request.receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Gone
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def app(site: Site) -> Starlette:
    """The page and its questions."""
    routes = [
        Route("/", site.file, methods=["GET"]),
        Route("/assets/{name:path}", site.file, methods=["GET"]),
        *(Route(f"{API}{name}", getattr(site, name), methods=["GET"]) for name in GET),
        *(Route(f"{API}{name}", getattr(site, name), methods=["POST"]) for name in POST),
        Route(f"{API}{{name}}", site.answer, methods=["POST"]),
    ]
    found = Starlette(routes=routes, middleware=[Middleware(Guard)], exception_handlers={HTTPException: site.refused})
    found.router.redirect_slashes = False
    return found
