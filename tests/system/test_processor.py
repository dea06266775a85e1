"""What is known of a processor and its cores, and the memory that a process keeps."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from regard.system import processor
from regard.system.processor import UNKNOWN, allow_cores, allowed_cores, current_core, lazy_pages

EPYC = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n"
EPYC += EPYC.replace("17", "18")


@pytest.mark.parametrize(
    ("text", "kind"),
    [(EPYC, "AMD EPYC (family 25, model 17)"), ("processor\t: 0\nmodel name\t: Cortex-A76\n", "Cortex-A76")],
)
def test_names_alone_are_cut_short(tmp_path: Path, text: str, kind: str) -> None:
    (file := tmp_path / "cpuinfo").write_text(text)
    assert processor.kind(file) == kind
    assert kind.startswith(processor.name(file))
    assert processor.kind(tmp_path / "none") == processor.name(tmp_path / "none") != ""


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
    for cores, process in ((set(), 0), ({100_000}, 0), (before, 2**22 + 1)):  # no process has this number
        allow_cores(cores, process)
    assert allowed_cores() == before, "another thread is as it was, and what the system refuses changes nothing"


def test_a_system_that_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    monkeypatch.setattr(processor, "_library", lambda: object())
    assert (allowed_cores(), current_core()) == (set(), UNKNOWN)
    allow_cores({0})


def test_lazy_pages_are_zeros_that_can_be_written() -> None:
    numbers = np.frombuffer(lazy_pages(1 << 20), np.float32)
    assert not numbers.any()
    numbers[-1] = 1
    assert numbers.sum() == 1
