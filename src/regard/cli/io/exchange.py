"""Runs a model over input texts: streamed to stdout, or written to a file atomically and resumably."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

from cyclopts import Parameter

from regard.cli.io.answer_report import AnswerReport
from regard.cli.io.input_texts import NO_LINES, Input, InputTexts, ParallelLines
from regard.cli.io.lines import bursts, chunks, encode_line, number_groups, poll_lines
from regard.cli.io.load_model import check_threads, open_model, refuse_unwritable
from regard.cli.io.terminal import Stop, progress, say
from regard.system import disk
from regard.system.errors import RegardError, Stopped, UsageError
from regard.system.installation import version_of

if TYPE_CHECKING:
    from regard.runs.results_file import Whole
    from regard.runs.workers.processes import Content
    from regard.tasks.protocols import Task

Output = Annotated[
    Path | None,
    Parameter(
        help="write to this file instead of stdout. It is whole or not there; what was stopped or killed resumes "
        "by the same command."
    ),
]
"""An option that names a file of results."""
STDOUT = Path("-")
"""The name of stdout in place of a file."""
DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
NAMED = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
EARLY = "stopped; rerun the same command to resume"
ASKED = "stopping: saving the results so far (a second signal ends it at once)"


class OutputFile:
    """The destination of results.

    Args:
        output: a file, pipe or device; stdout where none is named, or ``-``.
        given: the input texts.
        beside: lines that go with them.

    Raises:
        UsageError: it cannot be written, or is also an input.
    """

    def __init__(self, output: Path | None, given: InputTexts, beside: ParallelLines = NO_LINES) -> None:
        self.path = None if output is None or output == STDOUT else output
        self.file: Path | None = None
        """The path of a regular file; ``None`` if results are streamed."""
        if self.path is None:
            return
        refuse_unwritable(self.path, "--output")
        if descriptor(self.path) is None and (self.path.is_file() or not self.path.exists()):
            self.file = self.path.resolve()
            read = [one for one in (given.stat, beside.stat) if one is not None]
            for path in (self.file.with_name(self.file.name + end) for end in ("", ".partial", ".partial.log")):
                if path.exists() and any(os.path.samestat(one, path.stat()) for one in read):
                    raise UsageError("is the input itself; choose another --output", str(self.path))

    @contextlib.contextmanager
    def stream(self) -> Iterator[BinaryIO]:
        """Open the destination for streaming.

        Raises:
            RegardError: it cannot be written; with its name.
        """
        number = 1 if self.path is None else descriptor(self.path)
        if self.path is None or number == 1:
            with disk.naming("stdout"):
                yield sys.stdout.buffer
            return
        try:
            with open(self.path if number is None else os.dup(number), "wb") as file:
                yield file
        except BrokenPipeError:
            raise
        except OSError as error:
            raise RegardError(f"cannot be written: {error.strerror or error}", str(self.path)) from None


def descriptor(path: Path) -> int | None:
    """The descriptor that a path such as ``/dev/stdout`` stands for."""
    found = DESCRIPTOR.fullmatch(str(path))
    return int(found[1]) if found else NAMED.get(str(path))


Precision = Literal["auto", "fp32", "bf16", "int8"]
"""Type of an option --precision."""


@Parameter(name="*")
@dataclass(frozen=True)
class TextOptions:
    """Options of every command that answers texts.

    Args:
        input: the texts.
        output: where the answers go.
        device: cpu, cuda ...
        threads: processor threads, of the engine for few texts (it uses at most 8); for many it starts as many
            processes of one thread.
        precision: how the engine, which computes without torch, stores weights: fp32, bf16 or int8. auto is fp32; for
            translate and ask it is the fastest that keeps the score, once regard pack has measured the model.
        processes: that answer many texts, each with one thread; the output does not depend on how many. Default: as
            many as there are free cores for a file, and two at least; one for arguments, a pipe, and where --threads
            is given.
    """

    input: Input = None
    output: Output = None
    device: str | None = None
    threads: int | None = None
    precision: Precision = "auto"
    processes: int | None = None


NO_OPTIONS = TextOptions()


class Exchange:
    """Reads texts, runs a model and writes results; as a context manager, it lets a signal stop writing to a file.

    Args:
        command: its name.
        folder: of the model.
        texts: arguments, each a text.
        given: where texts come from and answers go, and what the model runs on.
        options: those on which the results depend, by name.
        beside: a line that goes with each text.
    """

    def __init__(
        self,
        command: str,
        folder: Path,
        texts: Sequence[str],
        given: TextOptions,
        options: Mapping[str, object],
        beside: ParallelLines = NO_LINES,
    ) -> None:
        self.command, self.folder, self._options = command, folder, given
        self.given, self._beside = InputTexts(texts, given.input), beside
        self.target = OutputFile(given.output, self.given, beside)
        self._about: dict[str, object] = {"command": command, **options, **beside.about}
        self._stop = Stop(EARLY, ASKED)
        self._in_blocks = self.given.steady or (given.processes or 1) > 1
        """Whether texts wait until many are there, instead of being answered as they arrive."""
        self.report = AnswerReport(None, self.given.by_hand)
        """What is told of texts beside their answers, where ``answer`` adds to it."""

    def __enter__(self) -> Exchange:
        if self.target.file is not None:
            self._stop.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.__exit__(*error)

    def open_model(self) -> Task:
        """Load the model's task."""
        asked = self._options
        check_threads(asked.processes, "--processes")
        from regard import __version__
        from regard.tasks.model_path import fingerprint

        model = fingerprint(self.folder)  # before loading, in case the model is replaced meanwhile
        self._task = task = open_model(self.folder, asked.device, asked.threads, self.command, asked.precision)
        self.given.rows = task.info.reads == "image"
        by_engine = task.engine is not None
        self._about |= {"model": model, "device": task.device_name, "--threads": asked.threads, "regard": __version__}
        self._about |= {"engine": by_engine, "precision": task.precision if by_engine else "fp32"}
        return task

    def reuse(self, other: Exchange) -> None:
        """Answer with the model that another exchange opened."""
        self._task, self._about = other._task, {**other._about, **self._about}

    def open_beside(self, option: str, path: Path) -> Task:
        """Load another model for the same command, which an option names."""
        from regard.tasks.model_path import fingerprint

        asked = self._options
        self._about[f"{option} {path}"] = fingerprint(path)
        return open_model(path, asked.device, asked.threads, self.command, asked.precision)

    def answer(
        self, answer: Callable[[list[str], int], Iterable[str]], joined: Callable[[Iterator[str]], Iterator[str]] = iter
    ) -> None:
        """Write the answer to each text; a complete input is answered in chunks, another as it arrives.

        Args:
            answer: from texts and the number of the first (from 1) to the lines to write.
            joined: merges lines that are answered together; default: none.
        """
        if self.target.file is not None:
            self.keep(lambda texts, first: b"".join(map(encode_line, answer(texts, first))), joined)
            return
        count = 0
        with self.target.stream() as stream:
            texts = joined(self.given.lines())
            grouped = chunks(texts) if self._in_blocks else bursts(texts)
            with self._answers(lambda *of: b"".join(map(encode_line, answer(*of))), grouped) as answered:
                for group, first, found in answered:
                    for part in map(encode_line, answer(group, first)) if found is None else [found]:
                        stream.write(part)
                    stream.flush()
                    self.report.close_group(len(group))
                    count += len(group)
        self.given.tell_invalid()
        self._beside.tell_left(count)
        self.report.tell_all()

    @contextlib.contextmanager
    def _answers(
        self, content: Content, groups: Iterable[list[str]], first: int = 1
    ) -> Iterator[Iterator[tuple[list[str], int, bytes | None]]]:
        """Groups of texts, the number of the first of each, and their answers by other processes.

        One process answers where texts are answered as they arrive; of what it answers itself there is ``None``.
        """
        from regard.runs.workers.processes import answer_groups, answer_processes

        asked, threads = self._options.processes, self._options.threads
        if self._task.engine is not None:  # each process has one thread
            asked, threads = asked or threads, None
        processes = partial(answer_processes, asked, threads, self._task.device_name) if self._in_blocks else None

        def pack(texts: list[str], first: int) -> bytes:
            """Answers of another process, with its notes."""
            return self.report.pack(content(texts, first))

        with contextlib.closing(answer_groups(pack, number_groups(groups, first), processes)) as answered:
            yield (
                (texts, first, None if found is None else self.report.unpack(found)) for texts, first, found in answered
            )

    def keep(
        self, content: Content, joined: Callable[[Iterator[str]], Iterator[str]] = iter, whole: Whole | None = None
    ) -> None:
        """Like :meth:`answer`, but for bytes, written as a whole.

        Args:
            content: from texts and the number of the first (from 1) to the bytes to keep.
            joined: as for :meth:`answer`.
            whole: builds the file from all that was kept; default: unchanged.
        """
        lines = self.given.lines()
        if self.target.file is None:
            with self._answers(content, chunks(joined(lines))) as answered:
                found = b"".join(content(group, first) if out is None else out for group, first, out in answered)
            with self.target.stream() as stream:
                stream.write(found if whole is None else whole(BytesIO(found)))
        else:
            texts = joined(lines if self.given.steady else poll_lines(lines, self._check))
            self.make(content, texts, chunks, whole)
        self.given.tell_invalid()

    def make(
        self,
        content: Content,
        texts: Iterable[str],
        grouped: Callable[[Iterable[str]], Iterable[list[str]]],
        whole: Whole | None = None,
    ) -> None:
        """Like :meth:`keep`, for texts in groups that are answered together.

        Raises:
            Stopped: a signal requested it; finished results are saved.
        """
        from regard.runs.results_file import ResultsFile

        assert self.target.file is not None
        with ResultsFile(self.target.file, {**self._about, "torch": version_of("torch")}, say) as results:
            rest = results.rest(texts)
            if results.texts:
                say(f"{self.target.path}: resuming after text {results.texts:,}")
                self.report.before = results.texts
            count = results.texts
            with (
                progress(count, self.given.share_of(count)) as shown,
                self._answers(content, grouped(rest), count + 1) as answered,
            ):
                for group, first, found in answered:
                    self._check()
                    results.add(group, content(group, first) if found is None else found)
                    shown.add(len(group), self.given.share_of(count + len(group)))
                    self.report.close_group(len(group))
                    count += len(group)
            results.finish(whole)
        self._beside.tell_left(count)
        self.report.tell_all()
        say(f"wrote {self.target.path}")

    def _check(self) -> None:
        """Raise if a signal requested a stop.

        Raises:
            Stopped: it did.
        """
        if self._stop():
            raise Stopped(EARLY, str(self.target.path))
