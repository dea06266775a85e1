"""Cores that a thread may use."""

import os
import threading

import pytest

from regard.system import cores
from regard.system.cores import UNKNOWN, allow_cores, allowed_cores, current_core


def test_a_thread_stays_on_the_cores_it_may_use() -> None:
    found = list[bool]()

    def work() -> None:
        before = allowed_cores()
        for core in before:
            allow_cores({core})
            found.append(current_core() in (core, UNKNOWN) and allowed_cores() == {core})
        allow_cores(before)
        found.append(allowed_cores() == before)

    thread = threading.Thread(target=work)
    before = allowed_cores()
    thread.start()
    thread.join()
    assert all(found)
    assert allowed_cores() == before, "another thread is as it was"


def test_what_the_system_refuses_changes_nothing() -> None:
    before = allowed_cores()
    allow_cores(set())
    allow_cores({100_000})
    allow_cores(before, 2**22 + 1)  # no process has this number
    assert allowed_cores() == before


def test_a_system_that_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    monkeypatch.setattr(cores, "_library", lambda: object())
    assert allowed_cores() == set()
    assert current_core() == UNKNOWN
    allow_cores({0})
