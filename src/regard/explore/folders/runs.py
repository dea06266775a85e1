"""The training run of a model folder: whether it is running, and the snapshots it kept."""

from __future__ import annotations

import time
from pathlib import Path

from regard.explore.folders.regular_files import open_regular_file
from regard.explore.folders.training_curves import LOG

LOCK = LOG.parent / "lock"
FRESH = 60.0
"""Seconds; a log written this recently is still being written."""
STALE = 3600.0
"""Seconds; a log untouched for longer is not being written, and its lock is not tried."""


def snapshots(folder: Path) -> dict[str, Path]:
    """The snapshots kept by the run in a folder, oldest first, by names such as ``step 1,000``."""
    from regard.training.checkpoints.checkpoint import whole

    return {f"step {int(place.name.partition('-')[2]):,}": place for place in whole(folder / "training" / "snapshots")}


def is_running(folder: Path) -> bool:
    """Whether a training is running in a folder: by its lock, or without locks by a recent log.

    The lock is tried for an instant, and only while the log is young, or not there: a training that begins in that very
    instant would take the folder for another's.
    """
    try:
        age = time.time() - (folder / LOG).stat().st_mtime
    except OSError:  # there is no log yet
        return bool(_is_locked(folder / LOCK))
    if age > STALE:
        return False
    held = _is_locked(folder / LOCK)
    return age <= FRESH if held is None else held


def is_preparing(folder: Path) -> bool:
    """Whether a training is running in a folder without a recipe yet; without locks, if it started recently."""
    if (held := _is_locked(folder / LOCK)) is not None:
        return held
    training = folder / LOG.parent
    try:
        return time.time() - training.stat().st_mtime <= STALE and not (training / "checkpoints").exists()
    except OSError:
        return False


def _is_locked(path: Path) -> bool | None:
    """Whether a lock is held; ``None`` if that cannot be determined."""
    try:
        import fcntl

        with open_regular_file(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (ImportError, OSError):
        return None
    return False
