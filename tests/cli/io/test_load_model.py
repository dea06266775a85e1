"""A model of another task is refused with a message that names the command to use."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from regard.cli import EXAMPLES
from regard.cli.io.load_model import check_threads, example, refuse_other_tasks, refuse_unwritable
from regard.config import TASKS, TaskInfo
from regard.system.errors import UsageError
from regard.tasks import model_class
from regard.tasks.assets import PREFIXES, json_content
from tests.refusals import refused


@pytest.mark.parametrize("info", TASKS.values(), ids=TASKS)
def test_every_task_has_a_noun_and_a_command(info: TaskInfo) -> None:
    assert bool(model_class(info.name).evaluate_options) == ("evaluate" in info.commands)
    assert info.noun.startswith(("a ", "an "))
    assert info.title[0].isupper()
    assert {info.command, *info.commands} <= EXAMPLES.keys()
    refuse_other_tasks(Path("m"), info, None)
    for command in {command for other in TASKS.values() for command in other.commands}:
        if command in info.commands:
            refuse_other_tasks(Path("m"), info, command)
        else:
            with refused(UsageError, "m", info.noun, f"regard {info.command}"):
                refuse_other_tasks(Path("m"), info, command)


@pytest.mark.parametrize("command", ["ask", "classify", "fill", "generate", "tag", "translate"])
def test_a_model_of_another_task_is_refused_by_name(regard, loaded, command: str) -> None:
    info = TASKS["encoding"]
    loaded(SimpleNamespace(info=info))
    regard(command, "model", stdin=b"a\n").refuses(f"is {info.noun}; use regard {info.command}")


def test_the_example_names_a_prefix_that_was_learned(tmp_path: Path) -> None:
    info = TASKS["text-to-text"]
    assert example(info, tmp_path) == f"regard ask {tmp_path} < texts.txt"
    (tmp_path / PREFIXES).write_bytes(json_content({"prefixes": ["", "turn round", "sort"]}))
    assert example(info, tmp_path) == f"regard ask {tmp_path} --prefix 'turn round' < texts.txt"


@pytest.mark.parametrize("locked", ["file", "folder", "pipe"])
def test_what_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locked: str) -> None:
    """A plain file is replaced by another, so that its folder must be writable too."""
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    where = tmp_path if locked == "folder" else tmp_path / locked
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != where)
    for name, needs in {"file": ("file", "folder"), "new": ("folder",), "pipe": ("pipe",)}.items():
        if locked in needs:
            with refused(UsageError, tmp_path / name):
                refuse_unwritable(tmp_path / name, "--output")
        else:
            refuse_unwritable(tmp_path / name, "--output")


@pytest.mark.parametrize("threads", [0, -1, 1025])
def test_threads_that_no_processor_has(threads: int) -> None:
    with refused(UsageError, "--threads"):
        check_threads(threads)
    check_threads(None)
    check_threads(1)
