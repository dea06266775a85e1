"""Documents are translated whole and once, whoever is killed, leaves or fails meanwhile."""

import json
import logging
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from queue import Queue

import pytest

from regard.documents.kinds import kind_of, read_document
from regard.documents.segment import Segment
from regard.documents.translate import SegmentAnswer
from regard.serving import jobs
from regard.serving.core import Call, DocumentRequest, Job, JobName, Key, ServiceError
from regard.serving.jobs import JobRunner
from regard.serving.store import Store
from regard.serving.store.database import NAME
from tests.documents.capitals import in_capitals, shouted

LINES = "\n\n".join(f"line {number} of a text" for number in range(100)).encode()
TEXT = DocumentRequest("a.txt", LINES, "de", kind="text")
PAGE = DocumentRequest("a.html", b"<p>A <b>black</b> dog.</p><p>A cat.</p>", "de")


@pytest.fixture(autouse=True)
def chunks(monkeypatch) -> None:
    """Of 32 segments: a document of 100 has four."""
    monkeypatch.setattr(jobs, "CHUNK", 32)


def shout(request: DocumentRequest, segments: Sequence[Segment], call: Call) -> list[SegmentAnswer]:
    """A translation that is easy to check."""
    return [SegmentAnswer(shouted(one), unsure=one.text == "A black dog.") for one in segments]


def expected(request: DocumentRequest) -> bytes:
    kind = request.kind or str(kind_of(Path(request.name)))
    return in_capitals(read_document(request.content, kind))


@contextmanager
def run(store: Store, translate: jobs.Translate = shout, threads: int = 2, lease: float = 15.0) -> Iterator[JobRunner]:
    runner = JobRunner(store, translate, threads=threads, lease=lease)
    runner.start()
    try:
        yield runner
    finally:
        runner.end(20)
        assert not any(thread.is_alive() for thread in (*runner._workers, runner._housekeeper))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(tmp_path)) as found:
        yield found


def ended(store: Store, name: JobName) -> Job:
    """A document once it is done, or could not be."""
    pause = threading.Event()
    for _ in range(6000):
        found = store.jobs.find(name)
        if found.status in ("done", "error"):
            return found
        pause.wait(0.01)
    raise AssertionError(found)


def test_documents_become_their_translations(store: Store) -> None:
    with run(store) as runner:
        names = [runner.put(request) for request in (TEXT, PAGE)]
        assert ended(store, names[0]).done == 100
        found = ended(store, names[1])
        assert (found.status, found.name, found.segments, found.characters) == ("done", "a.de.html", 2, 18)
        assert found.report == (
            "2 segments translated; 0 left as they are; 0 numbers, placeholders and the like kept",
            "the model is unsure of line 1",
        )
        assert [store.jobs.result(name) for name in names] == [expected(TEXT), expected(PAGE)]
    assert store.usage.of(0) == sum(len(line) for line in LINES.decode().split("\n\n")) + 18


def test_what_waits_is_translated_at_the_next_start(store: Store) -> None:
    runner = JobRunner(store, shout)
    name = runner.put(TEXT)
    runner.end(60)
    with run(store) as runner:
        assert ended(store, name).status == "done"


class Gate:
    """A translation whose chunks wait until they are let through."""

    def __init__(self) -> None:
        self.come, self.go = Queue[str](), threading.Semaphore(0)
        self.texts = list[str]()

    def __call__(self, request: DocumentRequest, segments: Sequence[Segment], call: Call) -> list[SegmentAnswer]:
        self.come.put(request.name)
        while not self.go.acquire(timeout=0.01):
            call.check()
        self.texts += [one.text for one in segments]
        return shout(request, segments, call)

    def wait(self) -> str:
        """The document of the next chunk."""
        return self.come.get(timeout=60)


def test_at_the_end_the_chunk_in_work_is_written_and_the_rest_goes_on_later(store: Store) -> None:
    gate = Gate()
    runner = JobRunner(store, gate, threads=1)
    name = runner.put(TEXT)
    runner.start()
    gate.wait()
    gate.go.release()
    gate.wait()
    found = store.jobs.find(name)
    assert (found.status, found.done, found.segments) == ("translating", 32, 100)
    ending = threading.Thread(target=runner.end, args=(60,))
    ending.start()
    assert runner._ends.wait(60)
    with pytest.raises(ServiceError, match="the server ends"):
        runner.put(TEXT)
    gate.go.release()
    ending.join(60)
    assert store.jobs.find(name).done == 64
    assert store.jobs.waits(3600), "nobody needs to wait for the lease to end"
    with run(store, gate):
        gate.go.release(2)
        assert ended(store, name).status == "done"
        assert store.jobs.result(name) == expected(TEXT)
    assert gate.texts == LINES.decode().split("\n\n")


def test_what_takes_longer_than_the_end_is_left(store: Store) -> None:
    gate = Gate()
    runner = JobRunner(store, gate, threads=1)
    name = runner.put(TEXT)
    runner.start()
    gate.wait()
    runner.end(0)
    assert not any(thread.is_alive() for thread in runner._workers)
    assert store.jobs.find(name) == Job("translating", "a.de.txt", 0, 100, store_characters())
    with run(store):
        assert ended(store, name).status == "done"


def store_characters() -> int:
    return sum(map(len, LINES.decode().split("\n\n")))


def test_a_document_that_is_deleted_ends_at_once(store: Store) -> None:
    gate = Gate()
    with run(store, gate, 1) as runner:
        name, other = runner.put(TEXT), runner.put(PAGE)
        assert gate.wait() == "a.txt"
        runner.delete(name)
        assert gate.wait() == "a.html"
        gate.go.release()
        assert ended(store, other).status == "done"
        with pytest.raises(ServiceError, match="there is no such document"):
            store.jobs.find(name)
    assert store.usage.of(0) == 18


def test_a_book_lets_a_page_through(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(jobs, "TURN", 0.0)
    gate = Gate()
    store.keys.make("anna")
    with run(store, gate, 1) as runner:
        book = runner.put(TEXT)
        gate.wait()
        page = runner.put(PAGE, Key(1, "anna"))
        gate.go.release(20)
        assert [gate.wait() for _ in range(4)] == ["a.html", "a.txt", "a.txt", "a.txt"]
        assert ended(store, page).status == ended(store, book).status == "done"


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (DocumentRequest("a.docx", b"no archive", "de"), "a.docx: "),
        (DocumentRequest("a.json", b"{", "de"), "a.json"),
        (DocumentRequest("a.txt", b"a\xff\xfe\x00", "de", kind="text"), "a.txt"),
    ],
)
def test_what_cannot_be_read_ends_with_its_sentence(store: Store, request_: DocumentRequest, said: str) -> None:
    with run(store) as runner:
        name = runner.put(request_)
        found = ended(store, name)
        assert found.status == "error"
        assert said in str(found.error)
        with pytest.raises(ServiceError) as raised:
            store.jobs.result(name)
        assert (raised.value.status, str(raised.value)) == (409, found.error)


def failing(error: Exception, times: int = 1 << 30) -> jobs.Translate:
    """A translation that fails some times."""
    left = iter(range(times))

    def translate(request: DocumentRequest, segments: Sequence[Segment], call: Call) -> list[SegmentAnswer]:
        if next(left, None) is not None:
            raise error
        return shout(request, segments, call)

    return translate


def test_a_fault_ends_its_document_and_no_other_and_is_logged_without_texts(store: Store, caplog, monkeypatch) -> None:
    monkeypatch.setattr(jobs._LOG, "disabled", False)  # as libraries leave it that configure logging
    with run(store, failing(ValueError("a secret text"), 1), 1) as runner, caplog.at_level(logging.DEBUG):
        first, second = runner.put(TEXT), runner.put(PAGE)
        assert ended(store, first).error == "the server has a fault, so that the document could not be translated"
        assert ended(store, second).status == "done"
    (line,) = caplog.messages
    assert line.endswith("ValueError")
    assert "test_jobs.py" in line
    assert "secret" not in caplog.text
    assert store.usage.of(0) == 18


def test_a_server_that_is_full_is_asked_again(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(jobs, "LONGEST_PAUSE", 0.01)
    with run(store, failing(ServiceError(503, "full", 60), 3), 1) as runner:
        assert ended(store, runner.put(TEXT)).status == "done"
    with run(store, failing(ServiceError(503, "full", 60)), 1) as runner:
        assert ended(store, runner.put(TEXT)).error == "the server failed again and again at this document"
    with run(store, failing(ServiceError(400, "no such language")), 1) as runner:
        assert ended(store, runner.put(TEXT)).error == "no such language"


@pytest.mark.parametrize(
    ("limit", "most", "request_", "said"),
    [
        ("SEGMENTS", 99, TEXT, "the document has 100 segments; 99 are the most; divide it"),
        ("LONGEST_SEGMENT", 22, PAGE, None),
        ("LONGEST_SEGMENT", 5, PAGE, "line 1 begins a segment of 12 characters; 5 are the most"),
        ("LARGEST", len(LINES), TEXT, None),
        ("LARGEST", len(LINES) - 1, TEXT, "a.txt: has more text, or more lines and marks, than a server reads at once"),
    ],
)
def test_what_would_take_the_memory_of_others_is_refused(
    store: Store, monkeypatch, limit: str, most: int, request_: DocumentRequest, said: str | None
) -> None:
    monkeypatch.setattr(jobs, limit, most)
    with run(store) as runner:
        found = ended(store, runner.put(request_))
    assert (found.status, found.done) == (("error", 0) if said else ("done", found.segments))
    assert (said or "") in (found.error or "")


def test_a_chunk_of_long_segments_is_small(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(jobs, "CHUNK_CHARACTERS", 50)
    sizes = list[int]()

    def translate(request: DocumentRequest, segments: Sequence[Segment], call: Call) -> list[SegmentAnswer]:
        sizes.append(len(segments))
        return shout(request, segments, call)

    long = replace(TEXT, content=b"\n\n".join([b"line 0 of a long text"] * 4 + [b"a" * 60] * 2 + [b"b"] * 40))
    with run(store, translate, 1) as runner:
        name = runner.put(long)
        assert ended(store, name).status == "done"
        assert store.jobs.result(name) == expected(long)
    assert sizes == [3, 2, 1, 32, 8]


def test_a_key_has_only_the_characters_of_its_month(store: Store) -> None:
    store.keys.make("anna", 20)
    with run(store) as runner:
        first = runner.put(PAGE, Key(1, "anna", 20))
        assert ended(store, first).status == "done"
        found = ended(store, runner.put(PAGE, Key(1, "anna", 20)))
        assert found.error == "18 characters asked for, and 2 characters of this month left"
    assert store.usage.of(1) == 18


def test_what_is_in_work_is_no_other_documents(store: Store) -> None:
    store.keys.make("anna", 20)
    gate = Gate()
    runner = JobRunner(store, gate)
    runner.start()
    first = runner.put(PAGE, Key(1, "anna", 20))
    gate.wait()
    over = runner.put(replace(PAGE, content=b"<p>A dog.</p>"), Key(1, "anna", 20))
    assert ended(store, over).error == "6 characters asked for, and 2 characters of this month left"
    runner.end(0)
    gate.go.release()
    with run(store, gate):
        assert ended(store, first).status == "done"
    assert store.usage.of(1) == 18


def test_a_document_that_is_read_anew_asks_for_no_more_than_itself(store: Store) -> None:
    """As when another version of Regard reads other segments."""
    store.keys.make("anna", 20)
    name = store.jobs.put(PAGE, Key(1, "anna", 20))
    lease = store.jobs.take(60)
    assert lease is not None
    store.jobs.begin(lease, 9, 17, "en")
    store.jobs.release(lease)
    with run(store):
        assert ended(store, name).status == "done"
    assert store.usage.of(1) == 18


def test_a_lease_is_renewed_while_a_chunk_takes_long(store: Store, monkeypatch) -> None:
    renewed = threading.Semaphore(0)
    renew = store.jobs.renew
    monkeypatch.setattr(store.jobs, "renew", lambda leases: (renew(leases), renewed.release()))
    gate = Gate()
    with run(store, gate, 1, lease=0.5) as runner:
        name = runner.put(PAGE)
        gate.wait()
        for _ in range(10):
            assert renewed.acquire(timeout=60)
        gate.go.release()
        assert ended(store, name).status == "done"
    assert gate.come.empty()


def test_a_language_is_guessed_once_for_all_of_a_document(store: Store) -> None:
    sources, texts = list[str | None](), list[str]()
    gate = Gate()

    def guess(text: str, request: DocumentRequest) -> str:
        texts.append(text)
        return f"guessed for {request.target}"

    def translate(request: DocumentRequest, segments: Sequence[Segment], call: Call) -> list[SegmentAnswer]:
        sources.append(request.source)
        return gate(request, segments, call)

    runner = JobRunner(store, translate, guess, threads=1)
    name = runner.put(TEXT)
    runner.start()
    for _ in range(2):
        gate.wait()
        gate.go.release()
    gate.wait()
    runner.end(0)
    gate.go.release(9)
    with run(store, translate, 1) as other:
        assert ended(store, name).status == "done"
        assert ended(store, other.put(replace(TEXT, source="en"))).status == "done"
    assert texts == [LINES.decode().replace("\n\n", " ")[: jobs.GUESSED]]
    assert sources == ["guessed for de"] * 5 + ["en"] * 4


def test_what_is_old_is_deleted(store: Store, monkeypatch) -> None:
    expired = Queue[float]()
    monkeypatch.setattr(store.jobs, "expire", expired.put)
    with run(store, lease=0.01):
        assert expired.get(timeout=60) > 1.7e9


CODE = """
import sys, threading
from pathlib import Path
from regard.serving import jobs
from regard.serving.store import Store
from regard.serving.store import jobs as stored
from tests.serving.test_jobs import shout
folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
jobs.CHUNK, jobs.TURN, jobs.PAUSE = 8, 0.1, 0.01
stored.CRASHES = 1000  # here the documents are not to blame
clock = threading.Event()
runner = jobs.JobRunner(Store.open(folder), lambda *given: clock.wait(seconds) or shout(*given), lease=0.3)
runner.start()
print("ready", flush=True)
clock.wait()
"""
MOMENT = 0.15
"""Seconds between a start and a kill at most."""


class Processes:
    """Processes that translate the documents of a folder.

    Args:
        folder: of the store.
        seconds: that they take for a chunk.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        root = Path(__file__).parents[2]
        self._environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(root / "src"), str(root)))}
        self._command = [sys.executable, "-c", CODE, str(folder), str(seconds)]
        self._running = list[subprocess.Popen[bytes]]()

    def start(self) -> None:
        """One more, that has begun."""
        made = subprocess.Popen(self._command, env=self._environment, stdout=subprocess.PIPE)
        self._running.append(made)
        assert made.stdout is not None
        assert made.stdout.readline() == b"ready\n"

    def kill(self) -> None:
        """One of them."""
        one = self._running.pop(random.randrange(len(self._running)))
        one.send_signal(signal.SIGKILL)
        with one:
            assert one.wait() == -signal.SIGKILL

    def end(self) -> None:
        """All that are left."""
        while self._running:
            self.kill()


def kill_at_moments(folder: Path, moments: int, size: int, seconds: float) -> int:
    """Kill processes at random moments; the file is whole at each, and all documents are translated once at the end.

    Args:
        folder: of a new store.
        moments: at which one of two processes is killed, and another one started.
        size: of each document.
        seconds: that a chunk takes.

    Returns:
        At how many moments a document was half done.
    """
    texts = [f"{number} ".encode() + b"\n\n".join([LINES] * size) for number in range(6)]
    requests = [DocumentRequest(f"{number}.txt", text, "de", kind="text") for number, text in enumerate(texts)]
    clock, processes, midst = threading.Event(), Processes(folder, seconds), 0
    with closing(Store.open(folder)) as store:
        store.keys.make("anna")
        names = [store.jobs.put(request, Key(1, "anna")) for request in requests]
        try:
            for _ in range(2):
                processes.start()
            for _ in range(moments):
                clock.wait(random.uniform(0, MOMENT))
                processes.kill()
                midst += check(folder, requests)
                processes.start()
            for name, request in zip(names, requests, strict=True):
                assert ended(store, name).status == "done"
                assert store.jobs.result(name) == expected(request)
        finally:
            processes.end()
        assert store.usage.of(1) == sum(store.jobs.find(name).characters for name in names)
    with closing(sqlite3.connect(folder / NAME)) as connection:
        assert connection.execute("SELECT count(*) FROM answers").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM jobs WHERE done != segments").fetchone() == (0,)
    return midst


def check(folder: Path, requests: Sequence[DocumentRequest]) -> bool:
    """The file is whole, and each answer is that of its segment; whether a document is half done."""
    with closing(sqlite3.connect(folder / NAME, timeout=60)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.execute("BEGIN")
        query = "SELECT number, name, done, segments FROM jobs WHERE status = 'translating'"
        rows = connection.execute(query).fetchall()
        for number, name, done, _ in rows:
            query = "SELECT segment, answer FROM answers WHERE job = ? ORDER BY segment"
            some = connection.execute(query, (number,)).fetchall()
            assert [segment for segment, _ in some] == list(range(done))
            texts = [json.loads(answer)["output"]["text"] for _, answer in some]
            content = next(one.content for one in requests if one.name == name)
            assert texts == [text.upper() for text in content.decode().split("\n\n")[:done]]
    return any(0 < done < segments for _, _, done, segments in rows)


def test_documents_survive_a_few_kills(tmp_path: Path) -> None:
    assert kill_at_moments(tmp_path, 4, size=6, seconds=0.02)


@pytest.mark.long(minutes=1)
def test_documents_survive_fifty_kills(tmp_path: Path) -> None:
    assert kill_at_moments(tmp_path, 50, size=30, seconds=0.05) > 20
