"""What can be wrong without the data is said before the data is read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.data.corpora import Table
from regard.errors import RegardError, UsageError
from regard.tasks import train as training
from regard.tasks.jobs import JOBS


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """Train on two files that must not be read."""

    def read(*data: object) -> None:
        raise AssertionError("the data was read")

    def train(output: Path = tmp_path / "new", **wishes: Any) -> object:
        return training.train(tmp_path / "a.en", tmp_path / "a.de", output, **wishes)

    for name in ("a.en", "a.de", "file"):
        (tmp_path / name).write_text("a\n")
    monkeypatch.setattr(training, "inspect", read)
    return train


@pytest.mark.parametrize(
    ("wishes", "code", "said"),
    [
        ({"resume": "must"}, 3, "no checkpoint to resume from"),
        ({"minutes": float("nan")}, 2, "--minutes: must be a finite number"),
        ({"seed": -1}, 2, "seed"),
        ({"weights": [1, 2]}, 2, "2 weights for 1 corpora"),
        ({"weights": [-1]}, 2, "must not be negative"),
        ({"settings": ["data.weights=[1, 2]"]}, 2, "2 weights for 1 corpora"),
        ({"device": "cpu:99"}, 2, "no device of this machine"),
        ({"valid": "b"}, 2, "--valid: is not for this task: task = translation takes --source"),
    ],
)
def test_wishes(ask: Any, wishes: dict[str, Any], code: int, said: str) -> None:
    with pytest.raises(RegardError, match=said) as caught:
        ask(**wishes)
    assert caught.value.exit_code == code


@pytest.mark.parametrize(
    ("name", "said"),
    [(".", "is not empty and not a run of ours"), ("file", "is a file"), ("file/below/it", "is a file")],
)
def test_outputs(ask: Any, tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(RegardError, match=said):
        ask(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.de", "a.en", "file"]


def test_where_nobody_may_write(ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(RegardError, match="not writable"):
        ask()


def test_pairs_may_be_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def noted(corpora: Any, *more: object) -> None:
        asked.append(corpora)
        raise RegardError("enough")

    monkeypatch.setattr(training, "inspect", noted)
    (tmp_path / "a.tsv").touch()
    for pairs in (tmp_path / "a.tsv", str(tmp_path / "a.tsv"), [tmp_path / "a.tsv"]):
        with pytest.raises(RegardError, match="enough"):
            training.train(pairs=pairs, output=tmp_path / "new")
    assert asked == [[Table(tmp_path / "a.tsv")]] * 3


def test_where_nothing_is_wrong_the_data_is_read(ask: Any) -> None:
    with pytest.raises(AssertionError, match="the data was read"):
        ask(weights=[1], seed=3, resume="never")


@pytest.mark.parametrize("task", [task for task in JOBS if task != "encoding"])
def test_only_translation_weighs_its_files(tmp_path: Path, task: str) -> None:
    recipe = {"task": task, "data": {"weights": [1, 2]}}
    given: dict[str, Any] = {"train": [tmp_path / "a", tmp_path / "b"], "output": tmp_path / "new"}
    for where, wishes in (
        ("--weight", {"task": task, "weights": [1, 2]}),
        ("data.weights", {"task": task, "settings": ["data.weights=[1, 2]"]}),
        ("data.weights", {"recipe": recipe}),
    ):
        with pytest.raises(UsageError, match="only translation weighs them") as caught:
            training.train(**given, **wishes)
        assert caught.value.where == where


def test_a_translator_begins_from_nothing(ask: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a translator begins from nothing; --from is for the tasks") as caught:
        ask(start_from=tmp_path / "model")
    assert caught.value.where == "--from"
