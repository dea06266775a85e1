"""An interface over HTTP: how its requests are read, who may ask, and how its answers and errors look."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from inspect import iscoroutinefunction
from pathlib import PurePath
from typing import Annotated, Any, Generic, TypeVar
from urllib.parse import parse_qsl, quote
from uuid import uuid4

from pydantic import BaseModel, InstanceOf, ValidationError, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import ErrorDetails, to_json
from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from regard.documents.kinds import kind_of
from regard.library.serve.body import ClientDisconnected, RequestRefused, json_object, read_chunks, unless_left
from regard.serving.core import Call, CallEnded, Service, ServiceError, describe_fault
from regard.system.errors import RegardError

_LOG = logging.getLogger(__name__)
MOST_BYTES = 1 << 20
"""Of a request without documents."""
HELD = 256 << 20
"""Bytes of requests beyond that, of all that arrive at once: they are in memory before a key in a form is found."""
STRANGERS = 4
"""What part of them, one of so many, is for clients without a key in a header, where clients need one."""
MOST_FIELDS = 2000
MOST_FILES = 10
SLOW = 20.0
"""Seconds for a request to arrive, and as many more for each mebibyte that it may have."""
SCHEMES = ("deepl-auth-key", "bearer")
"""What stands before a key in the header ``Authorization``."""
HEADERS = {"document_secret": "Document-Secret"}
"""Fields that are headers."""
TRACE = "X-Trace-ID"
NOT_UTF8 = "a form must be UTF-8"
UNEXPECTED = "unexpected error; the log of the server has more"
BYTES = "application/octet-stream"
CLOSED = 499
"""Status of an answer that nobody waits for."""


class Fields(BaseModel):
    """What an operation reads of a request: query, body, headers, path; unknown fields are ignored."""


@dataclass(frozen=True)
class FormFile:
    """A file in a form: its name, without folders, and its bytes."""

    name: str
    content: bytes


File = Annotated[FormFile, InstanceOf, WithJsonSchema({"type": "string", "format": "binary"})]
"""A field that is a file."""
BaseURL = SkipJsonSchema[str]
"""A field ``base_url``: the address by which the client reached the server."""
F = TypeVar("F", bound=Fields)
logging.getLogger("python_multipart.multipart").disabled = True  # it would print a line for every damaged form


@dataclass(frozen=True)
class Operation(Generic[F]):
    """What an interface does at a path.

    Args:
        method: ``GET``, ``POST`` …
        path: as Starlette writes it, ``/v2/document/{document_id}``; its parts are fields.
        fields: what is read of a request.
        answer: what is sent as JSON, or a response, of these fields and the call; if it is not ``async``, it may wait
            for the disk, and runs in a thread.
        status: of an answer that is no response.
        admits: whether the client is admitted; else its call has no key.
        most_bytes: of a request.
    """

    method: str
    path: str
    fields: type[F]
    answer: Callable[[F, Call], object]
    status: int = 200
    admits: bool = True
    most_bytes: int = MOST_BYTES


@dataclass(frozen=True, eq=False)
class Interface:
    """Operations with one shape of errors; every exception of theirs becomes such an answer.

    Args:
        error: the body of an error, of its status and its sentence; default: the sentence alone.
        secrets: fields that a key may be in, beside the header ``Authorization``.
        statuses: of errors, where the interface has another than the service.
        missing: the sentence about a field that a request lacks.
        prefixes: of paths that are its own, also where there is no operation.
    """

    error: Callable[[int, str], object] = lambda _, sentence: {"error": sentence}
    secrets: Sequence[str] = ("api_key",)
    statuses: Mapping[int, int] = field(default_factory=dict)
    missing: str = "the request lacks {}"
    prefixes: tuple[str, ...] = ()

    def routes(self, service: Service, operations: Iterable[Operation[Any]]) -> list[Route]:
        """A route for each operation, which the service answers."""
        return [Route(one.path, self._endpoint(service, one), methods=[one.method]) for one in operations]

    def owns(self, path: str) -> bool:
        """Whether a path is its own, so that what has no route there is told in its words."""
        return path.startswith(self.prefixes)

    def error_response(self, error: Exception) -> Response:
        """An error as clients of this interface read it; an unexpected one is printed without what was asked."""
        headers = dict[str, str]()
        if isinstance(error, CallEnded | ClientDisconnected):
            return Response(status_code=CLOSED)
        if isinstance(error, RegardError):
            status = error.status if isinstance(error, ServiceError | RequestRefused) else 400
            sentence = str(error)
            if isinstance(error, ServiceError) and error.retry_after is not None:
                headers["Retry-After"] = str(error.retry_after)
        elif isinstance(error, HTTPException):
            status, sentence, headers = error.status_code, error.detail, dict(error.headers or {})
        else:
            _LOG.error(describe_fault(error))
            status, sentence = 500, UNEXPECTED
        status = self.statuses.get(status, status)
        return json_response(self.error(status, sentence), status, headers)

    def _endpoint(self, service: Service, operation: Operation[Any]) -> Callable[[Request], Awaitable[Response]]:
        answers: Any = operation.answer
        if not iscoroutinefunction(answers):
            answers = partial(asyncio.to_thread, answers)

        async def respond(request: Request) -> Response:
            call = None
            try:
                with BODY_LIMITS.room(partial(_has_key, service, request)) as claim:
                    found = await read_fields(request, operation.most_bytes, claim)
                client = request.client.host if request.client else ""
                secret = secret_of(request.headers, found, self.secrets) if operation.admits else None
                call = service.admit(secret, client) if operation.admits else Call(client=client)
                asked = self._validate(operation.fields, found)
                answer = await unless_left(request, answers(asked, call))
                response = answer if isinstance(answer, Response) else json_response(answer, operation.status)
                response.headers.setdefault(TRACE, uuid4().hex)
                return response
            except Exception as error:
                if call and isinstance(error, ClientDisconnected):
                    call.leave()
                return self.error_response(error)

        return respond

    def _validate(self, fields: type[F], found: Mapping[str, object]) -> F:
        try:
            return fields.model_validate(found)
        except ValidationError as error:
            raise RegardError(self._sentence(error.errors(include_url=False)[0])) from None

    def _sentence(self, first: ErrorDetails) -> str:
        where = ".".join(str(part) for part in first["loc"] if isinstance(part, int) or part.isidentifier())
        if first["type"] == "missing":
            header = HEADERS.get(where)
            return f"the request lacks the header {header}" if header else self.missing.format(where)
        if first["type"] == "is_instance_of":
            return f"{where}: expected one file in a form"
        if first["type"] == "value_error":
            return f"{where}: {first['ctx']['error']}" if where else str(first["ctx"]["error"])
        return f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}"


class BodyLimits:
    """Limits the bytes of large requests that arrive at once, so that strangers leave room for clients with keys.

    Attributes:
        held: bytes of clients that are known, and of strangers.
    """

    def __init__(self) -> None:
        self.held = {True: 0, False: 0}

    @contextmanager
    def room(self, known: Callable[[], bool]) -> Iterator[Callable[[int], None]]:
        """Within, a request arrives, and claims room for as many bytes as it has by now.

        Args:
            known: whether the client is no stranger; only asked of a large request.
        """
        own, is_known = 0, False

        def claim(size: int) -> None:
            nonlocal own, is_known
            more = size - MOST_BYTES - own
            if more <= 0:
                return
            is_known = is_known or (own == 0 and known())
            full = sum(self.held.values()) + more > HELD
            if full or (not is_known and self.held[False] + more > HELD // STRANGERS):
                raise ServiceError(429, "too many large requests arrive at once; ask again in 5 s", 5)
            self.held[is_known] += more
            own += more

        try:
            yield claim
        finally:
            self.held[is_known] -= own


def _has_key(service: Service, request: Request) -> bool:
    """Whether the client is admitted by what is in the headers."""
    try:
        service.admit(secret_of(request.headers, {}, ()), "")
    except ServiceError:
        return False
    return True


BODY_LIMITS = BodyLimits()


def json_response(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer as JSON in UTF-8; every answer has a number of its own, by which clients name it."""
    found = {TRACE: uuid4().hex, **(headers or {})}
    return Response(None if status == 204 else to_json(content), status, found, "application/json")


def kind_of_file(name: str) -> str:
    """The kind of a document, by the ending of its name.

    Raises:
        ServiceError: it is none that is translated (400).
    """
    path = PurePath(name)
    kind = "text" if path.suffix.lower() == ".txt" else kind_of(path)
    if kind is None:
        raise ServiceError(400, f"file format not supported: {path.suffix[:20]!r}")
    return kind


def attachment(name: str, content: bytes) -> Response:
    """An answer that is a file to keep."""
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return Response(content, headers={"Content-Disposition": disposition}, media_type=BYTES)


def secret_of(headers: Mapping[str, str], fields: Mapping[str, object], names: Sequence[str]) -> str | None:
    """The key that a request has, if it has one."""
    scheme, _, secret = headers.get("authorization", "").strip().partition(" ")
    if scheme.lower() in SCHEMES and secret.strip():
        return secret.strip()
    found = (fields.get(name) for name in names)
    return next((one for one in found if isinstance(one, str) and one), None)


async def read_fields(request: Request, most_bytes: int, claim: Callable[[int], None]) -> dict[str, object]:
    """The fields of a request's query, body (JSON, or a form), headers and path; a later one stands for an earlier.

    Args:
        request: its body is not read yet.
        most_bytes: of it; a document may have so many, and the form around it as many as a request without one.
        claim: told of the bytes that have arrived, whenever some have.

    Raises:
        RequestRefused: it is too large, arrives too slowly, or is neither JSON nor a form in UTF-8.
        ClientDisconnected: the client has disconnected.
    """
    if request.headers.get("content-encoding", "identity") != "identity":
        raise RequestRefused(415, "a request must not be compressed")
    kind, _, options = request.headers.get("content-type", "").partition(";")
    kind = kind.strip().lower()
    is_form, most = kind == "multipart/form-data", most_bytes
    if is_form and most_bytes > MOST_BYTES:
        most += MOST_BYTES
    chunks = read_chunks(request, most, SLOW * max(1, most_bytes >> 20), claim)
    if is_form:
        body = await _multipart(options, chunks, most_bytes)
    else:
        body = _parse(kind, b"".join([chunk async for chunk in chunks]))
    scheme = "https" if request.headers.get("x-forwarded-proto") == "https" else request.url.scheme  # a proxy's
    return {
        **_form(request.scope.get("query_string", b"")),
        **body,
        **{name: request.headers[header] for name, header in HEADERS.items() if header in request.headers},
        **request.path_params,
        "base_url": str(request.base_url.replace(scheme=scheme)),
    }


def _parse(kind: str, content: bytes) -> dict[str, object]:
    if kind == "application/x-www-form-urlencoded":
        return _form(content)
    if not content.strip():
        return {}
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise RequestRefused(415, "a request must be JSON or a form")
    return json_object(content)


def _form(content: bytes) -> dict[str, object]:
    try:
        found = parse_qsl(content.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except UnicodeDecodeError:
        raise RequestRefused(400, NOT_UTF8) from None
    except ValueError:
        raise RequestRefused(413, f"a form may have at most {MOST_FIELDS:,} fields") from None
    return _gather(found)


def _gather(items: Iterable[tuple[str, object]]) -> dict[str, object]:
    """The value of each field, or the list of its values where it has several."""
    found = dict[str, list[object]]()
    for name, value in items:
        found.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


class _FormParser(MultiPartParser):
    """Reads forms in UTF-8; Starlette's takes what is none for Latin-1."""

    def on_part_end(self) -> None:
        if self._current_part.file is None:
            self._current_part.data.decode()
        super().on_part_end()


async def _multipart(options: str, chunks: AsyncGenerator[bytes, None], most_bytes: int) -> dict[str, object]:
    headers = Headers({"Content-Type": f"multipart/form-data;{options}"})
    if parse_options_header(headers["Content-Type"])[1].get(b"charset", b"utf-8").lower() not in (b"utf-8", b"utf8"):
        raise RequestRefused(415, NOT_UTF8)
    limits: dict[str, int] = {"max_files": MOST_FILES, "max_fields": MOST_FIELDS, "max_part_size": MOST_BYTES}
    try:
        form = await _FormParser(headers, chunks, **limits).parse()
    except MultiPartException as error:
        raise RequestRefused(400, f"the form cannot be read: {error.message}") from None
    except UnicodeDecodeError:
        raise RequestRefused(400, NOT_UTF8) from None
    try:
        return _gather([(name, await _form_value(value, most_bytes)) for name, value in form.multi_items()])
    finally:
        await form.close()


async def _form_value(value: UploadFile | str, most_bytes: int) -> object:
    if isinstance(value, str):
        return value
    if (value.size or 0) > most_bytes:
        raise RequestRefused(413, f"a file may have at most {most_bytes:,} bytes")
    name = (value.filename or "").replace("\\", "/").rpartition("/")[2]
    return FormFile(name, await value.read())
