"""All file operations of a save, numbered, so that a test can fail or kill before any of them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from regard.system import disk
from regard.training.checkpoints.locks import leftovers, partial_path

PIECE = 1 << 22
"""Bytes written and hashed at once."""


@dataclass(frozen=True)
class Entry:
    """A file's entry in a manifest."""

    size: int
    sha256: str


class Files:
    """Every change a save makes to a disk. Each operation first calls :meth:`before`, which counts it.

    A test overrides :meth:`before` (kill or raise at operation *n*) or :meth:`put` (write half a piece, then die).
    """

    def __init__(self) -> None:
        self.number = 0

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
