"""What was given for a task, looked at before any time is spent; every task has its job."""

import os
from pathlib import Path
from typing import Any

import pytest

from regard.config import TASKS, Recipe, TaskInfo
from regard.data.corpora.labelled import open_labelled
from regard.runs.datasets import DATA, JOBS, job_class, training_job
from regard.system.errors import RegardError, UsageError
from regard.tasks.model_folder import OPENERS, corpus_opener, model_class
from regard.tasks.protocols import InputFiles
from regard.tasks.training.defaults import READINGS
from tests.refusals import refused
from tests.tasks.classification.small_classifiers import rows, written


@pytest.mark.parametrize("info", TASKS.values(), ids=TASKS)
def test_every_task_has_its_classes_and_data(info: TaskInfo) -> None:
    assert callable(model_class(info.name).build)
    assert info.learns_from in DATA
    if info.name in JOBS:
        assert job_class(info.name).task is model_class(info.name)
    if info.name in OPENERS:
        assert callable(corpus_opener(info.name))
    assert set(READINGS) <= set(TASKS)


def test_files_are_opened_in_their_order_and_columns_are_those_of_every_file(tmp_path: Path) -> None:
    paths = [written(tmp_path / name, rows(3)) for name in ("b.csv", "a.csv", "v.csv")]
    learned, valid = InputFiles(paths[:2], paths[2]).corpora(open_labelled)
    assert [corpus.name for corpus in learned] == [str(path) for path in paths[:2]]
    assert valid is not None
    assert valid.name == str(paths[2])
    assert InputFiles(paths[:1]).corpora(open_labelled)[1] is None
    for name in ("a.tsv", "v.tsv"):
        (tmp_path / name).write_text("x\tthe cat\n")
    learned, valid = InputFiles([tmp_path / "a.tsv"], tmp_path / "v.tsv", "2,1").corpora(open_labelled)
    assert valid is not None
    assert list(learned[0].examples()) == list(valid.examples()) == [("the cat", "x")]


@pytest.mark.parametrize(("train", "valid"), [((), None), (("absent.csv",), None), (("a.csv",), "absent.csv")])
def test_what_is_not_there_is_named(tmp_path: Path, train: tuple[str, ...], valid: str | None) -> None:
    written(tmp_path / "a.csv", rows(3))
    given = InputFiles([tmp_path / name for name in train], tmp_path / valid if valid else None)
    with refused(UsageError, *((None, "--train FILE") if not train else ("absent.csv",))):
        given.corpora(open_labelled)
    os.mkfifo(tmp_path / "pipe.csv")  # which cannot be read several times
    with refused(UsageError, "pipe.csv"):
        InputFiles([tmp_path / "pipe.csv"]).corpora(open_labelled)


def classification(tmp_path: Path, pairs: list[tuple[str, str]], despite: bool = False, **fields: Any) -> Any:
    told, asked = list[str](), list[int]()

    def recipe(count: int, *more: Any) -> Recipe:
        asked.append(count)
        return Recipe.model_validate({"task": "classification", "classification": fields})

    given = InputFiles([written(tmp_path / "a.csv", pairs)])
    job = training_job("classification", given, recipe, told.append, despite)
    return job, told, asked


def test_the_recipe_is_for_as_many_texts_as_there_are(tmp_path: Path) -> None:
    job, told, asked = classification(tmp_path, rows(50))
    assert asked[-1] == 50
    assert job.recipe.task == "classification"
    assert told == ["Usable: 50 texts. 3 labels."] or "50 texts" in told[-1]


def test_what_spoils_a_classifier_is_refused_unless_a_person_knows_better(tmp_path: Path) -> None:
    pairs = [(f"ab {number % 2}", "x" if number % 3 else "y") for number in range(60)]
    with refused(RegardError, "a.csv:2", "--despite-check"):
        classification(tmp_path, pairs)
    job, told, _ = classification(tmp_path, pairs, despite=True)
    assert job.recipe.task == "classification"
    assert any(line.startswith("warning: ") for line in told)


def test_labels_are_looked_at_as_the_recipe_means_them(tmp_path: Path) -> None:
    with refused(RegardError, "a.csv:2"):
        classification(tmp_path, rows(50), kind="regression")
    numbers = [(text, str(len(text))) for text, _ in rows(50)]
    assert classification(tmp_path, numbers, kind="regression")[0].recipe.classification.kind == "regression"


@pytest.mark.parametrize("place", ["a.tsv", "v.tsv"])
def test_prefixed_pairs_that_are_no_valid_utf_8_are_told(tmp_path: Path, place: str) -> None:
    for name in ("a.tsv", "v.tsv"):
        broken = b"\xff" if name == place else b""
        (tmp_path / name).write_bytes(b"say\ta b\tb a\nsay\tc d\t" + broken + b"d c\n")
    told = list[str]()
    given = InputFiles([tmp_path / "a.tsv"], tmp_path / "v.tsv")
    recipe = Recipe.model_validate({"task": "text-to-text"})
    training_job("text-to-text", given, lambda *_: recipe, told.append, False)
    wanted = f"{tmp_path / place}:2: 1 line is not valid UTF-8; bytes became U+FFFD"
    assert [line for line in told if "UTF-8" in line] == [wanted]
