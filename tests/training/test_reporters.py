"""What a person sees of a run: plain lines on a pipe, a bar on a terminal, nothing that could steer it."""

import io
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from regard.training import reporters
from regard.training.log import Reporter, Start, StepMetrics, Summary
from regard.training.objective import Sample, Validation
from regard.training.reporters import BarReporter, LineReporter, NotebookReporter, StepRate, in_notebook, reporter
from tests.training.timed import Clock


def metrics(step: int, loss: float = 2.0, skipped: bool = False) -> StepMetrics:
    return StepMetrics(
        step=step, seconds=step / 2, loss=loss, nll=loss, rate=1e-3, tokens=900, tokens_per_second=900.0, fill=0.99,
        norm=1.0, skipped=skipped,
    )  # fmt: skip


START = Start(step=0, steps=100, parameters=2_600_000, tokens=1024, validate_every=50)
VALIDATION = Validation(1.5, {"bleu": 33.21}, tuple(Sample(f"s{i}", f"r{i}", "h\x1b[2J[red]") for i in range(5)))
SUMMARY = Summary(100, 125.0, 50, "bleu", 33.21, 2, "all steps done")


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0 s"), (59.4, "59 s"), (59.6, "1:00"), (200, "3:20"), (3729, "1:02:09"), (-5, "0 s")]
)
def test_durations_read_well(seconds: float, shown: str) -> None:
    assert reporters.clock(seconds) == shown


def test_time_left_follows_the_steps_made_since_the_start() -> None:
    now = Clock()
    pace = StepRate(now)
    pace.start(Start(40, 100, 1, 1, 1))
    assert pace.seconds_left(40) is None
    now.now += 20
    pace.step(metrics(50))
    assert pace.seconds_left(50) == pytest.approx(100)  # ten steps in twenty seconds, fifty to go
    assert "1:40 left" in pace.line(50)
    pace.start(Start(0, None, 1, 1, 1))
    assert pace.seconds_left(50) is None
    pace.step(metrics(51))
    pace.step(metrics(52, float("nan"), skipped=True))
    assert pace.loss == 2.0, "a skipped update does not spoil the loss"


def test_lines_come_every_ten_seconds() -> None:
    stream, now = io.StringIO(), Clock()
    shown = LineReporter(stream, every=10, now=now)
    shown.on_start(START)
    for step in range(1, 101):
        now.now += 0.5
        shown.on_step(metrics(step))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "training 100 steps: 2.6 million parameters, up to 1,024 tokens a step"
    assert len(lines) == 1 + 5
    assert lines[1] == "step 20/100: loss 2.000, 900 tokens/s, 40 s left"


def test_validations_show_scores_and_samples() -> None:
    stream = io.StringIO()
    shown = LineReporter(stream)
    shown.on_validation(50, VALIDATION, True)
    shown.on_event("careful")
    shown.on_save(Path("checkpoint"))
    shown.on_end(SUMMARY)
    text = stream.getvalue()
    assert "step 50: validation loss 1.500, BLEU 33.2 (best so far, saved)" in text
    assert text.count("  > ") == 2
    assert "\x1b" not in text
    assert "careful" in text
    shown.on_validation(5, Validation(0.2, {"pearson": 0.8974, "f1": 89.74}, ()), False)
    assert "pearson 0.897, F1 89.7" in stream.getvalue(), "a correlation has three decimals"
    assert "all steps done: 100 steps in 2:05; best at step 50 (bleu 33.210); 2 updates skipped" in text
    shown.on_validation(5, replace(VALIDATION, searched="500 of the 1,014 validation pairs, greedy"), False)
    shown.on_end(SUMMARY)
    assert "best at step 50 (bleu 33.210, 500 of the 1,014 validation pairs, greedy)" in stream.getvalue()


def test_the_command_that_shows_it_is_told_once_after_the_first_validation() -> None:
    stream = io.StringIO()
    with reporter(stream, watch="regard explore demo") as shown:
        assert "explore" not in stream.getvalue()
        for step in (50, 100):
            shown.on_validation(step, VALIDATION, True)
    assert stream.getvalue().count("watch it learn, in another terminal: regard explore demo") == 1


def test_the_bar_moves_while_it_measures() -> None:
    shown = BarReporter(io.StringIO())
    shown.on_event("measuring how fast this machine is")
    shown.on_measure(0.25)
    (task,) = shown.progress.tasks
    assert (task.completed, task.total, task.description) == (0.25, 1.0, "measuring how fast this machine is")
    shown.on_start(START)
    assert (task.completed, task.total) == (0, 100)


def test_the_bar_shows_the_same() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with reporter(stream) as shown:
        assert isinstance(shown, BarReporter)
        shown.on_start(START)
        for step in range(1, 101):
            shown.on_step(metrics(step))
        shown.on_validation(100, VALIDATION, False)
        shown.on_end(SUMMARY)
    text = stream.getvalue()
    assert "step 100/100: loss 2.000" in text
    assert "validation loss 1.500, BLEU 33.2" in text
    assert "h␛[2J[red]" in text  # neither the terminal nor the bar's own markup reads it
    assert "all steps done" in text


@pytest.mark.parametrize(
    ("shell", "found"),
    [("ZMQInteractiveShell", NotebookReporter), ("TerminalInteractiveShell", LineReporter), (None, LineReporter)],
)
def test_a_notebook_gets_a_line_written_over(monkeypatch: pytest.MonkeyPatch, shell: str | None, found: type) -> None:
    """By the name of its kernel's shell; IPython in a terminal has another, and a pipe of no IPython gets lines."""
    notebook: Any = ModuleType("IPython")
    notebook.get_ipython = lambda: shell and type(shell, (), {})()
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    assert in_notebook() == (found is NotebookReporter)
    with reporter(io.StringIO()) as shown:
        assert type(shown) is found
    del notebook.get_ipython  # half an IPython is no notebook
    assert not in_notebook()


def test_in_a_notebook_only_how_it_goes_is_written_over() -> None:
    stream, now = io.StringIO(), Clock()
    shown = NotebookReporter(stream, now=now)
    shown.on_event("reading the data")
    shown.on_start(START)
    for step in range(1, 5):
        now.now += 0.3
        shown.on_step(metrics(step))
    shown.on_validation(4, VALIDATION, True)
    shown.on_end(SUMMARY)
    lines = [line.split("\r")[-1] for line in stream.getvalue().split("\n")]
    assert stream.getvalue().count("\rstep 2/100: loss") == stream.getvalue().count("\rstep 4/100: loss") == 1
    assert lines[0] == "reading the data"
    assert lines[2].rstrip() == "step 4: validation loss 1.500, BLEU 33.2 (best so far, saved)"
    assert not any("tokens/s" in line for line in lines)
    assert lines[-1] == ""


def test_without_a_console_or_a_reader_the_training_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with reporter() as shown:
        assert type(shown) is Reporter
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as stream:
        LineReporter(stream).on_event("reading the data")
        os.dup2(os.open(os.devnull, os.O_WRONLY), writing)  # what is still in its buffer can leave
    LineReporter(stream).on_event("the stream is closed")


def test_samples_are_introduced_once_and_cropped() -> None:
    stream = io.StringIO()
    shown = LineReporter(stream)
    long = Validation(1.0, samples=(Sample("source", "reference", "word " * 100), Sample("second", "zweites", "")))
    shown.on_validation(1, long, False)
    shown.on_validation(2, long, False)
    text = stream.getvalue()
    assert text.count("source") == text.count("reference") == 1
    assert text.count("  > ") == 4
    assert text.count("(nothing)") == 2
    assert max(map(len, text.splitlines())) < 110
