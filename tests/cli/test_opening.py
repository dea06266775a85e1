"""A model of another task is refused in a sentence that names the command to use."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from regard.cli import COMMANDS
from regard.cli.opening import KINDS, check_threads, opened, refuse_other_tasks
from regard.config import BUILT
from regard.errors import UsageError


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
    refuse_other_tasks(Path("m"), name, (name, "other"))
    with pytest.raises(UsageError, match=f"^m: is {KINDS[name][0]}; use {KINDS[name][1]}$"):
        refuse_other_tasks(Path("m"), name, ("other",))


def test_a_task_it_is_for_is_opened(loaded) -> None:
    task = SimpleNamespace(name="tagging")
    loaded(task)
    assert opened(Path("m"), tasks=("tagging",)) is task
    assert opened(Path("m")) is task
    with pytest.raises(UsageError, match="is a tagger; use regard tag"):
        opened(Path("m"), tasks=("translation",))


@pytest.mark.parametrize("threads", [0, -1, 1025])
def test_threads_that_no_processor_has(threads: int) -> None:
    with pytest.raises(UsageError, match="threads cannot work"):
        check_threads(threads)
    check_threads(None)
    check_threads(1)
