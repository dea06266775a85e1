"""Progress on stderr: a bar on a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from regard.cli.io.terminal import say
from regard.training.reporters import EVERY, clock

PATIENCE = 2.0
"""Seconds before a bar appears."""


class ProgressLines:
    """Prints a line every ten seconds; nothing for a shorter job.

    Args:
        done: texts answered earlier.
        share: fraction of the input that was read, if known.
        now: the time in seconds.
    """

    every = EVERY

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
        words = f"{self.done:,} texts, {pace:,.{1 if pace < 10 else 0}f} a second"
        if self.share is None or self._before is None or self.share <= self._before:
            return words
        left = passed / (self.share - self._before) * (1 - self.share)
        return f"{words}; {self.share:.0%} of the input, {clock(left)} left"


class ProgressBar(ProgressLines):
    """A live progress bar; it appears after two seconds and is removed at the end."""

    every = 0.25

    def __init__(
        self,
        stream: TextIO,
        done: int = 0,
        share: float | None = None,
        now: Callable[[], float] = time.monotonic,
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


@contextmanager
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
