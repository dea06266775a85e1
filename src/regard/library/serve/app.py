"""The page over HTTP: its files, held in memory, and its routes; model computations run on a worker thread."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from regard.inspection.folders.models import Models
from regard.inspection.questions import answers
from regard.library.serve.body import StreamingLines, unless_left
from regard.library.serve.files import OTHER, File, file_response
from regard.library.serve.guard import API, Guard, error_body, read_object
from regard.library.serve.worker import Worker
from regard.system.errors import UsageError

GET, POST = ("state", "course"), ("write", "export")
"""Endpoints with a method of their own."""
NUMBER = re.compile(r"\d{1,6}", re.ASCII)
POINTS = 600
"""Default number of points of a training's curves."""


class Site:
    """The page's HTTP endpoints.

    Args:
        models: to explore.
        files: of the page, by name.
    """

    def __init__(self, models: Models, files: Mapping[str, File]) -> None:
        self.models, self.files = models, files
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
        return file_response(self.files, request)

    async def state(self, request: Request) -> Response:
        """The state of all models."""
        return JSONResponse(await unless_left(request, self.reading.call(lambda: answers.state(self.models))))

    async def course(self, request: Request) -> Response:
        """The metrics of a training."""
        number, points = _number(request, "model", 0), _number(request, "points", POINTS)
        work = self.following.call(lambda: answers.course(self.models, number, points))
        return Response(await unless_left(request, work), media_type=OTHER)

    async def answer(self, request: Request) -> Response:
        """The answer of an endpoint, by name."""
        name = request.path_params["name"]
        if name not in answers.ANSWERS:
            raise HTTPException(405, headers={"Allow": "GET"}) if name in GET else HTTPException(404)
        asked = await read_object(request)
        work = self.computing.call(lambda: answers.answer(self.models, name, asked))
        return Response(await unless_left(request, work), media_type=OTHER)

    async def export(self, request: Request) -> Response:
        """A file to download."""
        asked = await read_object(request)
        work = self.computing.call(lambda: answers.export_file(self.models, asked))
        content, kind, name = await unless_left(request, work)
        disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
        return Response(content, headers={"Content-Type": kind, "Content-Disposition": disposition})

    async def write(self, request: Request) -> Response:
        """Generated tokens, streamed one JSON object per line."""
        asked = await read_object(request)
        said = self.computing.stream(lambda: answers.stream_tokens(self.models, asked))
        # Before the first token, an error becomes an HTTP status instead of a line.
        first = await unless_left(request, anext(said, None))
        return StreamingLines(first, said, "application/x-ndjson", _json_line, _error_line)

    def route_error(self, request: Request, error: Exception) -> Response:
        """Response to an unknown path or a wrong method; unknown paths answer every method alike."""
        path = request.scope["path"]
        if path.startswith(API) and path.removeprefix(API) not in {*GET, *POST, *answers.ANSWERS}:
            error = HTTPException(404)
        status, said = error_body(error)
        return JSONResponse(said, status, headers=getattr(error, "headers", None))

    def app(self) -> Starlette:
        """The page's web application."""
        routes = [
            Route("/", self.file, methods=["GET"]),
            Route("/assets/{name:path}", self.file, methods=["GET"]),
            *(Route(f"{API}{name}", getattr(self, name), methods=["GET"]) for name in GET),
            *(Route(f"{API}{name}", getattr(self, name), methods=["POST"]) for name in POST),
            Route(f"{API}{{name}}", self.answer, methods=["POST"]),
        ]
        handlers = {HTTPException: self.route_error}
        found = Starlette(routes=routes, middleware=[Middleware(Guard)], exception_handlers=handlers)
        found.router.redirect_slashes = False
        return found


def _json_line(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _error_line(error: Exception) -> bytes:
    return _json_line({"error": error_body(error)[1]["error"]})


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not NUMBER.fullmatch(text):
        raise UsageError(f"expected an integer from 0 to 999999, not {text[:20]!r}", name)
    return int(text)
