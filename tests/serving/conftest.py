"""A whole server with a shipped model, on a free loopback port."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from regard.inspection import SHIPPED
from regard.serving.app import Access, ServiceServer, ServiceSite, listen
from regard.serving.models import ServedModels
from regard.serving.search.threads import SearchThreads
from regard.serving.service import Limits, TranslationService
from regard.serving.store import Store
from regard.system.kernels.packing import Precision

PATIENCE = 20.0
PAIR = f"en:de={SHIPPED[0]}"
FOLDERS = (PAIR,)


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


class Running:
    """A server in a thread of its own."""

    def __init__(
        self,
        access: Access,
        needs_key: bool,
        limits: Limits,
        precision: Precision = "fp32",
        folders: Sequence[str] = FOLDERS,
        data: Path | None = None,
    ) -> None:
        self.store = Store.open(data)
        searching = SearchThreads(2)
        models = ServedModels(folders, precision, 0.0, searching)
        self.service = TranslationService(models, self.store, searching, needs_key, limits)
        self.listener = listen("127.0.0.1", 0)
        self.port: int = self.listener.getsockname()[1]
        self.server = ServiceServer(ServiceSite(self.service, access), self.service)
        self.service.start()
        self.thread = threading.Thread(target=self.server.run, args=([self.listener],))
        self.thread.start()
        while not self.server.started:
            self.thread.join(0.01)

    def ask(self, method: str, path: str, content: Any = None, **headers: str) -> Reply:
        """One request over a connection of its own; what is no bytes is sent as JSON; ``_`` stands for ``-``."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if content is not None and not isinstance(content, bytes):
            content = json.dumps(content).encode()
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

    @property
    def sentences(self) -> int:
        """Those that wait, or are under search."""
        now = self.service.searching.counts()
        return now.running + now.waiting

    def end(self) -> None:
        self.service.refuse_new()
        self.server.should_exit = True
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


Start = Callable[..., Running]


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """A server that lets everybody in."""
    found = Running(Access(), False, Limits())
    yield found
    found.end()


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a server as a test wants it."""
    there: list[Running] = []

    def begin(
        access: Access | None = None,
        needs_key: bool = False,
        precision: Precision = "fp32",
        folders: Sequence[str] = FOLDERS,
        data: Path | None = None,
        **limits: Any,
    ) -> Running:
        there.append(Running(access or Access(), needs_key, Limits(**limits), precision, folders, data))
        return there[-1]

    yield begin
    for one in there:
        one.end()
