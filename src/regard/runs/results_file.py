"""A results file that is complete or absent; partial results are kept beside it, and the same command resumes.

``FILE.partial`` holds the results as they come. ``FILE.partial.log`` records where they come from (model, options,
versions); then it has a line for each save: the number of texts answered, the number of bytes of the answers, and the
sha256 of both. Anything after the last save is discarded, so a kill at any moment costs only what was not saved.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from regard.config import FORMAT
from regard.system.errors import RegardError, Stopped, written_by_newer
from regard.training.checkpoints.files import PIECE, Files, lock

EVERY = 5.0
"""Seconds between two saves; a run that fails sooner saves nothing."""
GONE = 0.5
"""Seconds in which the processes of a command that was killed are gone too; until then they hold its file."""

Whole = Callable[[BinaryIO], bytes | memoryview]
"""Makes a file's content from the partial file's."""


class ResultsFile:
    """Collects results of texts in order, saves them now and then, and moves the file into place at the end.

    Args:
        path: of the file; an existing one is unchanged until the new one is complete.
        about: what the results depend on besides the texts, by name, as plain values; a partial file with other
            values is discarded.
        tell: receives messages for the user.
        files: all file operations go through it.

    Raises:
        RegardError: it cannot be written, another process is at it, or something else lies where its parts would.
    """

    def __init__(
        self,
        path: Path,
        about: Mapping[str, object],
        tell: Callable[[str], None] = lambda text: None,
        files: Files | None = None,
    ) -> None:
        self.path, self.partial = path, path.with_name(f"{path.name}.partial")
        self.texts = 0
        self._about, self._tell, self._files = about, tell, files or Files()
        self._size, self._given, self._found = 0, hashlib.sha256(), hashlib.sha256()
        self._finished, self._last = False, time.monotonic()

    def __enter__(self) -> ResultsFile:
        with report_errors(self.path):
            self._log = Log(self.partial.with_name(f"{self.partial.name}.log"), self._files)
            try:
                self._begin()
            except BaseException:
                self._leave()
                raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if isinstance(error, Stopped):
                with self._report_errors():
                    self.save()
        finally:
            self._handle.close()
            if not self._finished and not self._log.saves:
                with contextlib.suppress(OSError):
                    self.partial.unlink(missing_ok=True)
            self._leave()

    def rest(self, texts: Iterable[str]) -> Iterator[str]:
        """The texts without results yet; if earlier texts have changed, all results are redone."""
        source, given, held, kept = iter(texts), hashlib.sha256(), list[str](), 0
        for save in self._log.saves:
            held = list(islice(source, save.texts - self.texts))
            ahead = given.copy()
            ahead.update(b"".join(map(length_prefix, held)))
            if self.texts + len(held) < save.texts or ahead.hexdigest() != save.given:
                break
            self.texts, given, held, kept = save.texts, ahead, [], kept + 1
        self._given = given
        if kept < len(self._log.saves):
            behind = f" after text {self.texts:,}" if self.texts else ""
            self._tell(f"the input is another one{behind} than that of {self.partial}; what follows is recomputed")
            with self._report_errors():
                self._cut(kept)
                self._handle.seek(0)
                self._found = hashlib.sha256()
                for piece in self._read(self._size):
                    self._found.update(piece)
        return chain(held, source)

    def add(self, texts: Sequence[str], content: bytes | memoryview) -> None:
        """Take the results of the next texts."""
        with self._report_errors():
            self._files.before("write", self.partial)
            self._files.put(self._handle, memoryview(content))
            self._given.update(b"".join(map(length_prefix, texts)))
            self._found.update(content)
            self._size += len(content)
            self.texts += len(texts)
            if time.monotonic() - self._last >= EVERY:
                self.save()

    def save(self) -> None:
        """Sync the results to disk, and record that in the log."""
        self._last = time.monotonic()
        if self.texts == (self._log.saves[-1].texts if self._log.saves else 0):
            return
        self._files.before("fsync", self.partial)
        self._files.sync(self._handle.fileno())
        self._log.append(Save(self.texts, self._size, self._given.hexdigest(), self._found.hexdigest()))

    def finish(self, whole: Whole | None = None) -> None:
        """Move the file into place.

        Args:
            whole: makes its content; default: the concatenated results.
        """
        with self._report_errors():
            if self._log.saves:
                self.save()
            self._files.before("fsync", self.partial)
            self._files.sync(self._handle.fileno())
            if whole is None:
                self._place(self.partial)
            else:
                self._handle.seek(0)
                self._make(whole(self._handle))
                self._files.remove(self.partial)
            self._files.remove(self._log.path)
            self._finished = True

    def _make(self, content: bytes | memoryview) -> None:
        """Put a file of this content in its place."""
        made = self.partial.with_name(f"{self.partial.name}.whole")
        if made.exists():  # from a run that was killed here
            self._files.remove(made)
        try:
            self._files.write(made, [content])
            self._place(made)
        except OSError:
            made.unlink(missing_ok=True)
            raise

    def _place(self, made: Path) -> None:
        """Rename the new file, with the older file's permissions."""
        if self.path.exists():
            shutil.copymode(self.path, made)
        self._files.rename(made, self.path)
        self._files.fsync_folder(self.path.parent)

    def _begin(self) -> None:
        """Open the partial file and truncate it after the last valid save; start over if its values differ."""
        there = self.partial.exists() or self.partial.is_symlink()
        if there and self._log.about is None:
            message = f"is in the way: no {self._log.path.name} says what it is; move it away, or write elsewhere"
            raise RegardError(message, str(self.partial))
        others = [] if self._log.about is None else self._log.others(self._about)
        if others and self._log.saves:
            self._tell(f"{self.partial} was made with other values of {', '.join(others)}; starting over")
        if others or self._log.about is None:
            if there:
                self._files.remove(self.partial)
            self._log.begin(self._about)
        self._handle = plain_file(self.partial)
        self._cut(self._whole() if there else 0)

    def _whole(self) -> int:
        """The number of saves that match the partial file's bytes."""
        self._handle.seek(0)
        for number, save in enumerate(self._log.saves):
            digest = self._found.copy()
            for piece in self._read(save.size - self._handle.tell()):
                digest.update(piece)
            if self._handle.tell() != save.size or digest.hexdigest() != save.found:
                self._tell(f"{self.partial} is damaged; everything after the last valid save is recomputed")
                return number
            self._found = digest
        return len(self._log.saves)

    def _read(self, size: int) -> Iterator[bytes]:
        """The next bytes of the partial file, as far as they exist, in pieces."""
        while size and (piece := self._handle.read(min(PIECE, size))):
            yield piece
            size -= len(piece)

    def _cut(self, kept: int) -> None:
        """Keep the first n saves, and the results up to there."""
        self._log.cut(kept)
        self._size = self._log.saves[-1].size if kept else 0
        self._files.before("truncate", self.partial)
        self._handle.truncate(self._size)
        self._handle.seek(self._size)

    def _leave(self) -> None:
        """Let go of the log; one without a save is removed."""
        if not self._finished and not self._log.saves and self._log.ours:
            with contextlib.suppress(OSError):
                self._log.path.unlink(missing_ok=True)
        self._log.handle.close()

    def _report_errors(self) -> contextlib.AbstractContextManager[None]:
        kept = f"what is finished is kept in {self.partial.name}; rerun the same command to resume"
        return report_errors(self.path, f"; {kept}" if self._log.saves else "")


@contextlib.contextmanager
def report_errors(path: Path, more: str = "") -> Iterator[None]:
    """Re-raise OS errors of a file as RegardError.

    Raises:
        RegardError: it cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise RegardError(f"cannot be written: {error.strerror or error}{more}", str(path)) from None


def length_prefix(text: str) -> bytes:
    """A text as length-prefixed bytes, unambiguous for any content."""
    content = text.encode("utf-8", "surrogatepass")
    return b"%d:%b" % (len(content), content)


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
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


@dataclass(frozen=True, config=ConfigDict(strict=True))
class Head:
    """The first line of a log: its format, and what the results depend on, by name."""

    format: int
    about: dict[str, object]


_SAVE, _HEAD = TypeAdapter(Save), TypeAdapter(Head)


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
        self.about: Mapping[str, object] | None = None
        self.saves: list[Save] = []
        self.ours = False
        """Whether it is known for a log, or was empty: then it may be written and removed."""
        self._ends: list[int] = []
        self.handle = claim_file(path)
        try:
            self._load()
        except BaseException:
            self.handle.close()
            raise

    def others(self, about: Mapping[str, object]) -> list[str]:
        """The names whose values differ from those in the log."""
        wanted, there = json.loads(json.dumps(about)), self.about or {}
        return [name for name in {**wanted, **there} if wanted.get(name) != there.get(name)]

    def begin(self, about: Mapping[str, object]) -> None:
        """Start over with these values."""
        self._truncate(0)
        self._write({"format": FORMAT, "about": about})
        self.about, self.saves, self._ends, self.ours = about, [], [self.handle.tell()], True

    def append(self, save: Save) -> None:
        """Add a save."""
        self._write(asdict(save))
        self.saves.append(save)
        self._ends.append(self.handle.tell())

    def cut(self, kept: int) -> None:
        """Keep the first n saves; drop a torn last line."""
        self.saves, self._ends = self.saves[:kept], self._ends[: kept + 1]
        self._truncate(self._ends[-1])

    def _truncate(self, size: int) -> None:
        self._files.before("truncate", self.path)
        self.handle.truncate(size)
        self.handle.seek(size)

    def _write(self, values: Mapping[str, object]) -> None:
        line = json.dumps(values, allow_nan=False).encode() + b"\n"
        self._files.before("write", self.path)
        self._files.put(self.handle, memoryview(line))
        self._files.before("fsync", self.path)
        self._files.sync(self.handle.fileno())

    def _load(self) -> None:
        """Read the log up to the first torn line."""
        head, *lines = self.handle.readall().split(b"\n")
        if not lines:
            self.ours = not head
            return
        try:
            log = _HEAD.validate_json(head)
        except ValueError:
            raise RegardError("is in the way: it is no log of ours; move it away", str(self.path)) from None
        if log.format > FORMAT:
            raise RegardError(written_by_newer(log.format, FORMAT), str(self.path))
        self.about, self._ends, self.ours = log.about, [len(head) + 1], True
        for line in lines[:-1]:
            last = self.saves[-1] if self.saves else Save(0, 0, "", "")
            try:
                save = _SAVE.validate_json(line)
            except ValueError:
                return
            if save.texts <= last.texts or save.size < last.size:
                return
            self.saves.append(save)
            self._ends.append(self._ends[-1] + len(line) + 1)


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
    until = time.monotonic() + GONE
    while True:
        handle = plain_file(path)
        try:
            locked = lock(handle.fileno())
            if locked is False and time.monotonic() > until:
                raise RegardError("another process is writing there", str(path))
            if locked is not False and os.fstat(handle.fileno()).st_nlink:
                return handle  # else who had it has just finished and removed it
        except BaseException:
            handle.close()
            raise
        handle.close()
        time.sleep(GONE / 20)
