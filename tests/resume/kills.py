"""A command in a process of its own, killed before or in one of the changes it makes to the disk, or by a signal."""

import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from regard.cli import main
from regard.training.checkpoints.files import Files
from tests.training.toy import in_child, lines, undated

Given = Callable[[Path], list[object]]
"""A command and its options, where it is given the output."""
CHANGES = frozenset("os.mkdir os.rename os.remove os.rmdir os.truncate os.link os.symlink".split())
"""Events, beside opening to write, by which a process changes what is on the disk."""
WHOLE = re.compile(r"out\.\w+|out/(corpus|images|translations)/[^.].*|out/distance\.svg")
"""Names of outputs that are there whole or not at all; models that are trained become others, each whole."""
TIMES = ("seconds", "tokens_per_second", "about")
AGAIN = re.compile(r"metrics\.after-\d+(-\d+)?\.jsonl")
"""Lines of a log that are made again are kept beside it."""


class Changes:
    """An audit hook: numbers every change below a folder, by whatever code, and may make one the process's last.

    Args:
        folder: where they count.
        fatal: the process dies before this one.
        torn: it dies behind it, where a file is opened: this is there, but nothing is written.
    """

    def __init__(self, folder: Path, fatal: int = 0, torn: bool = False) -> None:
        self.folder, self.fatal, self.torn = f"{folder}{os.sep}", fatal, torn
        self.seen: list[str] = []

    def __call__(self, event: str, given: tuple[Any, ...]) -> None:
        if event == "open":
            if isinstance(given[0], int) or not given[2] & (os.O_WRONLY | os.O_RDWR):
                return
        elif event not in CHANGES:
            return
        path = os.path.abspath(os.fsdecode(given[0]))
        if not path.startswith(self.folder):
            return
        self.seen.append(f"{event} {os.path.relpath(path, self.folder)}")
        if len(self.seen) == self.fatal:
            if self.torn and event == "open":
                self.fatal = 0
                os.close(os.open(given[0], given[2], 0o644))
            os._exit(137)


def run(words: Given, place: Path, changes: Changes | None = None) -> int:
    """The exit code of a command, run below ``place``, where its temporary files lie too."""
    return in_child(lambda: os._exit(_code(words, place, changes)))


def _code(words: Given, place: Path, changes: Changes | None = None) -> int:
    temporary = place / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)
    os.chdir(place)
    Files.sync = lambda files, handle: None  # only a machine without power loses by that
    if changes:
        sys.addaudithook(changes)
    return main([str(word) for word in words(place / "out")])


def never(words: Given, place: Path) -> tuple[dict[str, object], list[str]]:
    """What a command that is never killed leaves, and all its changes in order."""
    changes, seen = Changes(place), place.with_name(f"{place.name}.seen")

    def work() -> None:
        code = _code(words, place, changes)
        seen.write_text("\n".join(changes.seen))
        os._exit(code)

    assert in_child(work) == 0
    return left(place), seen.read_text().splitlines()


def killed(words: Given, place: Path, number: int, torn: bool = False) -> None:
    """Kill a command before, or in, its change of this number."""
    assert run(words, place, Changes(place, number, torn)) == 137, number


def killed_by_signal(words: Given, place: Path, seconds: float) -> bool:
    """Kill a command after some seconds, wherever it is; whether it was still at work."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(_code(words, place))
        finally:
            os._exit(99)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


def halved(place: Path, wanted: dict[str, object]) -> list[str]:
    """The outputs a killed command left that are there and are not what they are to be."""
    names = [str(path.relative_to(place)) for path in place.rglob("*")]
    return [name for name in names if WHOLE.fullmatch(name) and _content(place / name) != wanted[name]]


def resumed(words: Given, place: Path, wanted: dict[str, object], said: object) -> None:
    """Run the same command again: all is as if it was never killed, and nothing lies about."""
    assert run(words, place) == 0, said
    found = left(place)
    assert found.keys() ^ wanted.keys() == set(), (found.keys() ^ wanted.keys(), said)
    for name, content in found.items():
        assert content == wanted[name], (name, said)
    shutil.rmtree(place)


def left(place: Path) -> dict[str, object]:
    """All files and folders below a folder, by name, as what is the same in every run."""
    paths = [path for path in sorted(place.rglob("*")) if not AGAIN.fullmatch(path.name)]
    return {str(path.relative_to(place)): None if path.is_dir() else _content(path) for path in paths}


def _content(path: Path) -> object:
    """The bytes of a file; of one that says how long things took, the rest."""
    if path.name == "metrics.jsonl":
        return lines(path)
    if path.name == "results.jsonl":
        return [_untimed(json.loads(line)) for line in path.read_bytes().splitlines()]
    if path.name == "state.json":
        return _untimed(json.loads(path.read_bytes()))
    if path.name == "manifest.json" and path.parent.name.startswith("step-"):
        return None  # of state.json too
    if path.name.startswith("table"):  # equal time is a time
        if path.suffix == ".svg":
            ElementTree.fromstring(path.read_bytes())
        return path.read_bytes()[-1:]
    return undated(path)


def _untimed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _untimed(inner) for name, inner in value.items() if name not in TIMES}
    return [_untimed(inner) for inner in value] if isinstance(value, list) else value
