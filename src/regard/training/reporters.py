"""Progress reporters on stderr: a bar on a terminal, a live line in a notebook, plain lines elsewhere.

Importing this loads no torch, so the command line can print at once.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from regard.text.counts import clock, counted
from regard.text.terminal import crop, visible
from regard.training.log import Reporter, Start, StepMetrics, Summary

if TYPE_CHECKING:
    from regard.training.objective import Validation

EVERY = 10.0
"""Seconds between two plain lines."""
SAMPLES = 2
"""Sample translations shown at a validation."""


def format_parameters(count: int) -> str:
    """How many parameters, in millions where there are so many."""
    return f"{count / 1e6:.1f} million parameters" if count >= 100_000 else f"{count:,} parameters"


def scores(step: int, validation: Validation, best: bool) -> str:
    """A validation in one line."""
    from regard.training.objective import format_score

    parts = [f"step {step:,}: validation loss {validation.loss:.3f}"]
    parts += [format_score(name, value) for name, value in validation.scores.items()]
    searched = f" ({validation.searched})" if validation.searched else ""
    return ", ".join(parts) + searched + (" (best so far, saved)" if best else "")


def one_line(text: str) -> str:
    """A sentence on one harmless line."""
    return crop(visible(text), 100) if text else "(nothing)"


class StepRate:
    """Speed and time left, from the steps seen since the start; smoothed, so that it can be read."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.first_step, self.steps = 0, 0
        self.begun = now()
        self.tokens_per_second = 0.0
        self.loss = 0.0

    def start(self, start: Start) -> None:
        """The run starts or resumes at a step."""
        self.first_step, self.steps, self.begun = start.step, start.steps or 0, self.now()
        self.tokens_per_second = self.loss = 0.0

    def step(self, metrics: StepMetrics) -> None:
        """One update is done."""
        if not self.first_step:  # the first steps of a run may be done before it is reported
            self.begun = self.now() - metrics.seconds
        young = self.tokens_per_second == 0.0
        keep = 0.0 if young else 0.95
        self.tokens_per_second = keep * self.tokens_per_second + (1 - keep) * metrics.tokens_per_second
        if not metrics.skipped:
            self.loss = keep * self.loss + (1 - keep) * metrics.loss

    def seconds_left(self, step: int) -> float | None:
        """Seconds to the last step, validations included; unknown at first."""
        made = step - self.first_step
        if not self.steps or made < 5:
            return None
        return (self.now() - self.begun) / made * (self.steps - step)

    def line(self, step: int) -> str:
        """All of it in one line."""
        left = self.seconds_left(step)
        of = f"/{self.steps:,}" if self.steps else ""
        remaining = "" if left is None else f", {clock(left)} left"
        return f"step {step:,}{of}: loss {self.loss:.3f}, {self.tokens_per_second:,.0f} tokens/s{remaining}"


class LineReporter(Reporter):
    """A reporter for a pipe or a log file: a plain line every ten seconds, and each validation."""

    def __init__(self, stream: TextIO, every: float = EVERY, now: Callable[[], float] = time.monotonic) -> None:
        self.stream, self.every, self.now = stream, every, now
        self.pace, self.introduced, self.started = StepRate(now), False, False
        self.said, self.searched = now(), ""
        self.watch = ""
        """A command that shows the run while it goes on, told after its first validation."""

    def write(self, text: str, style: str | None = None) -> None:
        """One line, at once; a terminal shows it in this style."""
        self.put(f"{text}\n")

    def put(self, text: str) -> None:
        """Write text immediately; if nobody reads it any more, training continues."""
        with contextlib.suppress(OSError, ValueError):
            self.stream.write(text)
            self.stream.flush()

    def pass_on(self, line: str) -> None:
        """Print progress."""
        self.write(line)

    def on_start(self, start: Start) -> None:
        """Print the size of the run."""
        self.pace.start(start)
        again = "going on" if self.started else "resuming"  # re-planned, in the same run
        verb, self.started = f"{again} from step {start.step:,}" if start.step else "training", True
        many = f"{' of' if start.step else ''} {counted(start.steps, 'step')}" if start.steps else ""
        size = format_parameters(start.parameters) + (f", up to {start.tokens:,} tokens a step" if start.tokens else "")
        self.write(f"{verb}{many}: {size}")

    def on_step(self, metrics: StepMetrics) -> None:
        """Print progress, now and then."""
        self.pace.step(metrics)
        if self.now() - self.said >= self.every:
            self.said = self.now()
            self.pass_on(self.pace.line(metrics.step))

    def on_validation(self, step: int, validation: Validation, best: bool) -> None:
        """Show scores and samples."""
        self.searched = validation.searched or self.searched
        self.write(scores(step, validation, best), "bold")
        for sample in validation.samples[:SAMPLES]:
            if not self.introduced:
                self.write(f"    {one_line(sample.source)}", "dim")
                self.write(f"  = {one_line(sample.reference)}", "dim")
            self.write(f"  > {one_line(sample.hypothesis)}", "green")
        if self.watch and not self.introduced:
            self.write(f"watch it learn, in another terminal: {self.watch}", "yellow")
        self.introduced = True

    def on_event(self, text: str) -> None:
        """Pass on what happened."""
        self.write(visible(text), "yellow")

    def on_end(self, summary: Summary) -> None:
        """Print the summary."""
        best = skipped = ""
        if summary.best_step:
            of = f", {self.searched}" if self.searched and summary.best_metric != "loss" else ""
            best = f"; best at step {summary.best_step:,} ({summary.best_metric} {summary.best_value:.3f}{of})"
        if summary.skipped:
            skipped = f"; {counted(summary.skipped, 'update')} skipped"
        self.write(
            f"{summary.reason}: {counted(summary.step, 'step')} in {clock(summary.seconds)}{best}{skipped}", "bold"
        )


class NotebookReporter(LineReporter):
    """A reporter for a notebook: how it goes is one line, written over twice a second; the rest stays above it."""

    def __init__(self, stream: TextIO, every: float = 0.5, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream, every, now)
        self.there = 0

    def write(self, text: str, style: str | None = None) -> None:
        """A line that stays, in the place of the one that does not."""
        self.pass_on(text)
        self.put("\n")
        self.there = 0

    def pass_on(self, line: str) -> None:
        """Write over the line that is there."""
        self.put(f"\r{line.ljust(self.there)}")
        self.there = len(line)


class BarReporter(LineReporter):
    """A reporter for a terminal: one live line below, validations scroll away above it."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        super().__init__(stream)
        self.console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self.progress = Progress(
            BarColumn(bar_width=None),
            TextColumn("{task.description}", markup=False),
            console=self.console,
            expand=True,
            refresh_per_second=4,
        )
        self.task = self.progress.add_task("preparing", total=None)
        self.running = False

    def write(self, text: str, style: str | None = None) -> None:
        """A line above the bar."""
        self.console.print(text, style=style, soft_wrap=True)

    def on_start(self, start: Start) -> None:
        """Print the size of the run."""
        super().on_start(start)
        self.running = True
        self.progress.update(self.task, total=start.steps, completed=start.step)

    def on_measure(self, share: float) -> None:
        """Move the bar."""
        self.progress.update(self.task, total=1.0, completed=share)

    def on_step(self, metrics: StepMetrics) -> None:
        """Move the bar."""
        self.pace.step(metrics)
        self.progress.update(self.task, completed=metrics.step, description=self.pace.line(metrics.step))

    def on_event(self, text: str) -> None:
        """Pass on what happened."""
        super().on_event(text)
        if not self.running:  # before and after the steps the bar shows the stage
            self.progress.update(self.task, description=crop(visible(text), 60))

    def on_end(self, summary: Summary) -> None:
        """Print the summary."""
        self.running = False
        super().on_end(summary)


@contextmanager
def reporter(stream: TextIO | None = None, watch: str = "") -> Iterator[Reporter]:
    """The reporter for stderr: a bar on a terminal, a line in a notebook, lines on a pipe, none without it.

    Args:
        stream: instead of stderr.
        watch: the command that shows the run while it goes on.
    """
    stream = stream or sys.stderr
    if stream is None:  # a program without a console
        yield Reporter()
        return
    bar = not in_notebook() and stream.isatty()
    shown = BarReporter(stream) if bar else NotebookReporter(stream) if in_notebook() else LineReporter(stream)
    shown.watch = watch
    with shown.progress if isinstance(shown, BarReporter) else contextlib.nullcontext():
        yield shown


def in_notebook() -> bool:
    """Whether this runs in the kernel of a Jupyter notebook, or of one like it."""
    asked = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = (asked() if asked else None).__class__
    return shell.__name__ == "ZMQInteractiveShell" or shell.__module__.startswith("google.colab")
