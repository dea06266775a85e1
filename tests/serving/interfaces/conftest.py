"""A service that writes capitals, behind a server on a free loopback port."""

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from regard.serving import markup
from regard.serving.core import (
    NO_KEY,
    Call,
    DocumentRequest,
    Job,
    JobName,
    Key,
    LanguageGuess,
    ServedLanguage,
    ServiceError,
    TextTranslation,
    TranslationRequest,
)
from regard.system.errors import RegardError
from tests.documents.capitals import shouted
from tests.serving.conftest import Reply

PATIENCE = 30.0
"""Seconds after which what a test waits for will not come."""
LANGUAGES = {
    "en": ("English", ("de", "zh-Hans")),
    "de": ("German", ("en",)),
    "zh-Hans": ("Chinese (Simplified)", ("en",)),
    "pt-BR": ("Portuguese (Brazil)", ("en",)),
}
KEY, EMPTY = "a-key", "an-empty-key"


@dataclass
class Capitals:
    """A service that translates by capitals, and tells what it was asked.

    Args:
        open: whether who has no key is admitted.
        refusals: raised by the next translations.
        asked: all requests of translation, documents and detection.
        waits: set once a translation of ``wait`` has begun; it never ends.
        calls: those that were admitted.
    """

    open: bool = True
    refusals: list[Exception] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)
    waits: threading.Event = field(default_factory=threading.Event)
    calls: list[Call] = field(default_factory=list)
    documents: dict[JobName, DocumentRequest] = field(default_factory=dict)
    polls: int = 0

    def admit(self, secret: str | None, client: str) -> Call:
        if secret not in (None, KEY, EMPTY):
            raise ServiceError(403, "this key is not known")
        if secret is None and not self.open:
            raise ServiceError(401, "a key is needed")
        key = Key(1, "team", 1000) if secret else NO_KEY
        self.calls.append(Call(key, client if secret is None else secret))
        return self.calls[-1]

    async def translate(self, request: TranslationRequest, call: Call) -> list[TextTranslation]:
        self.asked.append(request)
        if self.refusals:
            raise self.refusals.pop(0)
        if call.client == EMPTY:
            raise ServiceError(456, "the key has no characters left this month")
        if "wait" in request.texts:
            self.waits.set()
            await asyncio.Event().wait()
        return [self._translation(text, request) for text in request.texts]

    def _translation(self, text: str, request: TranslationRequest) -> TextTranslation:
        source = request.source or "en"
        known = {code.lower(): [to.lower() for to in targets] for code, (_, targets) in LANGUAGES.items()}
        if request.target.lower() not in known.get(source.lower(), ()):
            raise RegardError(f"no model translates from {source} to {request.target}")
        others = tuple(f"{text.upper()} {number}" for number in range(1, request.alternatives + 1))
        if request.markup == "text":
            written = text.upper()
        else:
            splits = request.splitting_tags, request.non_splitting_tags, request.outline
            document = markup.read(text, request.markup, request.ignore_tags, *splits)
            written = document.splice({number: shouted(one) for number, one in enumerate(document.segments)})
        return TextTranslation(written, source, None if request.source else 0.75, alternatives=others)

    def languages(self) -> list[ServedLanguage]:
        return [ServedLanguage(code, *rest, rest[1]) for code, rest in LANGUAGES.items()]

    async def detect(self, text: str, call: Call) -> list[LanguageGuess]:
        self.asked.append(text)
        return [LanguageGuess("en", 0.75), LanguageGuess("de", 0.125)]

    async def put_document(self, request: DocumentRequest, call: Call) -> JobName:
        self.asked.append(request)
        name = JobName(f"{len(self.documents):032x}", f"{len(self.documents):064x}")
        self.documents[name] = request
        return name

    def _document(self, name: JobName) -> DocumentRequest:
        if name not in self.documents:
            raise ServiceError(404, "there is no such document")
        return self.documents[name]

    async def job(self, name: JobName, call: Call) -> Job:
        request = self._document(name)
        self.polls += 1
        if b"broken" in request.content:
            return Job("error", request.name, error="line 1: is no such document")
        if self.polls == 1:
            return Job("translating", request.name, 1, 2, seconds=1)
        return Job("done", request.name, 2, 2, len(request.content))

    async def document(self, name: JobName, call: Call) -> bytes:
        request = self._document(name)
        if self.polls < 2:
            raise ServiceError(503, "the document is not ready yet", 1)
        return request.content.upper()

    def usage(self, call: Call) -> tuple[int, int | None]:
        return sum(sum(map(len, one.texts)) for one in self.asked if hasattr(one, "texts")), call.key.characters


@dataclass
class Site:
    """A server that runs, and how it is asked."""

    service: Capitals
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: bytes | str | None = None, kind: str = "", **headers: str) -> Reply:
        """One request over a connection of its own; ``_`` in the name of a header stands for ``-``."""
        given = {name.replace("_", "-"): value for name, value in headers.items()} | (
            {"Content-Type": kind} if kind else {}
        )
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body.encode() if isinstance(body, str) else body, given)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read())
        finally:
            connection.close()

    def json(self, path: str, content: Any, method: str = "POST", **headers: str) -> Reply:
        return self.ask(method, path, json.dumps(content), "application/json", **headers)

    def form(self, path: str, content: str, method: str = "POST", **headers: str) -> Reply:
        return self.ask(method, path, content, "application/x-www-form-urlencoded", **headers)


def multipart(*parts: tuple[str, str, bytes]) -> tuple[bytes, str]:
    """A form of fields and files: name, name of the file, value."""
    body = b""
    for name, file, value in parts:
        more = f'; filename="{file}"\r\nContent-Type: text/plain' if file else ""
        body += f'--edge\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + value + b"\r\n"
    return body + b"--edge--\r\n", "multipart/form-data; boundary=edge"


@contextmanager
def running(routes: Callable[[Capitals], list[Route]]) -> Iterator[Site]:
    """A server of some routes until the end of the block."""
    service = Capitals()
    app = Starlette(routes=routes(service))
    server = uvicorn.Server(uvicorn.Config(app, ws="none", lifespan="off", log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield Site(service, listener.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
    assert not thread.is_alive()
