"""Killed before any file operation, or while writing, a file of results becomes the one that was never stopped."""

import fcntl
import hashlib
import json
import os
import random
import re
import resource
import signal
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from regard.runs import results_file
from regard.runs.results_file import ResultsFile, length_prefix
from regard.system.errors import RegardError, Stopped
from tests.refusals import refused
from tests.training.toy import Fast, Killer, flip, in_child

ABOUT = {"command": "translate", "model": "5f", "--beam": None, "--json": False}
TEXTS = [f"text {number}\n" * (number % 4) for number in range(23)]


@pytest.fixture(autouse=True)
def _every_chunk_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results_file, "EVERY", -1.0)


def groups(texts: Iterator[str]) -> Iterator[list[str]]:
    while group := list(islice(texts, 4)):
        yield group


def answered(group: list[str], first: int) -> bytes:
    return b"".join(f"{number} {text!r}\n".encode() for number, text in enumerate(group, first))


def whole(file: BinaryIO) -> bytes:
    return b"whole:" + file.read()


def make(path: Path, texts: Iterable[str] = TEXTS, about: Any = None, **options: Any) -> list[str]:
    """One run; what it said. It may fail behind some groups."""
    said: list[str] = []
    wrap, after, error = (options.get(name) for name in ("whole", "after", "error"))
    with ResultsFile(path, about or ABOUT, said.append, options.get("files", Fast())) as results:
        for number, group in enumerate(groups(results.rest(texts))):
            if error and number == after:
                raise error
            results.add(group, answered(group, results.texts + 1))
        results.finish(wrap)
    return said


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("wrap", [None, whole])
def test_results_become_the_file(tmp_path: Path, wrap: Any) -> None:
    assert make(tmp_path / "a", whole=wrap) == []
    content = answered(TEXTS, 1)
    assert (tmp_path / "a").read_bytes() == (content if wrap is None else b"whole:" + content)
    assert names(tmp_path) == ["a"]
    make(tmp_path / "a", [], whole=wrap)
    assert (tmp_path / "a").read_bytes() == (b"" if wrap is None else b"whole:")


@pytest.mark.parametrize("share", range(4))
@pytest.mark.parametrize("wrap", [None, whole])
@pytest.mark.parametrize("middle", [False, True])
@pytest.mark.one_of(8, minutes=0.05)
def test_killed_at_any_operation_it_is_resumed_to_the_same_bytes(
    tmp_path: Path, share: int, wrap: Any, middle: bool
) -> None:
    make(tmp_path / "counted", files=(files := Fast()), whole=wrap)
    assert files.number > 30
    wanted = (tmp_path / "counted").read_bytes()
    for fatal in range(1 + share, files.number + 1, 4):
        path = tmp_path / f"{fatal}" / "a"
        path.parent.mkdir()
        path.write_bytes(b"before")
        code = in_child(lambda path=path, fatal=fatal: make(path, files=Killer(fatal, middle), whole=wrap))
        assert code == 137 or (middle and code == 0)  # not every operation writes
        assert path.read_bytes() in (b"before", wanted)
        make(path, whole=wrap)
        assert path.read_bytes() == wanted
        assert names(path.parent) == ["a"], fatal


def test_killed_again_and_again_it_ends(tmp_path: Path) -> None:
    draw, starts = random.Random(3), 0
    while in_child(partial(make, tmp_path / "a", files=Killer(draw.randrange(6, 12)))):
        assert (starts := starts + 1) < 30
    assert starts >= 3
    assert (tmp_path / "a").read_bytes() == answered(TEXTS, 1)
    assert names(tmp_path) == ["a"]


def stopped(path: Path, after: int, texts: Iterable[str] = TEXTS, about: Any = None) -> None:
    """A run that stops behind so many groups."""
    with pytest.raises(Stopped):
        make(path, texts, about, after=after, error=Stopped("stopped"))


def test_what_is_answered_is_not_asked_again(tmp_path: Path) -> None:
    stopped(tmp_path / "a", 3)
    assert names(tmp_path) == ["a.partial", "a.partial.log"]
    with ResultsFile(tmp_path / "a", ABOUT, files=Fast()) as results:
        rest = results.rest(iter(TEXTS))
        assert results.texts == 12
        assert list(rest) == TEXTS[12:]


def test_a_stop_saves_what_no_save_was_due_for_and_a_failure_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results_file, "EVERY", 1e9)
    (tmp_path / "b").write_text("before")
    with pytest.raises(ZeroDivisionError):
        make(tmp_path / "b", after=2, error=ZeroDivisionError())
    assert names(tmp_path) == ["b"]
    assert (tmp_path / "b").read_text() == "before"
    stopped(tmp_path / "a", 3)
    log = [json.loads(line) for line in (tmp_path / "a.partial.log").read_bytes().splitlines()]
    assert log[0] == {"format": 1, "about": ABOUT}
    content = answered(TEXTS[:12], 1)
    given = hashlib.sha256(b"".join(map(length_prefix, TEXTS[:12]))).hexdigest()
    found = hashlib.sha256(content).hexdigest()
    assert log[1:] == [{"texts": 12, "size": len(content), "given": given, "found": found}]


@pytest.mark.parametrize(
    ("name", "value"), [("model", "6a"), ("--beam", 4), ("--json", None), ("torch", "2.11"), ("--beam", [1])]
)
def test_results_of_something_else_are_not_taken_over(tmp_path: Path, name: str, value: Any) -> None:
    stopped(tmp_path / "a", 2)
    said = make(tmp_path / "a", about={**ABOUT, name: value})
    assert said == [f"{tmp_path}/a.partial was made with other values of {name}; starting over"]
    assert (tmp_path / "a").read_bytes() == answered(TEXTS, 1)


@pytest.mark.parametrize("changed", [0, 3, 4, 11, 12, 22])
def test_another_input_is_answered_anew_from_where_it_is_another(tmp_path: Path, changed: int) -> None:
    stopped(tmp_path / "a", 3)
    texts = [*TEXTS[:changed], "other", *TEXTS[changed + 1 :]]
    said = make(tmp_path / "a", texts)
    assert (tmp_path / "a").read_bytes() == answered(texts, 1)
    assert len(said) == (changed < 12)
    behind = f" after text {changed // 4 * 4}" if changed >= 4 else ""
    assert all(line.startswith(f"the input is another one{behind} than that of") for line in said)


FEEDS = ["a\nb", "c", "d", "e", "f"]


@pytest.mark.parametrize(
    ("groups", "before", "texts"),
    [*((3, TEXTS, TEXTS[:count]) for count in (0, 1, 4, 11, 12)), (1, FEEDS, ["a", "b\nc", *FEEDS[2:]])],
)
def test_a_shorter_input_has_fewer_results_and_line_feeds_end_no_text(
    tmp_path: Path, groups: int, before: list[str], texts: list[str]
) -> None:
    stopped(tmp_path / "a", groups, before)
    make(tmp_path / "a", texts)
    assert (tmp_path / "a").read_bytes() == answered(texts, 1)


@pytest.mark.parametrize("flip_seed", range(0, 300, 23))
@pytest.mark.parametrize("end", [".partial", ".partial.log"])
def test_a_flipped_bit_or_a_cut_costs_what_is_behind_it(tmp_path: Path, flip_seed: int, end: str) -> None:
    stopped(tmp_path / "a", 3)
    path = tmp_path / f"a{end}"
    whole, draw = path.read_bytes(), random.Random(flip_seed)
    for harmed in (partial(flip, path, flip_seed), lambda: path.write_bytes(whole[: draw.randrange(len(whole))])):
        harmed()
        content, said = path.read_bytes(), ""
        try:
            make(tmp_path / "a")
        except RegardError as error:
            said = str(error)
        if said:  # what says nothing of us any more is not overwritten
            assert re.search("is in the way|newer Regard", said)
            assert path.read_bytes() == content
            (tmp_path / "a.partial").unlink()
            (tmp_path / "a.partial.log").unlink()
        else:
            assert (tmp_path / "a").read_bytes() == answered(TEXTS, 1)
            assert names(tmp_path) == ["a"]
            (tmp_path / "a").unlink()
        stopped(tmp_path / "a", 3)


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.partial").write_text("thesis")
    with refused(RegardError, "a.partial", "a.partial.log"):
        make(tmp_path / "a")
    assert (names(tmp_path), (tmp_path / "a.partial").read_text()) == (["a.partial"], "thesis")
    for content, held in (("thesis\n", ""), ('{"format": 2, "about": {}}\n', "2")):
        (tmp_path / "b.partial.log").write_text(content)
        with refused(RegardError, tmp_path / "b.partial.log", held):
            make(tmp_path / "b")
        assert (tmp_path / "b.partial.log").read_text() == content
    os.mkfifo(tmp_path / "c.partial.log")
    with refused(RegardError, "c.partial.log"):
        make(tmp_path / "c")
    (tmp_path / "d.partial.log").mkdir()
    with refused(RegardError, "d"):
        make(tmp_path / "d")


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with ResultsFile(tmp_path / "a", ABOUT, files=Fast()) as results:
        results.add(["a"], b"b\n")
        with refused(RegardError, "a.partial.log"):
            make(tmp_path / "a")
        results.finish()
    assert (tmp_path / "a").read_bytes() == b"b\n"


def test_a_log_that_was_removed_while_it_was_waited_for_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, log = fcntl.flock, tmp_path / "a.partial.log"
    (log).write_text("")

    def late(handle: Any, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        log.unlink()  # its last writer finishes between opening and locking
        lock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    make(tmp_path / "a")
    assert names(tmp_path) == ["a"]


def test_a_full_disk_is_told_and_what_is_saved_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(Fast):
        def put(self, handle: BinaryIO, piece: memoryview) -> None:
            if self.number > 20:
                handle.write(piece[: len(piece) // 2])
                raise OSError(28, "No space left on device")
            super().put(handle, piece)

    with refused(RegardError, tmp_path / "a", "No space left on device", "a.partial"):
        make(tmp_path / "a", files=Full())
    assert names(tmp_path) == ["a.partial", "a.partial.log"]
    with ResultsFile(tmp_path / "a", ABOUT, files=Fast()) as results:
        assert len(list(results.rest(TEXTS))) < len(TEXTS)
    assert make(tmp_path / "a") == []
    assert (tmp_path / "a").read_bytes() == answered(TEXTS, 1)


def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """No file may grow beyond a size that only the last texts exceed."""

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(answered(TEXTS, 1)) - 10,) * 2)
        with refused(RegardError, tmp_path / "a", "File too large", "a.partial"):
            make(tmp_path / "a")

    assert in_child(work) == 0
    assert names(tmp_path) == ["a.partial", "a.partial.log"]
    assert make(tmp_path / "a") == []
    assert (tmp_path / "a").read_bytes() == answered(TEXTS, 1)


def test_who_may_read_the_older_file_may_read_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("secret")
    (tmp_path / "a").chmod(0o600)
    for wrap in (None, whole):
        make(tmp_path / "a", whole=wrap)
        assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
