"""Runs a model over input texts: streamed to stdout, or written to a file atomically and resumably."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from regard.cli.io.input_texts import InputTexts
from regard.cli.io.lines import answer_each, chunks, encode_line, number_groups, poll_lines
from regard.cli.io.load_model import IMAGES
from regard.cli.io.output_file import OutputFile
from regard.cli.io.signals import Stop
from regard.system.errors import Stopped

if TYPE_CHECKING:
    from regard.runs.results_file import Whole

EARLY = "stopped; rerun the same command to resume"
ASKED = "stopping: saving the results so far (a second signal ends it at once)"


class Exchange:
    """Reads texts, runs a model and writes results; as a context manager, it lets a signal stop writing to a file.

    Args:
        command: its name.
        folder: of the model.
        given: the input texts.
        target: the output.
        options: those on which the results depend, by name.
    """

    def __init__(
        self, command: str, folder: Path, given: InputTexts, target: OutputFile, options: Mapping[str, Any]
    ) -> None:
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

    def open_model(self, device: str | None, threads: int | None) -> Any:
        """Load the model's task."""
        from regard import __version__
        from regard.cli.io.load_model import open_model
        from regard.tasks.model_path import fingerprint

        model = fingerprint(self.folder)  # before loading, in case the model is replaced meanwhile
        task = open_model(self.folder, device, threads, self.command)
        self.given.rows = task.name == IMAGES
        self._about |= {"model": model, "device": str(getattr(task, "device", None)), "--threads": threads}
        self._about |= {"regard": __version__, "torch": version("torch")}
        return task

    def answer(
        self,
        answer: Callable[[list[str], int], Iterable[str]],
        joined: Callable[[Iterator[str]], Iterator[str]] = iter,
    ) -> None:
        """Write the answer to each text.

        Args:
            answer: from texts and the number of the first (from 1) to the lines to write.
            joined: merges lines that are answered together; default: none.
        """
        if self.target.file is None:
            answer_each(answer, self.given, self.target, joined)
        else:
            self.keep(lambda texts, first: b"".join(map(encode_line, answer(texts, first))), joined)

    def keep(
        self,
        content: Callable[[list[str], int], bytes | memoryview],
        joined: Callable[[Iterator[str]], Iterator[str]] = iter,
        whole: Whole | None = None,
    ) -> None:
        """Like :meth:`answer`, but for bytes, written as a whole.

        Args:
            content: from texts and the number of the first (from 1) to the bytes to keep.
            joined: as for :meth:`answer`.
            whole: builds the file from all that was kept; default: unchanged.
        """
        from regard.cli.io.terminal import say_invalid_lines
        from regard.text.lines import InvalidLines

        notes = InvalidLines()
        lines = self.given.lines(notes)
        if self.target.file is None:
            found = b"".join(content(*one) for one in number_groups(chunks(joined(lines))))
            with self.target.stream() as stream:
                stream.write(found if whole is None else whole(BytesIO(found)))
        else:
            self.make(content, joined(lines if self.given.steady else poll_lines(lines, self._check)), chunks, whole)
        say_invalid_lines(self.given.name, notes)

    def make(
        self,
        content: Callable[[list[str], int], bytes | memoryview],
        texts: Iterable[str],
        grouped: Callable[[Iterable[str]], Iterable[list[str]]],
        whole: Whole | None = None,
    ) -> None:
        """Like :meth:`keep`, for texts in groups that are answered together.

        Raises:
            Stopped: a signal requested it; finished results are saved.
        """
        from regard.cli.io.progress import progress
        from regard.cli.io.terminal import say
        from regard.runs.results_file import ResultsFile

        assert self.target.file is not None
        with ResultsFile(self.target.file, self._about, say) as results:
            rest = results.rest(texts)
            if results.texts:
                say(f"{self.target.path}: resuming after text {results.texts:,}")
            with progress(results.texts, self.given.share) as shown:
                for group in grouped(rest):
                    self._check()
                    results.add(group, content(group, results.texts + 1))
                    shown.add(len(group), self.given.share)
            results.finish(whole)
        say(f"wrote {self.target.path}")

    def _check(self) -> None:
        """Raise if a signal requested a stop.

        Raises:
            Stopped: it did.
        """
        if self._stop():
            raise Stopped("stopped; rerun the same command to resume", str(self.target.path))
