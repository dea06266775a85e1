"""The page over HTTP: its files, held in memory, and its routes; model computations run on a worker thread."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from regard.serve.guard import API, ClientDisconnected, Guard, error_body, parse_object, read_body
from regard.serve.worker import Worker
from regard.system.errors import RegardError, UsageError

INDEX = "index.html"
ASSETS = "assets"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
OTHER = "application/octet-stream"
PRESSED = {".png", ".woff2"}
"""Endings of files that do not compress further."""
HASHED = re.compile(r"-[\w-]{8}\.\w+$")
"""File names that contain a content hash."""
FOR_EVER = "public, max-age=31536000, immutable"
GET, POST = ("state", "course"), ("write", "export")
"""Endpoints with a method of their own."""
NUMBER = re.compile(r"\d{1,6}", re.ASCII)
POINTS = 600
"""Default number of points of a training's curves."""
T = TypeVar("T")


@dataclass(frozen=True)
class File:
    """A file of the page.

    Args:
        name: below the page's folder.
        content: its bytes.
        more: headers in the place of the usual ones.
    """

    name: str
    content: bytes
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def headers(self) -> dict[str, str]:
        """Content type and caching; files without a hash in their name are revalidated every time."""
        kept = {"Cache-Control": FOR_EVER} if HASHED.search(self.name) else {}
        return {"Content-Type": TYPES.get(Path(self.name).suffix, OTHER), **kept, **self.more}

    @cached_property
    def gzip_content(self) -> bytes | None:
        """The gzipped content, if that is smaller."""
        if Path(self.name).suffix in PRESSED:
            return None
        found = gzip.compress(self.content, mtime=0)
        return found if len(found) < len(self.content) else None


def files(folder: Path) -> dict[str, File]:
    """The files of a page by name: its index and its assets.

    Raises:
        RegardError: there is no page.
    """
    if not (folder / INDEX).is_file():
        raise RegardError("the page is not here; pip install regard, or build it (web/)", str(folder))
    paths = [folder / INDEX, *sorted(path for path in (folder / ASSETS).rglob("*") if path.is_file())]
    names = [path.relative_to(folder).as_posix() for path in paths]
    return {name: File(name, path.read_bytes()) for name, path in zip(names, paths, strict=True)}


class Answers(Protocol):
    """The module :mod:`regard.inspection.questions.answers`, or its stand-in in tests."""

    @property
    def ANSWERS(self) -> Mapping[str, object]: ...

    def state(self, models: Any, /) -> dict[str, Any]: ...

    def course(self, models: Any, number: int, points: int, /) -> bytes: ...

    def answer(self, models: Any, name: str, asked: dict[str, Any], /) -> bytes: ...

    def stream_tokens(self, models: Any, asked: dict[str, Any], /) -> Iterator[dict[str, Any]]: ...

    def export_file(self, models: Any, asked: dict[str, Any], /) -> tuple[bytes, str, str]: ...


class Site:
    """The page's HTTP endpoints.

    Args:
        models: to explore.
        answers: the answer functions.
        files: of the page, by name.
    """

    def __init__(self, models: Any, answers: Answers, files: Mapping[str, File]) -> None:
        self.models, self.answers, self.files = models, answers, files
        self.computing = Worker()
        """The thread for model computations."""
        self.reading = Worker()
        """The thread for file access, independent of the first."""
        self.following = Worker()
        """The thread that reads logs, which may be long."""

    def start(self, first: Callable[[], object] | None = None) -> None:
        """Start the threads; the computing one does ``first`` first."""
        self.computing.start(first)
        self.reading.start()
        self.following.start()

    def end(self) -> None:
        """End the threads; who waits gets an error."""
        for worker in (self.computing, self.reading, self.following):
            worker.end()

    async def file(self, request: Request) -> Response:
        """A static file of the page."""
        file = self.files.get(request.scope["path"].removeprefix("/") or INDEX)
        if file is None:
            raise HTTPException(404)
        headers = {**file.headers, "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", "") and file.gzip_content is not None:
            return Response(file.gzip_content, headers={**headers, "Content-Encoding": "gzip"})
        return Response(file.content, headers=headers)

    async def state(self, request: Request) -> Response:
        """The state of all models."""
        return JSONResponse(await _unless_left(request, self.reading.call(lambda: self.answers.state(self.models))))

    async def course(self, request: Request) -> Response:
        """The metrics of a training."""
        number, points = _number(request, "model", 0), _number(request, "points", POINTS)
        work = self.following.call(lambda: self.answers.course(self.models, number, points))
        return _binary_response(await _unless_left(request, work))

    async def answer(self, request: Request) -> Response:
        """The answer of an endpoint, by name."""
        name = request.path_params["name"]
        if name not in self.answers.ANSWERS:
            raise HTTPException(405, headers={"Allow": "GET"}) if name in GET else HTTPException(404)
        asked = parse_object(await read_body(request))
        work = self.computing.call(lambda: self.answers.answer(self.models, name, asked))
        return _binary_response(await _unless_left(request, work))

    async def export(self, request: Request) -> Response:
        """A file to download."""
        asked = parse_object(await read_body(request))
        work = self.computing.call(lambda: self.answers.export_file(self.models, asked))
        content, kind, name = await _unless_left(request, work)
        disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
        return Response(content, headers={"Content-Type": kind, "Content-Disposition": disposition})

    async def write(self, request: Request) -> Response:
        """Generated tokens, streamed one JSON object per line."""
        asked = parse_object(await read_body(request))
        said = self.computing.stream(lambda: self.answers.stream_tokens(self.models, asked))
        first = await _unless_left(
            request, anext(said, None)
        )  # before the first token, an error becomes an HTTP status instead of a line
        return StreamingLines(first, said)

    def route_error(self, request: Request, error: Exception) -> Response:
        """Response to an unknown path or a wrong method; unknown paths answer every method alike."""
        path = request.scope["path"]
        if path.startswith(API) and path.removeprefix(API) not in {*GET, *POST, *self.answers.ANSWERS}:
            error = HTTPException(404)
        status, said = error_body(error)
        return JSONResponse(said, status, headers=getattr(error, "headers", None))


class StreamingLines(StreamingResponse):
    """Streams values as JSON lines; an error becomes the last line. A disconnect ends the generator.

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
                yield _json_line(self._first)
            async for value in self._rest:
                yield _json_line(value)
        except Exception as error:
            yield _json_line({"error": error_body(error)[1]["error"]})


def _json_line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _binary_response(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not NUMBER.fullmatch(text):
        raise UsageError(f"expected an integer from 0 to 999999, not {text[:20]!r}", name)
    return int(text)


async def _unless_left(request: Request, work: Awaitable[T]) -> T:
    """The result of the work, which is cancelled when the client disconnects.

    Raises:
        ClientDisconnected: the client has disconnected.
    """
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_wait_for_disconnect(request.receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnected
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def create_app(site: Site) -> Starlette:
    """The page's web application."""
    routes = [
        Route("/", site.file, methods=["GET"]),
        Route("/assets/{name:path}", site.file, methods=["GET"]),
        *(Route(f"{API}{name}", getattr(site, name), methods=["GET"]) for name in GET),
        *(Route(f"{API}{name}", getattr(site, name), methods=["POST"]) for name in POST),
        Route(f"{API}{{name}}", site.answer, methods=["POST"]),
    ]
    found = Starlette(
        routes=routes, middleware=[Middleware(Guard)], exception_handlers={HTTPException: site.route_error}
    )
    found.router.redirect_slashes = False
    return found
