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


def test_the_handlers_stand_before_anything_large_is_loaded() -> None:
    code, err = ended(python("-c", "import sys, regard.__main__; sys.exit(sorted(sys.modules).__repr__())"))
    assert code == 1
    assert "'regard.system.interrupts'" in err
    assert "'regard.cli'" not in err
    assert "'typing'" not in err


LOADED = [
    *(("cyclopts", ["regard", command], number, 75) for command in TRAININGS for number in SIGNALS),
    ("torch", ["regard", "train", "--source", "a", "--target", "b", "--output", "c"], INT, 75),
    *(
        ("torch", [module, "info", "."], number, code)
        for module in ("regard", "regard.cli")
        for number, code in ((INT, 130), (TERM, -TERM))
    ),
]
"""What is loaded slowly by which command, the signal it gets, and its exit code."""


@pytest.mark.one_of(4)
@pytest.mark.parametrize(("slow", "words", "number", "code"), LOADED)
def test_what_is_being_loaded_stops(tmp_path: Path, slow: str, words: list[str], number: int, code: int) -> None:
    (tmp_path / f"{slow}.py").write_text(LOADING)
    process = python("-m", *words, folder=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    said = "regard: stopped; nothing is lost: rerun the same command\n" if code == 75 else ""
    assert ended(process) == (code, said)


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


REPLACING = """
import os, signal, sys, regard.cli
from regard.cli.io.terminal import Stop
from regard.system.interrupts import run_command
from pydantic_core import SchemaValidator, core_schema
class Word(str):
    def __repr__(self):
        os.kill(os.getpid(), signal.{0})
        return "'word'"
def build(argv):
    with Stop("asked to stop"):
        SchemaValidator(core_schema.literal_schema([Word("word")]))
def interrupted(argv):
    SchemaValidator(core_schema.literal_schema([Word("word")]))
regard.cli._run = {1}
sys.argv = ["regard", "translate"]
sys.exit(run_command(regard.cli.main))
"""
"""A signal while pydantic builds a schema: it raises its own SchemaError in place of what the handler raised."""


@pytest.mark.parametrize(
    ("number", "command", "expected"),
    [
        ("SIGTERM", "build", (75, "regard: asked to stop\n")),
        ("SIGINT", "build", (75, "regard: asked to stop\n")),
        ("SIGINT", "interrupted", (130, "")),
    ],
)
def test_an_error_in_its_place_changes_nothing(number: str, command: str, expected: tuple[int, str]) -> None:
    assert ended(python("-c", REPLACING.format(number, command))) == expected


@pytest.mark.parametrize(("command", "number"), [("train", "SIGTERM"), ("train", "SIGINT"), ("info", "SIGINT")])
def test_a_signal_behind_the_end_changes_nothing(command: str, number: str) -> None:
    assert ended(python("-c", ENDING.format("", number, "return 3", command))) == (3, "")


def test_what_is_ignored_stays_ignored() -> None:
    """As a shell has it for what it sends into the background."""
    before = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    command = "os.kill(os.getpid(), signal.SIGINT); return 4"
    assert ended(python("-c", ENDING.format(before, "SIGINT", command, "info"))) == (4, "")
