"""How many texts are answered, and how fast, for a person who waits: a bar on a terminal, plain lines on a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from regard.cli.terminal import say
from regard.training.reporters import EVERY, clock

PATIENCE = 2.0
"""Seconds before a bar appears."""


class Tally:
    """Says a line every ten seconds; nothing of what is done sooner.

    Args:
        done: texts that were answered before.
        share: of the input that is read, from 0 to 1, where it is known.
        now: the time in seconds.
    """

    every = EVERY

    def __init__(self, done: int = 0, share: float | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self.done, self.share = done, share
        self._first, self._before, self._now = done, share, now
        self._begun = self._said = now()

    def add(self, texts: int, share: float | None = None) -> None:
        """So many more are answered, and so much is read."""
        self.done, self.share = self.done + texts, share
        if self._now() - self._said >= self.every:
            self._said = self._now()
            self.show()

    def show(self) -> None:
        """Say how it goes."""
        say(self.line())

    def line(self) -> str:
        """All of it in one line."""
        passed = max(self._now() - self._begun, 1e-9)
        pace = (self.done - self._first) / passed
        words = f"{self.done:,} texts, {pace:,.{1 if pace < 10 else 0}f} a second"
        if self.share is None or self._before is None or self.share <= self._before:
            return words
        left = passed / (self.share - self._before) * (1 - self.share)
        return f"{words}; {self.share:.0%} of the input, {clock(left)} left"


class Bar(Tally):
    """Shows a live line; it appears after two seconds and goes in the end."""

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
        """Move the bar."""
        if not self.progress.live.is_started:
            if self._now() - self._begun < PATIENCE:
                return
            self.progress.start()
        total = None if self.share is None else 1.0
        self.progress.update(self._task, total=total, completed=self.share or 0.0, description=self.line())


@contextmanager
def tally(done: int = 0, share: float | None = None, stream: TextIO | None = None) -> Iterator[Tally]:
    """What suits stderr.

    Args:
        done: texts that were answered before.
        share: of the input that is read, where it is known.
        stream: default: stderr.
    """
    stream = stream or sys.stderr
    if not stream.isatty():
        yield Tally(done, share)
        return
    bar = Bar(stream, done, share)
    try:
        yield bar
    finally:
        bar.progress.stop()
