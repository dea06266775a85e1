"""Processes that ask each other for signs of life."""

import time
from collections.abc import Callable

import pytest
from torch.distributed import HashStore

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
    hearts = [Heartbeat(store, rank, 3, silent=100) for rank in range(3)]
    lost = [one.start() for one in hearts]
    assert waited(lambda: all(store.check([f"regard/heartbeat/{rank}"]) for rank in range(3)))
    time.sleep(0.2)
    assert not any(one() for one in lost)
    for one in hearts:
        one.end()


def test_one_that_ends_or_never_begins_is_lost() -> None:
    store = HashStore()
    first, second = (Heartbeat(store, rank, 2, silent=20) for rank in range(2))
    lost = first.start()
    second.start()
    assert waited(lambda: store.check(["regard/heartbeat/1"]))
    assert not lost()
    second.end()
    assert waited(lost)
    first.end()
    alone = Heartbeat(HashStore(), 0, 2, silent=5)
    assert waited(alone.start())
    alone.end()


def test_a_store_that_does_not_answer_is_a_loss() -> None:
    class Silent(HashStore):
        def set(self, key: str, value: str) -> None:
            raise RuntimeError("timeout")

    one = Heartbeat(Silent(), 0, 2, silent=1000)
    assert waited(one.start())
    one.end()
