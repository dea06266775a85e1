"""Log of a partial results file: model, options and saves so far; locked against a second writer."""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from regard.config import FORMAT
from regard.system.errors import RegardError
from regard.training.checkpoints.files import Files, lock


@dataclass(frozen=True)
class Save:
    """The results synced to disk.

    Args:
        texts: number with results.
        size: bytes of the results.
        given: sha256 of the texts; ``found``: of the results.
    """

    texts: int
    size: int
    given: str
    found: str


class Log:
    """A log, made if it is not there; nobody else can open it until it is closed.

    Args:
        path: of the file.
        files: all file operations go through it.

    Raises:
        RegardError: another process has it, a newer Regard wrote it, or it is something else.
    """

    def __init__(self, path: Path, files: Files) -> None:
        self.path, self._files = path, files
        self.about: Any = None
        self.saves: list[Save] = []
        self.ours = False
        """Whether it is known for a log, or was empty: then it may be written and removed."""
        self._ends: list[int] = []
        self._handle = claim_file(path)
        try:
            self._load()
        except BaseException:
            self._handle.close()
            raise

    def others(self, about: Mapping[str, Any]) -> list[str]:
        """The names whose values differ from those in the log."""
        wanted = json.loads(json.dumps(about))
        return [name for name in {**wanted, **self.about} if wanted.get(name) != self.about.get(name)]

    def begin(self, about: Mapping[str, Any]) -> None:
        """Start over with these values."""
        self._truncate(0)
        self._write({"format": FORMAT, "about": about})
        self.about, self.saves, self._ends, self.ours = about, [], [self._handle.tell()], True

    def append(self, save: Save) -> None:
        """Add a save."""
        self._write(asdict(save))
        self.saves.append(save)
        self._ends.append(self._handle.tell())

    def cut(self, kept: int) -> None:
        """Keep the first n saves; drop a torn last line."""
        self.saves, self._ends = self.saves[:kept], self._ends[: kept + 1]
        self._truncate(self._ends[-1])

    def close(self) -> None:
        """Let go of it."""
        self._handle.close()

    def _truncate(self, size: int) -> None:
        self._files.before("truncate", self.path)
        self._handle.truncate(size)
        self._handle.seek(size)

    def _write(self, values: Mapping[str, Any]) -> None:
        line = json.dumps(values, allow_nan=False).encode() + b"\n"
        self._files.before("write", self.path)
        self._files.put(self._handle, memoryview(line))
        self._files.before("fsync", self.path)
        self._files.sync(self._handle.fileno())

    def _load(self) -> None:
        """Read the log up to the first torn line."""
        head, *lines = self._handle.readall().split(b"\n")
        if not lines:
            self.ours = not head
            return
        values = parse_line(head)
        if not isinstance(values.get("about"), dict) or type(values.get("format")) is not int:
            raise RegardError("is in the way: it is no log of ours; move it away", str(self.path))
        if values["format"] > FORMAT:
            message = f"format {values['format']} was written by a newer Regard; this one reads format {FORMAT}"
            raise RegardError(message, str(self.path))
        self.about, self._ends, self.ours = values["about"], [len(head) + 1], True
        for line in lines[:-1]:
            save = parse_save(parse_line(line))
            last = self.saves[-1] if self.saves else Save(0, 0, "", "")
            if save is None or save.texts <= last.texts or save.size < last.size:
                return
            self.saves.append(save)
            self._ends.append(self._ends[-1] + len(line) + 1)


def parse_line(line: bytes) -> dict[str, Any]:
    """The object of a line; empty if there is none."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def parse_save(values: Mapping[str, Any]) -> Save | None:
    """A save, if these are the values of one."""
    if set(values) != {field.name for field in fields(Save)}:
        return None
    kinds = (int, int, str, str)
    return Save(**values) if tuple(type(values[field.name]) for field in fields(Save)) == kinds else None


def plain_file(path: Path) -> io.FileIO:
    """A file opened for reading and writing, made if it is not there.

    Raises:
        RegardError: it is a pipe or a device.
    """
    handle = io.FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666), "r+")
    if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
        handle.close()
        raise RegardError("is in the way: it is a pipe or a device; move it away", str(path))
    return handle


def claim_file(path: Path) -> io.FileIO:
    """A regular file, locked against others until it is closed.

    Raises:
        RegardError: another process has it, or it is no plain file.
    """
    while True:
        handle = plain_file(path)
        try:
            if lock(handle.fileno()) is False:
                raise RegardError("another process is writing there", str(path))
        except BaseException:
            handle.close()
            raise
        if os.fstat(handle.fileno()).st_nlink:  # else who had it has just finished and removed it
            return handle
        handle.close()
