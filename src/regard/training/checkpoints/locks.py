"""File and folder locks that the system releases when their process dies.

An unfinished file is kept beside its final path as ``.NAME.partial-<uuid>``, locked; if it is not locked, its process
is dead.
"""

from __future__ import annotations

import glob
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regard.system.errors import RegardError

try:
    import fcntl
except ImportError:  # this system has no such locks
    fcntl = None  # type: ignore[assignment]

_TRIES, _PAUSE = 5, 0.02
"""Checking whether a lock is held takes it for a moment."""


def lock(handle: int, wait: bool = False) -> bool | None:
    """Whether an open file could be locked; ``None`` if the system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


@contextmanager
def alone(path: Path, said: str, where: Path) -> Iterator[None]:
    """Hold the lock file ``path`` while the block runs.

    Raises:
        RegardError: another process holds it: ``said``, of ``where``.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        for left in reversed(range(_TRIES)):
            if lock(handle) is not False:
                break
            if not left:
                raise RegardError(said, str(where))
            time.sleep(_PAUSE)
        yield
    finally:
        os.close(handle)


@contextmanager
def partial_path(path: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    """A new file or folder beside ``path``, to be renamed to it, locked while the block runs.

    Args:
        path: the final path.
        make: makes the empty file or folder.
    """
    while True:
        fresh = path.with_name(f".{path.name}.partial-{uuid.uuid4().hex}")
        make(fresh)
        with _hold_lock(fresh, wait=True):
            if fresh.exists():  # it was not removed in the instant before it was locked
                yield fresh
                return


def leftovers(path: Path) -> Iterator[Path]:
    """Unfinished versions of ``path`` left by killed processes; each is locked until the next is requested."""
    for left in sorted(path.parent.glob(f".{glob.escape(path.name)}.partial-{'[0-9a-f]' * 32}")):
        with _hold_lock(left, wait=False) as dead:
            if dead:
                yield left


@contextmanager
def _hold_lock(path: Path, wait: bool) -> Iterator[bool]:
    """Whether a file or folder could be locked; it is, while the block runs."""
    held, handle = False, -1
    with suppress(OSError):  # another's, or on a file system without locks
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        held = bool(lock(handle, wait))
    try:
        yield held
    finally:
        if handle >= 0:
            os.close(handle)
