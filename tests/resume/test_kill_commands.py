"""Every command that leaves something on the disk, killed and run again, leaves the bits of one that was not killed.

The page's server, killed while it answers, leaves nothing, and a training it shows ends as if alone.
"""

import http.client
import json
import os
import random
import re
import signal
import sys
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial

import pytest

from regard.cli import main
from tests.resume.kills import WHOLE, Given, halved, killed, killed_by_signal, left, never, resumed, run
from tests.resume.small_commands import FILES, FOLDERS, RUNS, Words, world, write
from tests.tasks.small_tasks import SOURCE, put, translator

ALL: dict[str, Words] = {**FOLDERS, **FILES, **RUNS}
QUICK = ("average", "html", "compare", "begun")
"""Those that the default grade kills."""
INTO_PLACE = re.compile(r"os\.rename \.out\.partial-[0-9a-f]+")
NAMES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.long(0.1)) for name in ALL]
SOME = [name if name in QUICK else pytest.param(name, marks=pytest.mark.long(0.05)) for name in FOLDERS]
KILLS = 10
"""By a signal, for each of three seeds."""


@dataclass(frozen=True)
class Command:
    """A command, and what it leaves if it is never killed.

    Args:
        words: it and its options, where it is given the output.
        left: all files.
        changes: that it makes to the disk, in order.
        seconds: it takes.
        at_once: whether it makes a folder, and that at once.
    """

    words: Given
    left: dict[str, object]
    changes: list[str]
    seconds: float
    at_once: bool

    def kill_and_resume(self, folder, number, torn=False):
        place = folder / str(number)
        killed(self.words, place, number, torn)
        self.refuse_halves(place)
        resumed(self.words, place, self.left, self.changes[number - 1])

    def refuse_halves(self, place):
        """What a killed command left of its output is whole; a folder made at once is there with all its files."""
        assert halved(place, self.left) == []
        if self.at_once:
            both = left(place), self.left
            found, wanted = ({n: c for n, c in all.items() if n.split("/")[0] == "out"} for all in both)
            assert found in ({}, wanted)


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """A command by its name; run once, when it is first asked for."""
    data = world(tmp_path_factory.mktemp("world"))

    @cache
    def of(name):
        words, began = partial(ALL[name], data), time.monotonic()
        left, changes = never(words, tmp_path_factory.mktemp("never") / "place")
        return Command(words, left, changes, time.monotonic() - began, name in FOLDERS)

    return of


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", NAMES)
def test_no_output_is_opened_where_it_is_to_be(command, name):
    one = command(name)
    opened = [change.removeprefix("open ") for change in one.changes if change.startswith("open ")]
    assert opened
    assert [path for path in opened if WHOLE.fullmatch(path) or (one.at_once and path.startswith("out/"))] == []


@pytest.mark.one_of(4, minutes=0.05)
@pytest.mark.parametrize("name", NAMES)
def test_killed_before_a_change_and_in_one(command, tmp_path, name):
    one, draw = command(name), random.Random(name)
    one.kill_and_resume(tmp_path, draw.randrange(len(one.changes)) + 1)
    opened = [number for number, change in enumerate(one.changes, 1) if change.startswith("open")]
    one.kill_and_resume(tmp_path, draw.choice(opened), torn=True)


@pytest.mark.parametrize("name", [*FOLDERS, *FILES])
@pytest.mark.long(0.3)
def test_killed_before_each_change_and_in_each(command, tmp_path, name):
    one = command(name)
    for number, change in enumerate(one.changes, 1):
        one.kill_and_resume(tmp_path, number)
        if change.startswith("open"):
            one.kill_and_resume(tmp_path, number, torn=True)


@pytest.mark.parametrize("seed", [1, 2, 3], ids="seed {}".format)
@pytest.mark.parametrize("name", ALL)
@pytest.mark.long(1)
def test_killed_by_a_signal(command, tmp_path, name, seed):
    one, draw, kills = command(name), random.Random(f"{name} {seed}"), 0
    for number in range(20 * KILLS):
        seconds = one.seconds * draw.random() * 0.97**number  # sooner and sooner, for it may be faster than it was
        place = tmp_path / str(number)
        if kills < KILLS and killed_by_signal(one.words, place, seconds):
            kills += 1
            one.refuse_halves(place)
            resumed(one.words, place, one.left, seconds)
    assert kills == KILLS


@pytest.mark.one_of(2, minutes=0.03)
@pytest.mark.parametrize("name", SOME)
def test_killed_while_an_empty_folder_is_filled(command, tmp_path, name):
    """A folder that was there is no other one afterwards, so it takes its files one by one."""
    one = command(name)
    first = next(n for n, change in enumerate(one.changes, 1) if INTO_PLACE.fullmatch(change))
    files = sum(name.startswith("out/") for name in one.left)
    for number in (first, first + 1, first + files // 2, first + files - 1):
        place = tmp_path / str(number)
        (place / "out").mkdir(parents=True)
        killed(one.words, place, number)
        resumed(one.words, place, one.left, number)


@pytest.mark.parametrize("name", SOME)
def test_what_stands_already_is_left_and_what_differs_refused(command, tmp_path, name):
    one, kept, notes = command(name), [], tmp_path / "out" / "notes.txt"
    for _ in range(2):
        assert run(one.words, tmp_path) == 0
        kept.append({path: (path.stat().st_ino, path.read_bytes()) for path in (tmp_path / "out").rglob("*")})
    assert kept[0] == kept[1]
    notes.write_text("mine")
    assert run(one.words, tmp_path) == 1
    assert notes.read_text() == "mine"


PATIENCE = 60.0
ASKED = {"model": 0, "text": SOURCE}
QUESTIONS = (
    *(("GET", path, None) for path in ("/", "/api/state", "/api/course?model=0")),
    *(("POST", path, ASKED) for path in ("/api/look", "/api/write")),
    *(("POST", "/api/export", {**ASKED, "form": form}) for form in ("html", "svg", "json")),
)


@contextmanager
def forked(words, place):
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


def ask(port, method, path, given, wait):
    """Ask something, and wait for the answer or leave it."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        headers = {"Content-Type": "application/json"}
        connection.request(method, path, None if given is None else json.dumps(given), headers)
        if wait:
            connection.getresponse().read()
        else:
            time.sleep(0.05)


def looked_into(folder, place, seed):
    """Ask a page of a folder some questions in random order; it is killed without answering the last."""
    draw, said = random.Random(seed), place / "said"
    asked = draw.sample(QUESTIONS, draw.randint(1, 4))
    with forked(["explore", folder, "--port", 0, "--no-browser"], place), suppress(ConnectionError):
        deadline = time.monotonic() + PATIENCE
        while not (port := re.search(r"127\.0\.0\.1:(\d+)/", said.read_text() if said.exists() else "")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for question in asked:
            ask(int(port[1]), *question, wait=question is not asked[-1])
        time.sleep(draw.random() / 4)
    assert [path.name for path in place.iterdir()] == ["said"]


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.long(0.1)) for n in range(2, 31))], ids="seed {}".format
)
def test_killed_it_leaves_nothing(tmp_path, seed):
    folder = put(tmp_path / "model", translator())
    before = left(folder), [path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))]
    looked_into(folder, tmp_path / "page", f"page {seed}")
    assert before == (left(folder), [path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))])


@pytest.mark.parametrize("seed", [1, 2, 3], ids="seed {}".format)
@pytest.mark.long(0.5)
def test_killed_beside_a_training_it_leaves_that_alone(tmp_path, seed):
    words = partial(RUNS["classes"], write(tmp_path))
    ended, _ = never(words, tmp_path / "never")
    draw, place = random.Random(seed), tmp_path / "beside"
    with forked(words(place / "out"), place):
        while not (place / "out").exists():
            time.sleep(0.01)
        for number in range(5):
            looked_into(place / "out", tmp_path / f"page {number}", f"beside {seed} {number}")
            time.sleep(draw.random() / 4)
    (place / "said").unlink()
    assert run(words, place) == 0
    assert left(place) == ended
