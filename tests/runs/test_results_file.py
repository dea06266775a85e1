"""Killed before any file operation, or while writing, a file of results becomes the one that was never stopped."""

import fcntl
import hashlib
import json
import os
import random
import re
import resource
import signal
import time
from functools import partial
from itertools import islice

import pytest

from regard.runs import results_file
from regard.runs.results_file import ResultsFile, length_prefix
from regard.system.errors import RegardError, Stopped
from tests.refusals import refused
from tests.training.toy import Fast, Killer, flip, in_child

ABOUT = {"command": "translate", "model": "5f", "--beam": None, "--json": False}
TEXTS = [f"text {number}\n" * (number % 4) for number in range(23)]


@pytest.fixture(autouse=True)
def path(monkeypatch, tmp_path):
    """The file; every chunk of it is saved."""
    monkeypatch.setattr(results_file, "EVERY", -1.0)
    return tmp_path / "a"


def answered(group, first=1):
    return b"".join(f"{number} {text!r}\n".encode() for number, text in enumerate(group, first))


def whole(file):
    return b"whole:" + file.read()


def make(path, texts=TEXTS, about=ABOUT, wrap=None, files=None, after=None, error=None):
    """One run; what it said. It may fail behind some groups of four."""
    said = []
    with ResultsFile(path, about, said.append, files or Fast()) as results:
        rest, number = results.rest(texts), 0
        while group := list(islice(rest, 4)):
            if error and number == after:
                raise error
            results.add(group, answered(group, results.texts + 1))
            number += 1
        results.finish(wrap)
    return said


def stopped(path, after, texts=TEXTS):
    """A run that stops behind so many groups."""
    with pytest.raises(Stopped):
        make(path, texts, after=after, error=Stopped("stopped"))


def finished(path, texts=TEXTS):
    """Made now, it is whole and alone; what was said."""
    said = make(path, texts)
    assert path.read_bytes() == answered(texts)
    assert names(path.parent) == [path.name]
    return said


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("wrap", [None, whole])
def test_results_become_the_file_and_who_may_read_the_older_one_may_read_it(path, wrap):
    assert make(path, wrap=wrap) == []
    content = answered(TEXTS)
    assert path.read_bytes() == (content if wrap is None else b"whole:" + content)
    assert names(path.parent) == ["a"]
    path.chmod(0o600)
    make(path, [], wrap=wrap)
    assert path.read_bytes() == (b"" if wrap is None else b"whole:")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("share", range(4))
@pytest.mark.parametrize("wrap", [None, whole])
@pytest.mark.parametrize("middle", [False, True])
@pytest.mark.one_of(8, minutes=0.05)
def test_killed_at_any_operation_it_is_resumed_to_the_same_bytes(tmp_path, share, wrap, middle):
    make(tmp_path / "counted", files=(files := Fast()), wrap=wrap)
    assert files.number > 30
    wanted = (tmp_path / "counted").read_bytes()
    for fatal in range(1 + share, files.number + 1, 4):
        path = tmp_path / f"{fatal}" / "a"
        path.parent.mkdir()
        path.write_bytes(b"before")
        code = in_child(lambda path=path, fatal=fatal: make(path, files=Killer(fatal, middle), wrap=wrap))
        assert code == 137 or (middle and code == 0)  # not every operation writes
        assert path.read_bytes() in (b"before", wanted)
        make(path, wrap=wrap)
        assert path.read_bytes() == wanted
        assert names(path.parent) == ["a"], fatal


def test_killed_again_and_again_it_ends(path):
    draw, starts = random.Random(3), 0
    while in_child(partial(make, path, files=Killer(draw.randrange(6, 12)))):
        assert (starts := starts + 1) < 30
    assert starts >= 3
    assert path.read_bytes() == answered(TEXTS)
    assert names(path.parent) == ["a"]


def test_what_is_answered_is_not_asked_again(path):
    stopped(path, 3)
    assert names(path.parent) == ["a.partial", "a.partial.log"]
    with ResultsFile(path, ABOUT, files=Fast()) as results:
        rest = results.rest(iter(TEXTS))
        assert results.texts == 12
        assert list(rest) == TEXTS[12:]


def test_a_stop_saves_what_no_save_was_due_for_and_a_failure_leaves_nothing(path, monkeypatch):
    monkeypatch.setattr(results_file, "EVERY", 1e9)
    path.write_text("before")
    with pytest.raises(ZeroDivisionError):
        make(path, after=2, error=ZeroDivisionError())
    assert (names(path.parent), path.read_text()) == (["a"], "before")
    stopped(path, 3)
    log = [json.loads(line) for line in path.with_name("a.partial.log").read_bytes().splitlines()]
    content, texts = answered(TEXTS[:12]), b"".join(map(length_prefix, TEXTS[:12]))
    given, found = (hashlib.sha256(raw).hexdigest() for raw in (texts, content))
    assert log == [
        {"format": 1, "about": ABOUT},
        {"texts": 12, "size": len(content), "given": given, "found": found},
    ]


@pytest.mark.parametrize(
    ("name", "value"), [("model", "6a"), ("--beam", 4), ("--json", None), ("torch", "2.11"), ("--beam", [1])]
)
def test_results_of_something_else_are_not_taken_over(path, name, value):
    stopped(path, 2)
    said = make(path, about={**ABOUT, name: value})
    assert said == [f"{path}.partial was made with other values of {name}; starting over"]
    assert path.read_bytes() == answered(TEXTS)


@pytest.mark.parametrize("changed", [0, 3, 4, 11, 12, 22])
def test_another_input_is_answered_anew_from_where_it_is_another(path, changed):
    stopped(path, 3)
    said = finished(path, [*TEXTS[:changed], "other", *TEXTS[changed + 1 :]])
    assert len(said) == (changed < 12)
    behind = f" after text {changed // 4 * 4}" if changed >= 4 else ""
    assert all(line.startswith(f"the input is another one{behind} than that of") for line in said)


FEEDS = ["a\nb", "c", "d", "e", "f"]


@pytest.mark.parametrize(
    ("groups", "before", "texts"),
    [*((3, TEXTS, TEXTS[:count]) for count in (0, 1, 4, 11, 12)), (1, FEEDS, ["a", "b\nc", *FEEDS[2:]])],
)
def test_a_shorter_input_has_fewer_results_and_line_feeds_end_no_text(path, groups, before, texts):
    stopped(path, groups, before)
    finished(path, texts)


@pytest.mark.one_of(5)
@pytest.mark.parametrize("flip_seed", range(0, 300, 23))
@pytest.mark.parametrize("end", [".partial", ".partial.log"])
def test_a_flipped_bit_or_a_cut_costs_what_is_behind_it(path, flip_seed, end):
    stopped(path, 3)
    harmed = path.with_name(f"a{end}")
    whole, draw = harmed.read_bytes(), random.Random(flip_seed)
    for harm in (partial(flip, harmed, flip_seed), lambda: harmed.write_bytes(whole[: draw.randrange(len(whole))])):
        harm()
        content = harmed.read_bytes()
        try:
            finished(path)
            said = ""
        except RegardError as error:
            said = str(error)
        if said:  # what says nothing of us any more is not overwritten
            assert re.search("is in the way|newer Regard", said)
            assert harmed.read_bytes() == content
        for left in path.parent.iterdir():
            left.unlink()
        stopped(path, 3)


def test_files_of_others_are_left_alone(tmp_path):
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
    (tmp_path / "d.partial.log").mkdir()
    for name, where in (("c", "c.partial.log"), ("d", "d")):
        with refused(RegardError, where):
            make(tmp_path / name)


def test_a_second_writer_is_refused(path):
    with ResultsFile(path, ABOUT, files=Fast()) as results:
        results.add(["a"], b"b\n")
        with refused(RegardError, "a.partial.log"):
            make(path)
        results.finish()
    assert path.read_bytes() == b"b\n"


def test_processes_of_a_killed_writer_may_hold_its_file_for_a_moment(path, monkeypatch):
    held = path.with_name("a.partial.log").open("w")
    fcntl.flock(held, fcntl.LOCK_EX)
    monkeypatch.setattr(time, "sleep", lambda seconds: held.close())
    finished(path)


def test_a_log_that_was_removed_while_it_was_waited_for_is_made_again(path, monkeypatch):
    lock, log = fcntl.flock, path.with_name("a.partial.log")
    log.write_text("")

    def late(handle, operation):
        monkeypatch.setattr(fcntl, "flock", lock)
        log.unlink()  # its last writer finishes between opening and locking
        lock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    finished(path)


def test_a_full_disk_is_told_and_what_is_saved_stays(path):
    class Full(Fast):
        def put(self, handle, piece):
            if self.number > 20:
                handle.write(piece[: len(piece) // 2])
                raise OSError(28, "No space left on device")
            super().put(handle, piece)

    with refused(RegardError, path, "No space left on device", "a.partial"):
        make(path, files=Full())
    assert names(path.parent) == ["a.partial", "a.partial.log"]
    with ResultsFile(path, ABOUT, files=Fast()) as results:
        assert len(list(results.rest(TEXTS))) < len(TEXTS)
    assert finished(path) == []


def test_a_disk_that_is_really_full(path):
    """No file may grow beyond a size that only the last texts exceed."""

    def work():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(answered(TEXTS)) - 10,) * 2)
        with refused(RegardError, path, "File too large", "a.partial"):
            make(path)

    assert in_child(work) == 0
    assert names(path.parent) == ["a.partial", "a.partial.log"]
    assert finished(path) == []
