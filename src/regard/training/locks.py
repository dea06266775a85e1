"""Locks on files and folders: a process holds one while it works, and a kill of any kind lets go of it.

What is being made stands beside its place as ``.NAME.partial-<uuid>``, locked; where it is not, its maker is dead.
"""

from __future__ import annotations

import glob
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regard.errors import RegardError

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]

_TRIES, _PAUSE = 5, 0.02
"""Whoever only asks whether a lock is held has it for that moment."""


def lock(handle: int, wait: bool = False) -> bool | None:
    """Whether an open file could be locked; ``None`` where there are no locks."""
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
def unfinished(path: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    """A new file or folder beside ``path``, which is to become it, locked while the block runs.

    Args:
        path: what it is to become.
        make: makes the empty file or folder.
    """
    while True:
        fresh = path.with_name(f".{path.name}.partial-{uuid.uuid4().hex}")
        make(fresh)
        with _held(fresh, wait=True):
            if fresh.exists():  # nobody removed it in the instant before it was locked
                yield fresh
                return


def leftovers(path: Path) -> Iterator[Path]:
    """What killed processes left of ``path`` unfinished; each is locked until the next is asked for."""
    for left in sorted(path.parent.glob(f".{glob.escape(path.name)}.partial-{'[0-9a-f]' * 32}")):
        with _held(left, wait=False) as dead:
            if dead:
                yield left


@contextmanager
def _held(path: Path, wait: bool) -> Iterator[bool]:
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
