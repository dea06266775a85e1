"""A signal at any moment: no traceback, the documented exit code, and of a training nothing is lost."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from regard.system.interrupts import SIGNALS, TRAININGS

TERM, INT = signal.SIGTERM, signal.SIGINT
LOADING = "import time; print('ready', flush=True); time.sleep(60)"
"""A module that takes long to load."""
ENDING = """
import atexit, os, signal, sys, time
from regard.system.interrupts import run_command
{0}
def command():
    atexit.register(lambda: (os.kill(os.getpid(), signal.{1}), time.sleep(0.1)))
    {2}
sys.argv = ["regard", "{3}"]
sys.exit(run_command(command))
"""


def python(*words: object, folder: Path | None = None) -> "subprocess.Popen[str]":
    """A process that finds modules in a folder before all others."""
    before = [str(folder)] if folder else []
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*before, os.environ.get("PYTHONPATH", "")])}
    environment.pop("REGARD_DEBUG", None)
    pipe = subprocess.PIPE
    command = [sys.executable, *map(str, words)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Exit code, and what was said."""
    with process:
        _, err = process.communicate(timeout=100)
    return process.returncode, err


def stopped(process: "subprocess.Popen[str]", number: signal.Signals) -> tuple[int, str]:
    """The same of a process that is told to stop while it loads a module."""
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    return ended(process)


def test_the_handlers_stand_before_anything_large_is_loaded() -> None:
    code, err = ended(python("-c", "import sys, regard.__main__; sys.exit(sorted(sys.modules).__repr__())"))
    assert code == 1
    assert "'regard.system.interrupts'" in err
    assert "'regard.cli'" not in err
    assert "'typing'" not in err


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("command", TRAININGS)
def test_a_training_that_is_being_loaded_stops(tmp_path: Path, command: str, number: signal.Signals) -> None:
    (tmp_path / "cyclopts.py").write_text(LOADING)
    process = python("-m", "regard", command, folder=tmp_path)
    assert stopped(process, number) == (75, "regard: stopped; nothing is lost: rerun the same command\n")


@pytest.mark.parametrize(("number", "expected"), [(INT, 130), (TERM, -TERM)])
@pytest.mark.parametrize("module", ["regard", "regard.cli"])
def test_another_command_that_is_being_loaded_ends(
    tmp_path: Path, module: str, number: signal.Signals, expected: int
) -> None:
    (tmp_path / "torch.py").write_text(LOADING)
    process = python("-m", module, "info", tmp_path, folder=tmp_path)
    assert stopped(process, number) == (expected, "")


def test_a_training_stops_while_torch_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(LOADING)
    words = ["--source", tmp_path / "a", "--target", tmp_path / "b", "--output", tmp_path / "c"]
    process = python("-m", "regard", "train", *words, folder=tmp_path)
    code, err = stopped(process, INT)
    assert (code, len(err.splitlines())) == (75, 1)


SWALLOWED = {
    "a module that catches all": (
        "open('{0}/swallowing.py', 'w').write('''\n"
        "import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\nexcept BaseException:\n    pass\n''')\n"
        "sys.path.insert(0, '{0}')",
        "import swallowing; time.sleep(30)",
    ),
    "a finaliser": (
        "class Held:\n    def __del__(self):\n        os.kill(os.getpid(), signal.SIGINT)\n        time.sleep(30)",
        "Held(); time.sleep(30)",
    ),
}


@pytest.mark.parametrize("where", SWALLOWED)
def test_an_interrupt_is_not_swallowed(tmp_path: Path, where: str) -> None:
    before, command = (text.replace("{0}", str(tmp_path)) for text in SWALLOWED[where])
    assert ended(python("-c", ENDING.format(before, "SIGINT", command, "info"))) == (130, "")


@pytest.mark.parametrize(("command", "number"), [("train", "SIGTERM"), ("train", "SIGINT"), ("info", "SIGINT")])
def test_a_signal_behind_the_end_changes_nothing(command: str, number: str) -> None:
    assert ended(python("-c", ENDING.format("", number, "return 3", command))) == (3, "")


def test_what_is_ignored_stays_ignored() -> None:
    """As a shell has it for what it sends into the background."""
    before = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    command = "os.kill(os.getpid(), signal.SIGINT); return 4"
    assert ended(python("-c", ENDING.format(before, "SIGINT", command, "info"))) == (4, "")
