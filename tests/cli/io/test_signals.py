"""The first signal requests a stop, the second ends the process."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from regard.cli.io.terminal import SIGNALS, Stop

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
from regard.runs import train as training
training.inspect = lambda *data: time.sleep(60)  # a corpus that takes long to read
enter = terminal.Stop.__enter__
def entered(stop):
    enter(stop)
    print("ready", flush=True)
    return stop
terminal.Stop.__enter__ = entered
sys.exit(main())
"""


class Writing:
    """A stream in the middle of writing: it takes nothing more, as Python's own do then."""

    def write(self, text: str) -> int:
        raise RuntimeError("reentrant call inside <_io.BufferedWriter name='<stderr>'>")

    flush = write


def test_the_first_asks_and_handlers_are_given_back(capfd, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", Writing())
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
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", CHILD], stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == "asked\n"
        process.send_signal(number)
        assert process.wait(timeout=10) == -number
        assert "Traceback" not in process.stderr.read()


def test_before_a_step_the_first_ends_it_as_stopped(tmp_path: Path) -> None:
    for name in ("source.en", "target.de"):
        (tmp_path / name).write_text("a\n")
    words = ["--source", str(tmp_path / "source.en"), "--target", str(tmp_path / "target.de")]
    command = [sys.executable, "-c", WAITING, "train", *words, "--output", str(tmp_path / "model")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 75
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "stopped before the first step" in err


def test_outside_of_the_main_thread_it_only_waits() -> None:
    found = []

    def work() -> None:
        with Stop() as stop:
            found.append(stop())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]
