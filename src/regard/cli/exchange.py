"""Texts in, results out: straight away, or into a file that is there whole or not at all and can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from regard.cli.given import Given
from regard.cli.lines import answer_each, chunks, numbered, watched, written
from regard.cli.opening import IMAGES
from regard.cli.signals import Stop
from regard.cli.target import Target
from regard.errors import Stopped

if TYPE_CHECKING:
    from regard.tasks.results_file import Whole

EARLY = "stopped; rerun the same command to resume"
ASKED = "stopping: saving the results so far (a second signal ends it at once)"


class Exchange:
    """What a command reads and writes, and the model between; while inside, a signal stops what goes into a file.

    Args:
        command: its name.
        folder: of the model.
        given: where the texts come from.
        target: where results go.
        options: on which the results depend, by name.
    """

    def __init__(self, command: str, folder: Path, given: Given, target: Target, options: Mapping[str, Any]) -> None:
        self.command, self.folder = command, folder
        self.given, self.target = given, target
        self._about: dict[str, Any] = {"command": command, **options}
        self._stop, self._stack = Stop(EARLY, ASKED), ExitStack()

    def __enter__(self) -> Exchange:
        if self.target.file is not None:
            self._stack.enter_context(self._stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def opened(self, device: str | None, threads: int | None) -> Any:
        """The model's task."""
        from regard import __version__
        from regard.cli.opening import opened
        from regard.tasks.model_folder import fingerprint

        model = fingerprint(self.folder)  # before it is read: a newer one would then be known as another
        task = opened(self.folder, device, threads, self.command)
        self.given.rows = task.name == IMAGES
        self._about |= {"model": model, "device": str(getattr(task, "device", None)), "--threads": threads}
        self._about |= {"regard": __version__, "torch": version("torch")}
        return task

    def answer(
        self,
        answer: Callable[[list[str], int], Iterable[str]],
        joined: Callable[[Iterator[str]], Iterator[str]] = iter,
    ) -> None:
        """Write what is answered to each text.

        Args:
            answer: of some texts, and the number of the first of them (from 1), the lines to be written.
            joined: makes one of lines that are to be answered together; default: none are.
        """
        if self.target.file is None:
            answer_each(answer, self.given, self.target, joined)
        else:
            self.keep(lambda texts, first: b"".join(map(written, answer(texts, first))), joined)

    def keep(
        self,
        content: Callable[[list[str], int], bytes | memoryview],
        joined: Callable[[Iterator[str]], Iterator[str]] = iter,
        whole: Whole | None = None,
    ) -> None:
        """As :meth:`answer`, of what is bytes, and written whole.

        Args:
            content: of some texts, and the number of the first of them (from 1), what is kept of them.
            joined: as for :meth:`answer`.
            whole: makes the file of all that was kept; default: that is the file.
        """
        from regard.cli.terminal import say_mended
        from regard.text.lines import Notes

        notes = Notes()
        lines = self.given.lines(notes)
        if self.target.file is None:
            found = b"".join(content(*one) for one in numbered(chunks(joined(lines))))
            with self.target.stream() as stream:
                stream.write(found if whole is None else whole(BytesIO(found)))
        else:
            self.make(content, joined(lines if self.given.steady else watched(lines, self._check)), chunks, whole)
        say_mended(self.given.name, notes)

    def make(
        self,
        content: Callable[[list[str], int], bytes | memoryview],
        texts: Iterable[str],
        grouped: Callable[[Iterable[str]], Iterable[list[str]]],
        whole: Whole | None = None,
    ) -> None:
        """As :meth:`keep`, of texts in groups, each of which is answered at once.

        Raises:
            Stopped: a signal asked for it; what is finished is saved.
        """
        from regard.cli.tally import tally
        from regard.cli.terminal import say
        from regard.tasks.results_file import ResultsFile

        assert self.target.file is not None
        with ResultsFile(self.target.file, self._about, say) as results:
            rest = results.rest(texts)
            if results.texts:
                say(f"{self.target.path}: going on behind text {results.texts:,}")
            with tally(results.texts, self.given.share) as shown:
                for group in grouped(rest):
                    self._check()
                    results.add(group, content(group, results.texts + 1))
                    shown.add(len(group), self.given.share)
            results.finish(whole)
        say(f"wrote {self.target.path}")

    def _check(self) -> None:
        """Stop, where a signal asked for it.

        Raises:
            Stopped: it did.
        """
        if self._stop():
            raise Stopped("stopped; rerun the same command to resume", str(self.target.path))
