"""The page's server, killed while it answers: it leaves nothing, and a training it shows ends as if alone."""

import http.client
import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from regard.cli import main
from tests.resume.kills import left, never, run
from tests.resume.small_commands import RUNS, write
from tests.tasks.small_tasks import SOURCE, put, translator

PATIENCE = 60.0
QUESTIONS = (
    ("GET", "/", None),
    ("GET", "/api/state", None),
    ("GET", "/api/course?model=0", None),
    ("POST", "/api/look", {"model": 0, "text": SOURCE}),
    ("POST", "/api/write", {"model": 0, "text": SOURCE}),
    *(("POST", "/api/export", {"model": 0, "text": SOURCE, "form": form}) for form in ("html", "svg", "json")),
)


@contextmanager
def forked(words: list[object], place: Path) -> Iterator[int]:
    """A command at work in a process of its own below ``place``, which is killed at the end; its number."""
    place.mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if child == 0:
        try:
            os.chdir(place)
            os.environ.update(HOME=str(place), TMPDIR=str(place))
            sys.stdout = sys.stderr = open(place / "said", "w", buffering=1)  # noqa: SIM115
            os._exit(main([str(word) for word in words]))
        finally:
            os._exit(99)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in (0, -signal.SIGKILL), (place / "said").read_text()


@contextmanager
def page(folder: Path, place: Path) -> Iterator[int]:
    """The port of a page of a folder."""
    with forked(["explore", folder, "--port", 0, "--no-browser"], place):
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(r"127\.0\.0\.1:(\d+)/", read(place / "said"))):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield int(found[1])


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def ask(port: int, method: str, path: str, given: object, wait: bool) -> None:
    """Ask something, and wait for the answer or leave it."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        headers = {"Content-Type": "application/json"}
        connection.request(method, path, None if given is None else json.dumps(given), headers)
        if wait:
            connection.getresponse().read()
        else:
            time.sleep(0.05)


def looked_into(folder: Path, place: Path, seed: str) -> None:
    """Ask a page of a folder some questions in random order; it is killed without answering the last."""
    draw = random.Random(seed)
    asked = draw.sample(QUESTIONS, draw.randint(1, 4))
    with page(folder, place) as port, suppress(ConnectionError):
        for question in asked:
            ask(port, *question, wait=question is not asked[-1])
        time.sleep(draw.random() / 4)
    assert [path.name for path in place.iterdir()] == ["said"]


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.long(0.1)) for n in range(2, 31))], ids="seed {}".format
)
def test_killed_it_leaves_nothing(tmp_path: Path, seed: int) -> None:
    folder = put(tmp_path / "model", translator())
    before = left(folder), [path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))]
    looked_into(folder, tmp_path / "page", f"page {seed}")
    assert before == (left(folder), [path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))])


@pytest.mark.parametrize("seed", [1, 2, 3], ids="seed {}".format)
@pytest.mark.long(0.5)
def test_killed_beside_a_training_it_leaves_that_alone(tmp_path: Path, seed: int) -> None:
    words = partial(RUNS["classes"], write(tmp_path))
    ended, _ = never(words, tmp_path / "never")
    draw = random.Random(seed)
    place = tmp_path / "beside"
    with forked(words(place / "out"), place):
        while not (place / "out").exists():
            time.sleep(0.01)
        for number in range(5):
            looked_into(place / "out", tmp_path / f"page {number}", f"beside {seed} {number}")
            time.sleep(draw.random() / 4)
    (place / "said").unlink()
    assert run(words, place) == 0
    assert left(place) == ended
