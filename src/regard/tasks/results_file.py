"""A file of results, whole or not at all: what is finished waits in a file beside it, and the same command resumes.

``FILE.partial`` holds the results as they come. ``FILE.partial.log`` says what they are of (model, options, versions);
then it has a line for each save: how many texts are answered, how many bytes the answers have, and the sha256 of both.
What is behind the last save does not count, so a kill at any moment costs only what was not saved.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from regard.errors import RegardError, Stopped
from regard.tasks.results_log import Log, Save, plain_file
from regard.training.files import PIECE, Files

EVERY = 5.0
"""Seconds between two saves; a run that fails sooner leaves nothing behind."""

Whole = Callable[[BinaryIO], bytes | memoryview]
"""Makes the content of a file of what the partial file holds."""


class ResultsFile:
    """Takes the results of texts in order, saves them now and then, and puts the file in its place at the end.

    Args:
        path: of the file; one that is there stays as it is until the new one is whole.
        about: what the results depend on beside the texts, by name, as plain values; others than those of a partial
            file begin anew.
        tell: is given sentences for the person.
        files: all file operations go through it.
        now: the time in seconds.

    Raises:
        RegardError: it cannot be written, another process is at it, or something else lies where its parts would.
    """

    def __init__(
        self,
        path: Path,
        about: Mapping[str, Any],
        tell: Callable[[str], None] = lambda text: None,
        files: Files | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path, self.partial = path, path.with_name(f"{path.name}.partial")
        self.texts = 0
        self._about, self._tell, self._files, self._now = about, tell, files or Files(), now
        self._size, self._given, self._found = 0, hashlib.sha256(), hashlib.sha256()
        self._finished, self._last = False, now()

    def __enter__(self) -> ResultsFile:
        with told(self.path):
            self._log = Log(self.partial.with_name(f"{self.partial.name}.log"), self._files)
            try:
                self._begin()
            except BaseException:
                self._leave()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, Stopped):
                with self._told():
                    self.save()
        finally:
            self._handle.close()
            if not self._finished and not self._log.saves:
                with contextlib.suppress(OSError):
                    self.partial.unlink(missing_ok=True)
            self._leave()

    def rest(self, texts: Iterable[str]) -> Iterator[str]:
        """The texts that are not answered yet; where those that are have become others, these begin anew."""
        source, given, held, kept = iter(texts), hashlib.sha256(), list[str](), 0
        for save in self._log.saves:
            held = list(islice(source, save.texts - self.texts))
            ahead = given.copy()
            ahead.update(b"".join(map(coded, held)))
            if self.texts + len(held) < save.texts or ahead.hexdigest() != save.given:
                break
            self.texts, given, held, kept = save.texts, ahead, [], kept + 1
        self._given = given
        if kept < len(self._log.saves):
            behind = f" behind text {self.texts:,}" if self.texts else ""
            self._tell(f"the input is another one{behind} than that of {self.partial}; what follows is made anew")
            with self._told():
                self._cut(kept)
                self._handle.seek(0)
                self._found = self._read_on(hashlib.sha256(), self._size)
        return chain(held, source)

    def add(self, texts: Sequence[str], content: bytes | memoryview) -> None:
        """Take the results of the next texts."""
        with self._told():
            self._files.before("write", self.partial)
            self._files.put(self._handle, memoryview(content))
            self._given.update(b"".join(map(coded, texts)))
            self._found.update(content)
            self._size += len(content)
            self.texts += len(texts)
            if self._now() - self._last >= EVERY:
                self.save()

    def save(self) -> None:
        """Bring what is finished safely to the disk, and say so in the log."""
        self._last = self._now()
        if self.texts == (self._log.saves[-1].texts if self._log.saves else 0):
            return
        self._files.before("fsync", self.partial)
        self._files.sync(self._handle.fileno())
        self._log.append(Save(self.texts, self._size, self._given.hexdigest(), self._found.hexdigest()))

    def finish(self, whole: Whole | None = None) -> None:
        """Put the file in its place.

        Args:
            whole: makes its content; default: the results are its content, one behind the other.
        """
        with self._told():
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
        """Rename what was made; it may be read and written by whom the older file was."""
        if self.path.exists():
            shutil.copymode(self.path, made)
        self._files.rename(made, self.path)
        self._files.fsync_folder(self.path.parent)

    def _begin(self) -> None:
        """Open the partial file, cut behind what is whole; anew where it is of something else."""
        there = self.partial.exists() or self.partial.is_symlink()
        if there and self._log.about is None:
            message = f"is in the way: no {self._log.path.name} says what it is; move it away, or write elsewhere"
            raise RegardError(message, str(self.partial))
        others = [] if self._log.about is None else self._log.others(self._about)
        if others and self._log.saves:
            self._tell(f"{self.partial} was made with other values of {', '.join(others)}; it begins anew")
        if others or self._log.about is None:
            if there:
                self._files.remove(self.partial)
            self._log.begin(self._about)
        self._handle = plain_file(self.partial)
        self._cut(self._whole() if there else 0)

    def _whole(self) -> int:
        """How many saves are of what the partial file really holds."""
        self._handle.seek(0)
        for number, save in enumerate(self._log.saves):
            digest = self._read_on(self._found.copy(), save.size - self._handle.tell())
            if self._handle.tell() != save.size or digest.hexdigest() != save.found:
                self._tell(f"{self.partial} is damaged; what is behind the last save that is whole is made anew")
                return number
            self._found = digest
        return len(self._log.saves)

    def _read_on(self, digest: Any, size: int) -> Any:
        """The digest behind the next bytes of the partial file, as far as there are so many."""
        while size and (piece := self._handle.read(min(PIECE, size))):
            digest.update(piece)
            size -= len(piece)
        return digest

    def _cut(self, kept: int) -> None:
        """Keep so many saves, and the results up to there."""
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
        self._log.close()

    def _told(self) -> contextlib.AbstractContextManager[None]:
        kept = f"what is finished is kept in {self.partial.name}; rerun the same command to resume"
        return told(self.path, f"; {kept}" if self._log.saves else "")


@contextlib.contextmanager
def told(path: Path, more: str = "") -> Iterator[None]:
    """Say in a sentence what the system says of a file.

    Raises:
        RegardError: it cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise RegardError(f"cannot be written: {error.strerror or error}{more}", str(path)) from None


def coded(text: str) -> bytes:
    """A text as bytes that say where it ends, whatever is in it."""
    content = text.encode("utf-8", "surrogatepass")
    return b"%d:%b" % (len(content), content)
