"""Processes that ask each other for signs of life."""

import time
from collections.abc import Callable
from threading import Event

import pytest
from torch.distributed import DistNetworkError, HashStore, Store

from regard.runs.workers import heartbeat
from regard.runs.workers.heartbeat import Heartbeat


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "_SECOND", 0.01)


def waited(done: Callable[[], bool]) -> bool:
    """Whether something is done within some seconds."""
    end = time.monotonic() + 5
    while not (found := done()) and time.monotonic() < end:
        time.sleep(0.01)
    return found


def test_processes_that_answer_are_not_lost() -> None:
    store = HashStore()
    hearts = [Heartbeat(lambda: store, rank, 3, absent=100, silent=100) for rank in range(3)]
    lost = [one.start() for one in hearts]
    assert waited(lambda: all(store.check([f"regard/heartbeat/{rank}"]) for rank in range(3)))
    time.sleep(0.2)
    assert not any(one() for one in lost)
    for one in hearts:
        one.end()


def test_one_that_ends_or_never_begins_is_lost() -> None:
    store = HashStore()
    first, second = (Heartbeat(lambda: store, rank, 2, absent=1000, silent=20) for rank in range(2))
    lost = first.start()
    second.start()
    assert waited(lambda: store.check(["regard/heartbeat/1"]))
    assert not lost()
    second.end()
    assert waited(lost)
    first.end()
    alone = Heartbeat(HashStore, 0, 2, absent=5, silent=1000)
    assert waited(alone.start())
    alone.end()


def test_one_that_begins_late_is_not_lost() -> None:
    store = HashStore()
    first, second = (Heartbeat(lambda: store, rank, 2, absent=1000, silent=20) for rank in range(2))
    lost = first.start()
    time.sleep(0.5)  # longer than it may be silent
    assert not lost()
    second.start()
    assert waited(lambda: store.check(["regard/heartbeat/1"]))
    assert not lost()
    for one in (first, second):
        one.end()


def test_a_store_that_is_gone_or_not_there_is_a_loss() -> None:
    class Gone(HashStore):
        def set(self, key: str, value: str) -> None:
            raise DistNetworkError("Broken pipe")

    def missing() -> Store:
        raise DistNetworkError("connect() timed out")

    for connect in (Gone, missing):
        one = Heartbeat(connect, 0, 2, absent=1000, silent=1000)
        assert waited(one.start())
        one.end()


def test_a_store_that_does_not_answer_is_a_loss() -> None:
    """As that of a host that stands still: its connection is open, and a question waits for ever."""
    asked, free = HashStore(), Event()

    class Stopped(HashStore):
        def check(self, keys: list[str]) -> bool:
            if asked.check(["stop"]):
                free.wait()
            return True

        def get(self, key: str) -> bytes:
            return str(time.monotonic()).encode()

    one = Heartbeat(Stopped, 0, 2, absent=100, silent=20)
    lost = one.start()
    time.sleep(0.3)
    assert not lost()
    asked.set("stop", "")
    assert waited(lost)
    free.set()
    one.end()
