"""The terminal: its capabilities, progress on it, and signals, the first of which asks and the second of which ends."""

import io
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from regard.cli.io import terminal
from regard.cli.io.terminal import SIGNALS, ProgressBar, ProgressLines, Stop, colour_scheme, progress, say


class Stream(io.StringIO):
    encoding = "utf-8"  # type: ignore[assignment]

    def __init__(self, terminal: bool, encoding: str = "utf-8") -> None:
        super().__init__()
        self.isatty, self.encoding = lambda: terminal, encoding  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("environment", "is_terminal", "colours"),
    [
        ({"TERM": "xterm"}, True, "16"),
        ({"TERM": "xterm-256color"}, True, "256"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, True, "true"),
        ({"TERM": "xterm-direct"}, True, "true"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, True, "none"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, True, "256"),
        ({"TERM": "dumb"}, True, "none"),
        ({}, True, "none"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, False, "none"),
        ({"TERM": "xterm-256color", "FORCE_COLOR": "1"}, False, "256"),
        ({"TERM": "xterm-256color", "FORCE_COLOR": "1", "NO_COLOR": "1"}, False, "none"),
    ],
)
def test_colours(monkeypatch, environment: dict[str, str], is_terminal: bool, colours: str) -> None:
    for name in ("TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert colour_scheme(Stream(is_terminal)).colours == colours


def test_letters_and_width(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "133")
    assert colour_scheme(Stream(True)).columns == 133
    found = [colour_scheme(Stream(True, name)).unicode for name in ("utf-8", "ascii", "iso8859-1")]
    assert found == [True, False, False]


def test_what_is_said_does_not_steer_the_terminal(capsys) -> None:
    say("ev\x1b[31mil\x9b1m.en: ß is no fault")
    assert capsys.readouterr().err == "regard: ev\\x1b[31mil\\x9b1m.en: ß is no fault\n"


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


def test_a_terminal_has_a_bar_that_comes_late_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, clock = Stream(True), Clock()
    monkeypatch.setattr(terminal, "ProgressBar", lambda *given: ProgressBar(*given, now=clock))
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


def test_a_pipe_has_lines_and_a_bar_that_was_never_shown_ends_quietly() -> None:
    with progress(stream=Stream(False)) as shown:
        assert type(shown) is ProgressLines
    stream = Stream(True)
    with pytest.raises(ZeroDivisionError), progress(stream=stream):
        raise ZeroDivisionError
    assert stream.getvalue() == ""


CHILD = """
import os, sys, time
from regard.cli.io.terminal import Stop
with Stop() as stop:
    stop()
    print("ready", flush=True)
    while not stop():
        time.sleep(0.01)
    print("asked", flush=True)
    time.sleep(30)
"""

WAITING = """
import sys, time
from regard.cli import main
from regard.cli.io import terminal
from regard.tasks.translation import training
training.scan_pairs = lambda *data: time.sleep(60)  # a corpus that takes long to read
enter = terminal.Stop.__enter__
def entered(stop):
    enter(stop)
    print("ready", flush=True)
    return stop
terminal.Stop.__enter__ = entered
sys.exit(main())
"""


def child(code: str, *words: str, **options: Any) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code, *words], stdout=pipe, stderr=pipe, text=True, **options)


def test_the_first_asks_and_handlers_are_given_back(capfd, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)  # a stream in the middle of writing takes nothing more
    for number in SIGNALS:
        former = signal.getsignal(number)
        with Stop() as stop:
            assert not stop()
            os.kill(os.getpid(), number)
            assert stop()
        assert signal.getsignal(number) is former
    assert "saving after this step" in capfd.readouterr().err


def test_what_is_ignored_stays_ignored() -> None:
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Stop() as stop:
            os.kill(os.getpid(), signal.SIGINT)
            assert not stop()
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, former)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_second_ends_it_at_once(number: signal.Signals) -> None:
    with child(CHILD) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == "asked\n"
        process.send_signal(number)
        assert process.wait(timeout=10) == -number
        assert "Traceback" not in process.stderr.read()


@pytest.mark.long(minutes=0.1)
def test_before_a_step_the_first_ends_it_as_stopped(tmp_path: Path) -> None:
    for name in ("source.en", "target.de"):
        (tmp_path / name).write_text("a\n")
    words = "train --source source.en --target target.de --output model".split()
    with child(WAITING, *words, cwd=tmp_path) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (75, "")
    *before, last = err.splitlines()
    assert "stopped before the first step" in last
    assert before in ([], ["checking the data"])


def test_outside_of_the_main_thread_it_only_waits() -> None:
    def work() -> bool:
        with Stop() as stop:
            return stop()

    with ThreadPoolExecutor(1) as pool:
        assert not pool.submit(work).result()
