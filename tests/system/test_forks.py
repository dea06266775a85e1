"""Work divided among copies of this process is answered in order; errors and lost processes are told."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from regard.system.errors import RegardError, UsageError
from regard.system.forks import SAFE, ForkedWorkers, NoWorkers
from tests.refusals import refused

pytestmark = pytest.mark.skipif(not SAFE, reason="processes are not copied here")


def twice(content: bytes) -> bytes:
    """Slow for every third."""
    if content[:1] in b"369":
        time.sleep(0.01)
    return content + content


@pytest.mark.parametrize("count", [1, 2, 3])
def test_answers_come_in_order(count: int) -> None:
    given = [str(n).encode() for n in range(25)]
    with ForkedWorkers(twice, count) as workers:
        assert list(workers.map(given)) == [one + one for one in given]


def test_content_larger_than_a_pipe_passes() -> None:
    given = [bytes([n]) * size for n, size in enumerate((1 << 21, 0, 1 << 19, 3_000_000, 1 << 20, 1 << 19))]
    with ForkedWorkers(twice, 2) as workers:
        assert [len(found) for found in workers.map(given)] == [2 * len(one) for one in given]


def test_nothing_to_do() -> None:
    with ForkedWorkers(twice, 2) as workers:
        assert list(workers.map([])) == []


def test_several_processes_work_and_none_is_left() -> None:
    with ForkedWorkers(lambda content: str(os.getpid()).encode(), 2) as workers:
        found = {int(one) for one in workers.map([b""] * 4)}
    assert len(found) == 2
    assert os.getpid() not in found
    for process in found:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_that_no_process_can_be_started_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory() -> int:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(os, "fork", no_memory)
    with refused(NoWorkers, None, "process", os.strerror(errno.ENOMEM)), ForkedWorkers(twice, 2):
        pass


def test_an_error_of_the_user_keeps_its_kind() -> None:
    def work(content: bytes) -> bytes:
        if content == b"2":
            raise UsageError("is wrong", "line 2")
        return content

    with ForkedWorkers(work, 2) as workers:
        answers = workers.map([b"0", b"1", b"2", b"3"])
        assert [next(answers), next(answers)] == [b"0", b"1"]
        with refused(UsageError, "line 2", "is wrong"):
            next(answers)


def test_a_programming_error_shows_where_it_was() -> None:
    def work(content: bytes) -> bytes:
        raise ValueError("of mine")

    with ForkedWorkers(work, 1) as workers, pytest.raises(RuntimeError, match="ValueError: of mine"):
        list(workers.map([b""]))


def test_an_error_in_what_is_given_comes_after_the_answers_before_it() -> None:
    def given() -> Iterator[bytes]:
        yield b"a"
        yield b"b"
        raise RegardError("cannot be read", "line 3")

    found = []
    with ForkedWorkers(twice, 2) as workers, refused(RegardError, "line 3"):
        for one in workers.map(given()):
            found.append(one)
    assert found == [b"aa", b"bb"]


@pytest.mark.parametrize("size", [1, 1 << 21])
def test_a_process_that_is_killed_is_named(size: int) -> None:
    def work(content: bytes) -> bytes:
        os.kill(os.getpid(), signal.SIGKILL)
        return b""

    with ForkedWorkers(work, 2) as workers, pytest.raises(RegardError, match="ended by SIGKILL; rerun"):
        list(workers.map([bytes(size)] * 6))


def test_a_process_that_is_gone_when_more_is_sent_is_waited_for_once() -> None:
    def work(content: bytes) -> bytes:
        if content == b"fatal":
            os.kill(os.getpid(), signal.SIGKILL)
        return content

    def given() -> Iterator[bytes]:
        yield from (b"0", b"fatal", b"2")
        time.sleep(0.5)  # until the second process is gone, its answer still awaited
        yield b"3"

    with ForkedWorkers(work, 2) as workers, pytest.raises(RegardError, match="ended by SIGKILL; rerun"):
        list(workers.map(given()))


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
    while any(_alive(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(_alive(process) for process in processes)


def _alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
