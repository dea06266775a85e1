"""Preparing, killed before any step that makes something last: the next start finds nothing of it, or all of it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from regard.config import recipe_from
from regard.data.corpora.pairs import open_pairs
from regard.data.prepare.folder import verify_folder
from regard.runs.run import prepare_data
from tests.data.prepare.preparing import prepare_pairs
from tests.training.toy import in_child

STEPS = ((os, "fsync"), (os, "rename"), (os, "replace"), (shutil, "rmtree"))


def counted(fatal: int | None = None) -> list[str]:
    """From now on every step is counted, and the process dies before the step ``fatal``."""
    seen: list[str] = []

    def counting(name: str, step: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            seen.append(name)
            if len(seen) == fatal:
                os._exit(137)
            return step(*arguments, **options)

        return call

    for module, name in STEPS:
        setattr(module, name, counting(name, getattr(module, name)))
    return seen


def killed(made: Callable[[Path], None], folder: Path, number: int) -> int:
    """The exit code of preparing in a process that dies before the step ``number``."""

    def work() -> None:
        counted(number)
        made(folder)

    return in_child(work)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def made(tmp_path: Path) -> Callable[[Path], None]:
    """Prepares a small corpus, with separate vocabularies, into a folder."""
    for side in ("en", "de"):
        (tmp_path / f"a.{side}").write_text("".join(f"the {side} line {n % 7} of {n}\n" for n in range(60)))
    pairs = open_pairs(tmp_path / "a.en", tmp_path / "a.de")
    text, data = {"vocabulary": 320, "joint": False, "bpe_dropout": 0.1}, {"validation": 5, "max_tokens": 40}
    recipe = recipe_from({"text": text, "data": data, "model": {"tie": "two"}})
    return lambda folder: prepare_pairs([pairs], recipe, folder) and None


@pytest.mark.one_of(4, minutes=0.05)
@pytest.mark.parametrize("share", range(4))
def test_killed_before_each_step(tmp_path: Path, made: Callable[[Path], None], share: int) -> None:
    made(tmp_path / "never")
    never = contents(tmp_path / "never")

    def counts() -> None:
        seen = counted()
        made(tmp_path / "counted")
        (tmp_path / "seen").write_text(" ".join(seen))

    assert in_child(counts) == 0
    steps = (tmp_path / "seen").read_text().split()
    assert {"fsync", "rename", "replace"} == set(steps)
    for number in range(len(steps) - share, 0, -4):
        folder = tmp_path / str(number)
        assert killed(made, folder, number) == 137
        assert not folder.exists()  # the rename into its place is the last step
        made(folder)
        assert contents(folder) == never
        assert not folder.with_name(f"{number}.partial").exists()


def test_killed_again_and_again(tmp_path: Path, made: Callable[[Path], None]) -> None:
    """What one kill leaves half made is removed by the next start, which is killed while it removes."""
    made(tmp_path / "never")
    for number in (9, 5, 2, 1):
        assert killed(made, tmp_path / "data", number) == 137
    made(tmp_path / "data")
    assert contents(tmp_path / "data") == contents(tmp_path / "never")


@pytest.mark.one_of(3, minutes=0.05)
@pytest.mark.parametrize("share", range(3))
def test_killed_while_damaged_data_is_made_again(tmp_path: Path, made: Callable[[Path], None], share: int) -> None:
    """In a run, which removes the damaged folder once another like it is whole; both cannot be lost at once."""
    made(tmp_path / "never")
    never = contents(tmp_path / "never")

    class Small:
        def prepare(self, folder: Path, progress: Any) -> Any:
            made(folder)
            return SimpleNamespace(fingerprint=verify_folder(folder)["fingerprint"])

    def run(folder: Path) -> None:
        prepare_data(Small(), folder, lambda text: None)  # type: ignore[arg-type]

    for number in range(1 + share, 100, 3):
        training = tmp_path / f"training-{number}"
        shutil.copytree(tmp_path / "never", training / "data")
        (training / "data" / "index.json").write_bytes(b"{")
        code = killed(run, training, number)
        for left in ("data.damaged-1", "data.partial"):  # of an earlier Regard, and of a kill
            (training / left).mkdir(exist_ok=True)
        run(training)
        assert contents(training / "data") == never
        assert [path.name for path in training.iterdir()] == ["data"]
        if code == 0:
            break
    assert number > 10
