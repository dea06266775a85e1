"""File operations of a save, numbered, so that a test can fail or kill before any of them; and locks.

An unfinished file lies beside its final path as ``.NAME.partial-<uuid>``, locked; the system releases the lock when the
process dies, so an unlocked one is what a killed process left.
"""

from __future__ import annotations

import glob
import hashlib
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from regard.system import disk
from regard.system.errors import RegardError

try:
    import fcntl
except ImportError:  # this system has no such locks
    fcntl = None  # type: ignore[assignment]

_TRIES, _PAUSE = 5, 0.02
"""Checking whether a lock is held takes it for a moment."""
PIECE = 1 << 22
"""Bytes written and hashed at once."""


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


@dataclass(frozen=True)
class Entry:
    """A file's entry in a manifest."""

    size: int
    sha256: str


class Files:
    """Every change a save makes to a disk. Each operation first calls :meth:`before`, which counts it.

    A test overrides :meth:`before` (kill or raise at operation *n*) or :meth:`put` (write half a piece, then die).
    """

    number = 0

    def before(self, operation: str, path: Path) -> None:
        """Called before each operation."""
        self.number += 1

    def put(self, handle: BinaryIO, piece: memoryview) -> None:
        """Write one piece whole."""
        while piece:
            piece = piece[handle.write(piece) :]

    def sync(self, handle: int) -> None:
        """Wait until the written data is on the disk."""
        os.fsync(handle)

    def mkdir(self, path: Path) -> None:
        """Make a new folder; the one above it must exist."""
        self.before("mkdir", path)
        path.mkdir()

    def write(self, path: Path, chunks: Iterable[bytes | memoryview]) -> Entry:
        """Write a new file piece by piece, hashing it, and sync it to disk."""
        with disk.naming(path):
            self._create(path)
            return self._fill(path, chunks)

    def _create(self, path: Path) -> None:
        self.before("create", path)
        open(path, "xb").close()

    def _fill(self, path: Path, chunks: Iterable[bytes | memoryview]) -> Entry:
        digest, size = hashlib.sha256(), 0
        with open(path, "r+b", buffering=0) as handle:
            for piece in pieces(chunks):
                self.before("write", path)
                self.put(handle, piece)
                digest.update(piece)
                size += len(piece)
            self.before("fsync", path)
            self.sync(handle.fileno())
        return Entry(size, digest.hexdigest())

    def fsync_folder(self, path: Path) -> None:
        """Bring the names in a folder safely to the disk."""
        with disk.naming(path):
            self.before("fsync folder", path)
            handle = os.open(path, os.O_RDONLY)
            try:
                self.sync(handle)
            finally:
                os.close(handle)

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file (over an existing one) or a folder, at once or not at all."""
        self.before("rename", old)
        os.replace(old, new)

    def replace(self, path: Path, chunks: Iterable[bytes | memoryview]) -> Entry:
        """Replace a file whole: after a kill at any moment it is the old one or the new one.

        Unfinished parts left by a killed process are removed.
        """
        self.sweep(path)
        with disk.naming(path), partial_path(path, self._create) as fresh:
            try:
                entry = self._fill(fresh, chunks)
                self.rename(fresh, path)
            except BaseException:
                fresh.unlink(missing_ok=True)
                raise
        self.fsync_folder(path.parent)
        return entry

    def sweep(self, path: Path) -> None:
        """Remove what killed processes left unfinished of a file or folder."""
        for left in leftovers(path):
            with suppress(OSError):  # somebody else's
                self.remove(left)

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder with all that is in it."""
        if path.is_dir() and not path.is_symlink():
            for inner in sorted(path.iterdir()):
                self.remove(inner)
            self.before("rmdir", path)
            path.rmdir()
        else:
            self.before("unlink", path)
            path.unlink()


def pieces(chunks: Iterable[bytes | memoryview]) -> Iterator[memoryview]:
    """The same bytes, at most ``PIECE`` at once."""
    for chunk in chunks:
        view = memoryview(chunk).cast("B")
        for start in range(0, len(view), PIECE):
            yield view[start : start + PIECE]
