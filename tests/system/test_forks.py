"""Items worked on here or in copies of this process: the same answers in the same order, the same sums and errors."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from regard.system import forks
from regard.system.errors import RegardError, UsageError
from regard.system.forks import SAFE, ForkedWorkers, MapReduce, alone, divide
from tests.refusals import refused
from tests.runs.workers.started import alive

needs_copies = pytest.mark.skipif(not SAFE, reason="processes are not copied here")
PROCESSES = [1, *(pytest.param(count, marks=needs_copies) for count in (2, 3))]
KILLED = r"^a process of this command was ended by SIGKILL; rerun the same command$"


class Squares(MapReduce[int, int]):
    """Squares numbers and adds them up; the seventh takes longest, ``wrong`` are refused, ``fatal`` ends its process.

    Args:
        wrong: refused.
        fatal: ends the process that has it.
        folder: takes a file named after each process that works.
    """

    def __init__(self, wrong: tuple[int, ...] = (), fatal: int = -1, folder: Path | None = None) -> None:
        self.total, self._wrong, self._fatal, self._folder = 0, wrong, fatal, folder

    def do(self, item: int) -> int:
        if self._folder:
            (self._folder / str(os.getpid())).touch()
        if item == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        if item in self._wrong:
            time.sleep(0.1 if item == min(self._wrong) else 0)  # the later one is refused before
            raise UsageError("is wrong", f"item {item}")
        time.sleep(0.02 if item % 7 == 0 else 0)
        self.total += item
        return item * item

    @property
    def content(self) -> bytes:
        return str(self.total).encode()

    def merge(self, content: bytes) -> None:
        self.total += int(content)


@pytest.mark.one_of(9)
@pytest.mark.parametrize("count", PROCESSES)
@pytest.mark.parametrize("items", [0, 1, 2, 40])
def test_answers_come_in_order_and_sums_are_whole(count: int, items: int) -> None:
    work = Squares()
    assert list(divide(work, range(items), lambda: count)) == [(n, n * n) for n in range(items)]
    assert work.total == sum(range(items))


@needs_copies
def test_processes_are_asked_for_and_made_only_where_there_is_work_for_two(tmp_path: Path) -> None:
    def never() -> int:
        raise AssertionError

    assert list(divide(Squares(folder=tmp_path), [5], never)) == [(5, 25)]
    assert list(divide(Squares(folder=tmp_path), range(9), alone))[-1] == (8, 64)
    assert [path.name for path in tmp_path.iterdir()] == [str(os.getpid())]
    assert len(list(divide(Squares(folder=tmp_path), range(40), lambda: 2))) == 40
    others = {int(path.name) for path in tmp_path.iterdir()} - {os.getpid()}
    assert len(others) == 2
    assert not any(map(alive, others))


@pytest.mark.one_of(3)
@pytest.mark.parametrize("count", PROCESSES)
def test_of_two_errors_that_of_the_earlier_item_is_raised_after_all_before_it(count: int) -> None:
    found = []
    with refused(UsageError, "item 6", "is wrong"):
        for item, _ in divide(Squares(wrong=(6, 7)), range(20), lambda: count):
            found.append(item)
    assert found == [*range(6)]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("count", PROCESSES)
@pytest.mark.parametrize("before", [0, 1, 2, 9])
def test_an_error_among_the_items_comes_after_the_answers_before_it(count: int, before: int) -> None:
    def items() -> Iterator[int]:
        yield from range(before)
        raise RegardError("cannot be read", "line 3")

    found = []
    with refused(RegardError, "line 3"):
        for item, _ in divide(Squares(), items(), lambda: count):
            found.append(item)
    assert found == [*range(before)]


@needs_copies
@pytest.mark.parametrize("count", [2, 3])
def test_a_process_that_is_killed_is_said_in_a_sentence_and_none_is_left(count: int, tmp_path: Path) -> None:
    with pytest.raises(forks.LostWorker, match=KILLED):
        list(divide(Squares(fatal=11, folder=tmp_path), range(40), lambda: count))
    assert not any(alive(int(path.name)) for path in tmp_path.iterdir())


def refuse_forks(monkeypatch: pytest.MonkeyPatch, allowed: int) -> None:
    """From now on the system starts so many processes only."""
    fork, started = os.fork, list[int]()

    def few() -> int:
        if len(started) == allowed:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        started.append(0)
        return fork()

    monkeypatch.setattr(os, "fork", few)


@needs_copies
@pytest.mark.parametrize("allowed", [0, 1])
def test_where_the_system_starts_no_more_processes_fewer_do_the_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, allowed: int
) -> None:
    work, before = Squares(folder=tmp_path), set(os.listdir("/proc/self/fd"))
    refuse_forks(monkeypatch, allowed)
    assert list(divide(work, range(40), lambda: 2)) == [(n, n * n) for n in range(40)]
    assert work.total == sum(range(40))
    workers = {int(path.name) for path in tmp_path.iterdir()}
    assert len(workers) == 1
    assert (os.getpid() in workers) == (allowed == 0)
    assert set(os.listdir("/proc/self/fd")) == before


@needs_copies
def test_whoever_takes_no_more_ends_the_processes(tmp_path: Path) -> None:
    with closing(divide(Squares(folder=tmp_path), range(10_000), lambda: 2)) as found:
        assert next(found) == (0, 0)
        working = [int(path.name) for path in tmp_path.iterdir()]
        assert working
        assert all(map(alive, working))
    assert not any(alive(int(path.name)) for path in tmp_path.iterdir())


@pytest.mark.parametrize("parts", [[], [b""], [b"a", b"", b"\0" * 300, b"\xff"]])
def test_values_are_packed_and_unpacked_again(parts: list[bytes]) -> None:
    numbers = np.array([1, 1 << 40])
    value = [1, "é\ud800\0", {"a": parts, "b": None}, []]
    assert forks.unpack(forks.pack(parts)) == parts
    assert forks.unpack(forks.pack(value)) == value
    found, bits = forks.unpack(forks.pack((numbers, numbers.astype("<u2")[:0])))
    assert (found.tolist(), found.dtype, bits.tolist(), bits.dtype) == (numbers.tolist(), "<i8", [], "<u2")


def twice(content: bytes) -> bytes:
    if content == b"fatal":
        os.kill(os.getpid(), signal.SIGKILL)
    if content == b"wrong":
        raise ValueError("of mine")
    return content + content


@needs_copies
def test_content_larger_than_a_pipe_passes() -> None:
    given = [bytes([n]) * size for n, size in enumerate((1 << 21, 0, 1 << 19, 3_000_000, 1 << 20, 1 << 19))]
    with ForkedWorkers(twice, 2) as workers:
        assert list(workers.map(given)) == [one + one for one in given]
        assert list(workers.map([])) == []


@needs_copies
def test_that_no_process_can_be_started_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_forks(monkeypatch, 0)
    with refused(forks.NoWorkers, None, "process", "Resource"), ForkedWorkers(twice, 2):
        pass


@needs_copies
def test_a_programming_error_shows_where_it_was() -> None:
    with ForkedWorkers(twice, 1) as workers, pytest.raises(RuntimeError, match="ValueError: of mine"):
        list(workers.map([b"wrong"]))


@needs_copies
def test_a_process_that_is_gone_when_more_is_sent_is_waited_for_once() -> None:
    def given() -> Iterator[bytes]:
        yield from (b"0", b"fatal", b"2")
        time.sleep(0.5)  # until the second process is gone, its answer still awaited
        yield bytes(1 << 21)

    with ForkedWorkers(twice, 2) as workers, pytest.raises(RegardError, match=KILLED):
        list(workers.map(given()))


@needs_copies
def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    code = f"""
import os, time
from pathlib import Path
from regard.system.forks import ForkedWorkers
def work(content):
    Path({str(tmp_path)!r}, str(os.getpid())).touch()
    time.sleep(60)
with ForkedWorkers(work, 2) as workers:
    list(workers.map([b"a", b"b"]))
"""
    first = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 30
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    first.kill()
    first.wait()
    processes = [int(path.name) for path in tmp_path.iterdir()]
    assert len(processes) == 2
    while any(map(alive, processes)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(alive, processes))
