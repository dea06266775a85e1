"""Whether a training is running, and its snapshots."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest

from regard.explore.folders.folder import FRESH, STALE, is_preparing, is_running, snapshots
from regard.explore.folders.training_curves import LOG
from tests.tasks.small_tasks import filler, keep


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / LOG).parent.mkdir()
    (tmp_path / LOG).write_text("{}\n")
    return tmp_path


def aged(folder: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(folder / LOG, (then, then))


def test_without_a_lock_a_young_log_is_being_written(folder: Path) -> None:
    assert is_running(folder)
    aged(folder, FRESH + 5)
    assert not is_running(folder)
    assert not is_running(folder / "elsewhere")


def test_the_lock_knows_better(folder: Path) -> None:
    with (folder / "training" / "lock").open("wb") as lock:
        assert not is_running(folder)  # it wrote a moment ago, and is done
        fcntl.flock(lock, fcntl.LOCK_EX)
        aged(folder, FRESH + 5)  # a long validation
        assert is_running(folder)
        aged(folder, STALE + 5)
        assert not is_running(folder)
    aged(folder, 0)
    assert not is_running(folder)


def test_a_training_without_a_log_is_at_work_while_it_holds_the_lock(folder: Path) -> None:
    (folder / LOG).unlink()
    assert not is_running(folder)
    assert is_preparing(folder)  # there is no lock to ask, and it began lately
    (folder / "training" / "checkpoints").mkdir()
    assert not is_preparing(folder)
    with (folder / "training" / "lock").open("wb") as lock:
        assert not is_running(folder)
        assert not is_preparing(folder)
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert is_running(folder)
        assert is_preparing(folder)
    assert not is_preparing(folder / "elsewhere")


def test_looking_does_not_keep_a_training_from_its_lock(folder: Path) -> None:
    with (folder / "training" / "lock").open("wb") as lock:
        is_running(folder)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_kept_weights_by_step(folder: Path) -> None:
    assert snapshots(folder) == {}
    task = filler()
    places = [keep(folder, task, step) for step in (1_000_000, 20, 3_000)]
    (folder / "training" / "snapshots" / "step-000040.partial-1").mkdir()
    found = snapshots(folder)
    assert list(found.items()) == [("step 20", places[1]), ("step 3,000", places[2]), ("step 1,000,000", places[0])]
