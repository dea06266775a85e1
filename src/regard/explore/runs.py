"""The run that a model comes from: whether it goes on, and the weights it kept on its way."""

from __future__ import annotations

import time
from pathlib import Path

from regard.explore.course import LOG
from regard.explore.regular import opened

LOCK = LOG.parent / "lock"
FRESH = 60.0
"""Seconds; a log that was written within them is being written."""
STALE = 3600.0
"""Seconds; nobody writes a log that was left alone for longer, and nobody asks for its lock."""


def snapshots(folder: Path) -> dict[str, Path]:
    """The weights that the run in a folder kept for good, the oldest first, by names such as ``step 1,000``."""
    from regard.training.checkpoint import whole

    return {f"step {int(place.name.partition('-')[2]):,}": place for place in whole(folder / "training" / "snapshots")}


def running(folder: Path) -> bool:
    """Whether a training is at work in a folder: it holds the run's lock; where there are none, it wrote a moment ago.

    The lock is tried for an instant, and only while the log is young, or not there: a training that begins in that very
    instant would take the folder for another's.
    """
    try:
        age = time.time() - (folder / LOG).stat().st_mtime
    except OSError:  # there is no log yet
        return bool(_held(folder / LOCK))
    if age > STALE:
        return False
    held = _held(folder / LOCK)
    return age <= FRESH if held is None else held


def preparing(folder: Path) -> bool:
    """Whether a training is at work in a folder that has no recipe yet; where there are no locks, it began lately."""
    if (held := _held(folder / LOCK)) is not None:
        return held
    training = folder / LOG.parent
    try:
        return time.time() - training.stat().st_mtime <= STALE and not (training / "checkpoints").exists()
    except OSError:
        return False


def _held(path: Path) -> bool | None:
    """Whether somebody holds a lock; ``None`` where that cannot be known."""
    try:
        import fcntl

        with opened(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (ImportError, OSError):
        return None
    return False
