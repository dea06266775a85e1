"""A server per test on a free loopback port, with answers that the test defines."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from regard.library.serve import app, files
from regard.library.serve.server import LIMITS, Limits, Server, listen
from regard.library.serve.worker import Worker
from regard.system.errors import Option, UsageError

PATIENCE = 10.0
"""Seconds after which what a test waits for will not come."""


def get(path: str) -> bytes:
    """A request's head without its end; ``Site.send`` puts the port in."""
    return f"GET {path} HTTP/1.1\r\nHost: localhost:%d\r\n".encode()


def post(name: str) -> bytes:
    return f"POST /api/{name} HTTP/1.1\r\nHost: localhost:%d\r\nContent-Type: application/json\r\n".encode()


HEAD, POST = get("/api/state"), post("look")


class Answers:
    """What is asked, and answered as its name says; it stands for the models, and its class for what answers."""

    ANSWERS = dict.fromkeys(("look", "wait", "usage", "fail", "large"))
    LONG = 99
    """The number of a model whose log is long."""
    LARGE = 16 << 20
    """Bytes of an answer that is large."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.go = threading.Event()
        self.token = threading.Semaphore(0)
        self.threads: set[int] = set()

    def state(self) -> dict[str, Any]:
        return {"models": 1, "title": "für"}

    def course(self, number: int, points: int) -> bytes:
        if number == self.LONG:
            self.begun.append("course")
            assert self.go.wait(PATIENCE)
        return f"course {number} {points}".encode()

    def answer(self, name: str, asked: dict[str, Any]) -> bytes:
        self.threads.add(threading.get_ident())
        said = str(asked.get("said", name))
        self.begun.append(said)
        if name == "wait":
            assert self.go.wait(PATIENCE)
        if name == "usage":
            raise UsageError("there is no head 9", Option("head_of"))
        if name == "fail":
            raise ZeroDivisionError("the secret is 17")
        self.ended.append(said)
        return b"." * self.LARGE if name == "large" else said.encode()

    def stream_tokens(self, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self.threads.add(threading.get_ident())
        try:
            for number in range(asked["most"]):
                if number == asked.get("usage"):
                    raise UsageError("too long", "text")
                if number == asked.get("fail"):
                    raise ZeroDivisionError("the secret is 17")
                if asked.get("slow"):
                    assert self.token.acquire(timeout=PATIENCE)
                self.begun.append(f"token {number}")
                yield {"id": number, "piece": "ö"}
            yield {"done": True, "text": "all"}
        finally:
            self.ended.append("written")

    def export_file(self, asked: dict[str, Any]) -> tuple[bytes, str, str]:
        return b"<svg/>", "image/svg+xml", asked["name"]


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


@dataclass
class Site:
    """A server that runs, and how it is asked."""

    server: Server
    answers: Answers
    port: int
    open: list[socket.socket] = field(default_factory=list)

    def ask(self, method: str, path: str, content: Any = None, **headers: str) -> Reply:
        """One question over a connection of its own; what is no bytes is sent as JSON; ``_`` stands for ``-``."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if content is not None and not isinstance(content, bytes):
            content = json.dumps(content).encode()
        if method == "POST":
            given = {"Content-Type": "application/json", **given}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, content, given)
            answer = connection.getresponse()
            return Reply(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.ask("GET", path, **headers)

    def post(self, path: str, content: Any = None, **headers: str) -> Reply:
        return self.ask("POST", path, {} if content is None else content, **headers)

    def send(self, content: bytes, room: int | None = None) -> socket.socket:
        """These bytes over a connection of its own, which stays open until the test closes it, and buffers so much."""
        made = socket.socket()
        self.open.append(made)
        if room:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        made.settimeout(PATIENCE)
        made.connect(("127.0.0.1", self.port))
        made.sendall(content.replace(b"%d", b"%d" % self.port))
        return made

    def occupy(self) -> socket.socket:
        """A question that is computed until the answers' ``go`` is set."""
        made = self.begin("/api/wait", {})
        until(lambda: self.answers.begun == ["wait"])
        return made

    @property
    def connections(self) -> set[Any]:
        return self.server.server_state.connections

    def queued(self) -> int:
        """How many questions wait behind the one that is computed."""
        return len(self.server.site.computing.waiting)

    def idle(self) -> bool:
        """Whether nothing is computed, and nothing waits."""
        return not self.queued() and self.server.site.computing.now is None

    def begin(self, path: str, asked: dict[str, Any]) -> socket.socket:
        """A question whose answer is not waited for."""
        content = json.dumps(asked).encode()
        return self.send(post(path.removeprefix("/api/")) + b"Content-Length: %d\r\n\r\n" % len(content) + content)


def reply(connection: socket.socket) -> Reply:
    """The next answer on a connection."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    return Reply(answer.status, dict(answer.getheaders()), answer.read())


def everything(connection: socket.socket) -> bytes:
    """What comes until the connection is closed from the other side; waits for that."""
    found = b""
    with suppress(ConnectionError):
        while some := connection.recv(1 << 16):
            found += some
    return found


def until(met: Callable[[], Any]) -> None:
    """Wait for what will be true soon."""
    end = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.002)


def build(folder: Path) -> Path:
    """A built page, and something beside it that is none of it."""
    page = folder / "page"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text("<!doctype html><title>Regard</title>" + " " * 500, encoding="utf-8")
    (page / "one.html").write_text("a template")
    (page / "assets" / "index-Ab3_x-9Z.js").write_text("'ä';" * 300, encoding="utf-8")
    (page / "assets" / "plain.css").write_text("p{}")
    (page / "assets" / "font-Ab3_x-9Z.woff2").write_bytes(b"wOF2" * 100)
    (folder / "secret.txt").write_text("secret")
    return page


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return build(tmp_path)


@pytest.fixture(scope="module", autouse=True)
def _answers() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "answers", Answers)
        yield


@contextmanager
def running(folder: Path, limits: Limits = LIMITS) -> Iterator[Site]:
    """A server until the end of the block."""
    answers = Answers()
    server = Server(app.Site(answers, files.files(folder)), limits=limits)
    with listen(0) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        yield Site(server, answers, listener.getsockname()[1])
        server.should_exit = True
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert all(ended(worker) for worker in (server.site.computing, server.site.reading, server.site.following))


def ended(worker: Worker, seconds: float = PATIENCE) -> bool:
    """Whether a worker's thread ends within this time."""
    worker.thread.join(seconds)
    return not worker.thread.is_alive()


@contextmanager
def tidied(site: Site) -> Iterator[Site]:
    """Nothing is computed at the beginning of the block, and no connection is open at its end."""
    until(site.idle)
    site.answers.forget()
    try:
        yield site
    finally:
        site.answers.go.set()
        site.answers.token.release(1000)
        for connection in site.open:
            connection.close()
        site.open.clear()


@pytest.fixture(scope="module")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running(build(tmp_path_factory.mktemp("built"))) as site:
        yield site


@pytest.fixture
def site(_shared: Site) -> Iterator[Site]:
    """A server that the tests of a module share; it has nothing to do when a test begins."""
    with tidied(_shared):
        yield _shared


@pytest.fixture
def own_site(folder: Path) -> Iterator[Site]:
    """A server of the test's own."""
    with running(folder) as site, tidied(site):
        yield site


@pytest.fixture(scope="module")
def _limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Limits], Site]]:
    with ExitStack() as stack:
        page = build(tmp_path_factory.mktemp("built"))
        yield cache(lambda limits: stack.enter_context(running(page, limits)))


@pytest.fixture
def limited(_limited: Callable[[Limits], Site]) -> Iterator[Callable[..., Site]]:
    """A server that bears as much as is said; those tests of a module that say the same share it."""
    with ExitStack() as stack:

        def one(**limits: Any) -> Site:
            found = _limited(Limits(**limits))
            until(lambda: not found.connections)
            return stack.enter_context(tidied(found))

        yield one
