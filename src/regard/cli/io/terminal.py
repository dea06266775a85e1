"""The terminal: results to stdout; messages, progress and colours; and signals, the first of which requests a stop."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

from regard.system import disk
from regard.system.errors import Stopped
from regard.system.interrupts import SIGNALS, end
from regard.text.counts import clock, counted

if TYPE_CHECKING:
    from regard.inspection.pictures.terminal_heatmap import Colours, ColourScheme
    from regard.text.lines import InvalidLines

PATIENCE = 2.0
"""Seconds before a bar appears."""
EARLY = "stopped before the first step; rerun the same command to resume"
ASKED = "stopping: saving after this step (a second signal ends it at once)"
"""What is said to the first signal: before there is anything to save, and later."""


def result(text: str) -> None:
    """Write a result, a line or several, to stdout."""
    with disk.naming("stdout"):
        sys.stdout.write(text if text.endswith("\n") else text + "\n")


def result_json(value: object) -> None:
    """Write one JSON object on one line to stdout."""
    result(json.dumps(value, ensure_ascii=False, allow_nan=False))


def say(text: str) -> None:
    """Print a message to stderr; control characters, e.g. in file names, are escaped."""
    safe = "".join(f"\\x{ord(c):02x}" if c < " " or "\x7f" <= c < "\xa0" else c for c in text)
    print(f"regard: {safe}\n", end="", file=sys.stderr, flush=True)  # one write, because other threads may print too


def say_at_once(text: str) -> None:
    """Like :func:`say`, but safe in a signal handler, where the stream may be in the middle of a write."""
    with contextlib.suppress(OSError):
        os.write(2, f"regard: {text}\n".encode())


def say_invalid_lines(name: str, notes: InvalidLines) -> None:
    """Report the invalid UTF-8 lines of an input, if any."""
    if notes.invalid:
        more = ", ..." if notes.invalid > len(notes.invalid_lines) else ""
        places = ", ".join(map(str, notes.invalid_lines)) + more
        lines = f"{counted(notes.invalid, 'line')} {'was' if notes.invalid == 1 else 'were'}"
        say(f"{name}: {lines} not valid UTF-8 and had bytes replaced: {places}")


def colour_scheme(stream: TextIO | None = None) -> ColourScheme:
    """The colours of the stream's terminal; none for a pipe or with ``NO_COLOR``."""
    from regard.inspection.pictures.terminal_heatmap import ColourScheme

    stream = stream or sys.stdout
    encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "")
    columns = max(shutil.get_terminal_size((80, 24)).columns, 20)
    return ColourScheme(_colours(stream), encoding.startswith("utf"), columns)


def _colours(stream: TextIO) -> Colours:
    forced = os.environ.get("FORCE_COLOR", "0") not in ("", "0")
    term = os.environ.get("TERM", "")
    if os.environ.get("NO_COLOR") or not (forced or (stream.isatty() and term not in ("", "dumb"))):
        return "none"
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or term.endswith("-direct"):
        return "true"
    return "256" if "256" in term else "16"


class ProgressLines:
    """Prints a line every ten seconds; nothing for a shorter job.

    Args:
        done: texts answered earlier.
        share: fraction of the input that was read, if known.
        now: the time in seconds.
    """

    every = 10.0
    """Seconds between two lines."""

    def __init__(self, done: int = 0, share: float | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self.done, self.share = done, share
        self._first, self._before, self._now = done, share, now
        self._begun = self._said = now()

    def add(self, texts: int, share: float | None = None) -> None:
        """Count further answered texts, and update the fraction of the input read."""
        self.done, self.share = self.done + texts, share
        if self._now() - self._said >= self.every:
            self._said = self._now()
            self.show()

    def show(self) -> None:
        """Print the progress."""
        say(self.line())

    def line(self) -> str:
        """The progress as one line."""
        passed = max(self._now() - self._begun, 1e-9)
        pace = (self.done - self._first) / passed
        words = f"{counted(self.done, 'text')}, {pace:,.{1 if pace < 10 else 0}f} a second"
        if self.share is None or self._before is None or self.share <= self._before:
            return words
        left = passed / (self.share - self._before) * (1 - self.share)
        return f"{words}; {self.share:.0%} of the input, {clock(left)} left"


class ProgressBar(ProgressLines):
    """A live progress bar; it appears after two seconds and is removed at the end."""

    every = 0.25

    def __init__(
        self, stream: TextIO, done: int = 0, share: float | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        super().__init__(done, share, now)
        console = Console(file=stream, highlight=False, markup=False, emoji=False)
        columns = BarColumn(bar_width=None), TextColumn("{task.description}", markup=False)
        self.progress = Progress(*columns, console=console, expand=True, refresh_per_second=4, transient=True)
        self._task = self.progress.add_task("", total=None)

    def show(self) -> None:
        """Update the bar."""
        if not self.progress.live.is_started:
            if self._now() - self._begun < PATIENCE:
                return
            self.progress.start()
        total = None if self.share is None else 1.0
        self.progress.update(self._task, total=total, completed=self.share or 0.0, description=self.line())


@contextlib.contextmanager
def progress(done: int = 0, share: float | None = None, stream: TextIO | None = None) -> Iterator[ProgressLines]:
    """The progress display that suits stderr.

    Args:
        done: texts answered earlier.
        share: fraction of the input that was read, if known.
        stream: default: stderr.
    """
    stream = stream or sys.stderr
    if not stream.isatty():
        yield ProgressLines(done, share)
        return
    bar = ProgressBar(stream, done, share)
    try:
        yield bar
    finally:
        bar.progress.stop()


class Stop:
    """As a context manager: the first signal sets a flag, read by calling; the second ends the process at once.

    Before anybody has asked, no step was made that could be saved: then the first ends it too, as stopped. Ending at
    once is safe: whatever is being written is not yet in its place.

    Args:
        early: what is said where nothing can be saved yet.
        asked: what is said while the last step is made.
    """

    def __init__(self, early: str = EARLY, asked: str = ASKED) -> None:
        self._early, self._said = early, asked
        self.asked = False
        self.polled = False
        self._former: dict[int, Any] = {}

    def __call__(self) -> bool:
        self.polled = True
        return self.asked

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            # A shell has its background jobs ignore SIGINT.
            heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
            self._former = {number: signal.signal(number, self._handle) for number in heard}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.asked = True
        if not self.polled:
            say_at_once(self._early)
            end(SystemExit(Stopped.exit_code), frame, Stopped.exit_code)
        say_at_once(self._said)
