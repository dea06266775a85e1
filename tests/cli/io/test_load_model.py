"""A model of another task is refused with a message that names the command to use."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from regard.cli import COMMANDS
from regard.cli.io.load_model import (
    KINDS,
    SERVED,
    check_threads,
    open_model,
    refuse_no_file,
    refuse_other_tasks,
    refuse_unwritable,
)
from regard.config import BUILT
from regard.system.errors import UsageError
from tests.refusals import refused


def test_every_task_has_a_word_and_a_command() -> None:
    assert set(KINDS) == set(BUILT)
    known = {command.__name__ for command in COMMANDS}
    for what, command in KINDS.values():
        assert what.startswith(("a ", "an "))
        assert command.split()[:2] == ["regard", command.split()[1]]
        assert command.split()[1] in known


@pytest.mark.parametrize("name", KINDS)
def test_the_sentence(name: str) -> None:
    refuse_other_tasks(Path("m"), name, None)
    for command, tasks in SERVED.items():
        if name in tasks:
            refuse_other_tasks(Path("m"), name, command)
        else:
            with refused(UsageError, "m", *KINDS[name]):
                refuse_other_tasks(Path("m"), name, command)


def test_every_command_for_some_tasks_knows_what_to_do_with_each() -> None:
    from regard.cli.evaluate import EVALUATIONS
    from regard.cli.inference.classify import READERS
    from regard.cli.inference.fill import FILLERS

    for command, each in {"classify": READERS, "evaluate": EVALUATIONS, "fill": FILLERS}.items():
        assert set(each) == set(SERVED[command])
    for task, (_, use) in KINDS.items():
        assert task in SERVED[use.split()[1]]


def test_a_task_it_is_for_is_opened(loaded) -> None:
    task = SimpleNamespace(name="tagging")
    loaded(task)
    assert open_model(Path("m"), command="tag") is task
    assert open_model(Path("m")) is task
    with refused(UsageError, "m"):
        open_model(Path("m"), command="translate")


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    refuse_no_file(tmp_path / "a")
    with refused(UsageError, tmp_path):
        refuse_no_file(tmp_path)
    with refused(UsageError, "b"):
        refuse_no_file(tmp_path / "b")


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
