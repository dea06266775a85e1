"""What was given for a task, looked at before any time is spent: what is suspect is told, what is fatal refused."""

import math
import os

import pytest

from regard.config import TASKS, Recipe
from regard.data.corpora.labelled import open_labelled
from regard.data.corpora.pairs import open_pairs
from regard.runs import train as training
from regard.system.errors import RegardError, UsageError
from regard.tasks import MODELS, job_class, model_class
from regard.tasks.protocols import InputFiles
from regard.tasks.translation.training import scan_pairs
from tests.refusals import refused
from tests.tasks.classification.small_classifiers import rows, written


@pytest.mark.parametrize("info", TASKS.values(), ids=TASKS)
def test_every_task_has_its_classes_and_data(info):
    model = model_class(info.name)
    assert callable(model.build)
    assert set(MODELS) == set(TASKS)
    if info.learns_from == "nothing":
        with refused(UsageError, "task", info.name):
            job_class(info.name)
        return
    job = job_class(info.name)
    assert job.task is model
    assert [size.count for size in job.training.sizes][-1] == math.inf
    assert hasattr(model, "open_corpus") == (info.learns_from not in ("pairs", "documents"))


def test_files_are_opened_in_their_order_and_columns_are_those_of_every_file(tmp_path):
    paths = [written(tmp_path / name, rows(3)) for name in ("b.csv", "a.csv", "v.csv")]
    learned, valid = InputFiles(paths[:2], paths[2]).corpora(open_labelled)
    assert [corpus.name for corpus in (*learned, valid)] == [str(path) for path in paths]
    assert InputFiles(paths[:1]).corpora(open_labelled)[1] is None
    for name in ("a.tsv", "v.tsv"):
        (tmp_path / name).write_text("x\tthe cat\n")
    learned, valid = InputFiles([tmp_path / "a.tsv"], tmp_path / "v.tsv", "2,1").corpora(open_labelled)
    assert list(learned[0].examples()) == list(valid.examples()) == [("the cat", "x")]


@pytest.mark.parametrize(("train", "valid"), [((), None), (("absent.csv",), None), (("a.csv",), "absent.csv")])
def test_what_is_not_there_is_named(tmp_path, train, valid):
    written(tmp_path / "a.csv", rows(3))
    given = InputFiles([tmp_path / name for name in train], tmp_path / valid if valid else None)
    with refused(UsageError, *((None, "train=FILE") if not train else ("absent.csv",))):
        given.corpora(open_labelled)
    os.mkfifo(tmp_path / "pipe.csv")  # which cannot be read several times
    with refused(UsageError, "pipe.csv"):
        InputFiles([tmp_path / "pipe.csv"]).corpora(open_labelled)


def classification(tmp_path, pairs, despite=False, **fields):
    told, asked = [], []

    def recipe(count, *more):
        asked.append(count)
        return Recipe.model_validate({"task": "classification", "classification": fields})

    given = InputFiles([written(tmp_path / "a.csv", pairs)])
    return job_class("classification").of_files(given, recipe, told.append, despite), told, asked


def test_the_recipe_is_for_as_many_texts_as_there_are(tmp_path):
    job, told, asked = classification(tmp_path, rows(50))
    assert (asked[-1], job.recipe.task) == (50, "classification")
    assert "50 texts" in told[-1]


def test_what_spoils_a_classifier_is_refused_unless_a_person_knows_better(tmp_path):
    pairs = [(f"ab {number % 2}", "x" if number % 3 else "y") for number in range(60)]
    with refused(RegardError, "a.csv:2", "despite_check"):
        classification(tmp_path, pairs)
    job, told, _ = classification(tmp_path, pairs, despite=True)
    assert job.recipe.task == "classification"
    assert any(line.startswith("warning: ") for line in told)


def test_labels_are_looked_at_as_the_recipe_means_them(tmp_path):
    with refused(RegardError, "a.csv:2"):
        classification(tmp_path, rows(50), kind="regression")
    numbers = [(text, str(len(text))) for text, _ in rows(50)]
    assert classification(tmp_path, numbers, kind="regression")[0].recipe.classification.kind == "regression"


@pytest.mark.parametrize("place", ["a.tsv", "v.tsv"])
def test_prefixed_pairs_that_are_no_valid_utf_8_are_told(tmp_path, place):
    for name in ("a.tsv", "v.tsv"):
        broken = b"\xff" if name == place else b""
        (tmp_path / name).write_bytes(b"say\ta b\tb a\nsay\tc d\t" + broken + b"d c\n")
    told, given = [], InputFiles([tmp_path / "a.tsv"], tmp_path / "v.tsv")
    recipe = Recipe.model_validate({"task": "text-to-text"})
    job_class("text-to-text").of_files(given, lambda *_: recipe, told.append, False)
    wanted = f"{tmp_path / place}:2: 1 line is not valid UTF-8; bytes became U+FFFD"
    assert [line for line in told if "UTF-8" in line] == [wanted]


def pairs(folder, source, target):
    for side, lines in (("en", source), ("de", target)):
        (folder / f"a.{side}").write_text("".join(f"{line}\n" for line in lines))
    return open_pairs(folder / "a.en", folder / "a.de")


ENGLISH, GERMAN = ([f"{text} {n}" for n in range(60)] for text in ("the cat", "die Katze"))


def test_what_is_suspect_is_told_with_its_place(tmp_path):
    told = []
    _, count = scan_pairs([pairs(tmp_path, [*ENGLISH[:4], "", *ENGLISH[5:]], GERMAN)], [], told.append)
    assert count == 60
    assert told[-1].startswith("Usable")
    (empty,) = [line for line in told if "empty" in line]
    assert empty.endswith(f"First: {tmp_path / 'a.en'}:5")


@pytest.mark.parametrize(("source", "target"), [([], []), ([""] * 50, [""] * 50), (ENGLISH, GERMAN[1:])])
def test_what_is_fatal_is_refused_whatever_a_person_knows(tmp_path, source, target):
    told = []
    for despite_check in (False, True) if "" not in source else (False,):
        with pytest.raises(RegardError) as caught:
            scan_pairs([pairs(tmp_path, source, target)], [], told.append, despite_check)
        assert "" in source or "despite_check" not in str(caught.value)
    assert not any("usable" in line.lower() for line in told)


def test_validation_pairs_are_looked_at_too(tmp_path):
    both = pairs(tmp_path, ENGLISH, GERMAN)
    with refused(RegardError, "a.en:1", "despite_check"):
        scan_pairs([both], [both], lambda text: None)


def test_a_judgement_may_be_overruled(tmp_path):
    copies, told = pairs(tmp_path, ENGLISH, ENGLISH), []
    with refused(RegardError, "a.en:1", "despite_check"):
        scan_pairs([copies], [], told.append)
    scan_pairs([copies], [], told.append, despite_check=True)
    assert [line for line in told if line.startswith("warning: 60 pairs (100%) have the same text on both sides")]
    assert told[-1] == "Usable, with 2 warnings: 60 pairs."


@pytest.mark.parametrize("despite_check", [False, True])
def test_training_goes_on_past_the_check_if_asked(tmp_path, monkeypatch, despite_check):
    def run(*work):
        raise LookupError("beyond the check")

    monkeypatch.setattr(training, "run", run)
    pairs(tmp_path, ENGLISH, ENGLISH)
    with pytest.raises(LookupError if despite_check else RegardError):
        training.train(tmp_path / "a.en", tmp_path / "a.de", tmp_path / "model", despite_check=despite_check)
