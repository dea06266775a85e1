"""Every command that leaves something on the disk, killed and run again, leaves the bits of one that was not killed."""

import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.resume.kills import WHOLE, Given, halved, killed, killed_by_signal, left, never, resumed, run
from tests.resume.small_commands import FILES, FOLDERS, RUNS, Words, world

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


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def command(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Command]:
    """A command by its name; run once, when it is first asked for."""
    known: dict[str, Command] = {}

    def of(name: str) -> Command:
        if name not in known:
            words, began = partial(ALL[name], data), time.monotonic()
            left, changes = never(words, tmp_path_factory.mktemp("never") / "place")
            known[name] = Command(words, left, changes, time.monotonic() - began, name in FOLDERS)
        return known[name]

    return of


def kill_and_resume(one: Command, folder: Path, number: int, torn: bool = False) -> None:
    place = folder / str(number)
    killed(one.words, place, number, torn)
    refuse_halves(one, place)
    resumed(one.words, place, one.left, one.changes[number - 1])


def refuse_halves(one: Command, place: Path) -> None:
    """What a killed command left of its output is whole; a folder that is made at once is there with all its files."""
    assert halved(place, one.left) == []
    if one.at_once:
        found, wanted = ({n: c for n, c in all.items() if n.split("/")[0] == "out"} for all in (left(place), one.left))
        assert found in ({}, wanted)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", NAMES)
def test_no_output_is_opened_where_it_is_to_be(command: Callable[[str], Command], name: str) -> None:
    one = command(name)
    opened = [change.removeprefix("open ") for change in one.changes if change.startswith("open ")]
    assert opened
    assert [path for path in opened if WHOLE.fullmatch(path) or (one.at_once and path.startswith("out/"))] == []


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", NAMES)
def test_killed_before_a_change_and_in_one(command: Callable[[str], Command], tmp_path: Path, name: str) -> None:
    one, draw = command(name), random.Random(name)
    kill_and_resume(one, tmp_path, draw.randrange(len(one.changes)) + 1)
    opened = [number for number, change in enumerate(one.changes, 1) if change.startswith("open")]
    kill_and_resume(one, tmp_path, draw.choice(opened), torn=True)


@pytest.mark.parametrize("name", [*FOLDERS, *FILES])
@pytest.mark.long(0.3)
def test_killed_before_each_change_and_in_each(command: Callable[[str], Command], tmp_path: Path, name: str) -> None:
    one = command(name)
    for number, change in enumerate(one.changes, 1):
        kill_and_resume(one, tmp_path, number)
        if change.startswith("open"):
            kill_and_resume(one, tmp_path, number, torn=True)


@pytest.mark.parametrize("seed", [1, 2, 3], ids="seed {}".format)
@pytest.mark.parametrize("name", ALL)
@pytest.mark.long(1)
def test_killed_by_a_signal(command: Callable[[str], Command], tmp_path: Path, name: str, seed: int) -> None:
    one, draw, kills = command(name), random.Random(f"{name} {seed}"), 0
    for number in range(20 * KILLS):
        seconds = one.seconds * draw.random() * 0.97**number  # sooner and sooner, for it may be faster than it was
        place = tmp_path / str(number)
        if kills < KILLS and killed_by_signal(one.words, place, seconds):
            kills += 1
            refuse_halves(one, place)
            resumed(one.words, place, one.left, seconds)
    assert kills == KILLS


@pytest.mark.parametrize("name", SOME)
def test_killed_while_an_empty_folder_is_filled(command: Callable[[str], Command], tmp_path: Path, name: str) -> None:
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
def test_what_stands_already_is_left_and_what_differs_refused(
    command: Callable[[str], Command], tmp_path: Path, name: str
) -> None:
    one = command(name)
    kept = []
    for _ in range(2):
        assert run(one.words, tmp_path) == 0
        kept.append({path: (path.stat().st_ino, path.read_bytes()) for path in (tmp_path / "out").rglob("*")})
    assert kept[0] == kept[1]
    (tmp_path / "out" / "notes.txt").write_text("mine")
    assert run(one.words, tmp_path) == 1
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"
