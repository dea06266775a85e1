"""Progress: nothing for a short job, a line every ten seconds, a bar on a terminal after two."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from regard.cli.io import terminal as module
from regard.cli.io.terminal import ProgressBar, ProgressLines, progress


class Clock:
    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_a_line_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    shown = ProgressLines(1000, 0.2, clock)
    for passed in (9, 2, 9, 2):
        clock.seconds += passed
        shown.add(100, shown.share + 0.1)
    assert capsys.readouterr().err.splitlines() == [
        "regard: 1,200 texts, 18 a second; 40% of the input, 33 s left",
        "regard: 1,400 texts, 18 a second; 60% of the input, 22 s left",
    ]


def test_what_is_not_known_is_not_told() -> None:
    clock = Clock()
    shown = ProgressLines(0, None, clock)
    clock.seconds += 4
    shown.add(10)
    assert shown.line() == "10 texts, 2.5 a second"
    shown.add(9990)
    assert shown.line() == "10,000 texts, 2,500 a second"
    assert ProgressLines(0, 0.5).line() == "0 texts, 0.0 a second"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_a_bar_that_comes_late_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, clock = Terminal(), Clock()
    monkeypatch.setattr(module, "ProgressBar", lambda *given: ProgressBar(*given, now=clock))
    with progress(0, 0.0, stream) as shown:
        assert isinstance(shown, ProgressBar)
        clock.seconds += 1
        shown.add(5, 0.1)
        assert stream.getvalue() == ""
        clock.seconds += 4
        shown.add(5, 0.5)
        assert shown.progress.live.is_started
        (task,) = shown.progress.tasks
        assert (task.completed, task.total) == (0.5, 1.0)
        assert task.description == "10 texts, 2.0 a second; 50% of the input, 5 s left"
    assert not shown.progress.live.is_started


def test_a_pipe_has_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress() as shown:
        assert type(shown) is ProgressLines


def test_a_bar_that_was_never_shown_ends_quietly() -> None:
    stream: Any = Terminal()
    with pytest.raises(ZeroDivisionError), progress(stream=stream):
        raise ZeroDivisionError
    assert stream.getvalue() == ""
