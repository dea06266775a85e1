"""The card says what a model is and how well it does."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from regard.config import TASKS, recipe_from
from regard.models import store
from regard.tasks.training import model_writer
from regard.tasks.training.base import ProductPaths
from regard.tasks.training.model_writer import CARD, ModelFolderWriter, card, final, left_out
from regard.training.checkpoints.provenance import DataFile, Provenance
from regard.training.objective import Validation
from regard.training.progress import Best, Progress
from tests.tasks.small_tasks import classifier, keep, translator
from tests.training.toy import Fast

RECIPE = recipe_from(
    {
        "seed": 7,
        "text": {"source_language": "en", "target_language": "de"},
        "model": {"d_model": 64, "encoder_layers": 3, "decoder_layers": 2},
        "training": {"steps": 1234, "tokens": 512, "accumulate": 4},
    }
)


def test_a_card_names_what_it_is_of() -> None:
    text = card(RECIPE, ["20,500 pairs", "two left out"], "f" * 64, 2_345_678, ["a line"])
    for part in ("en → de", "2.3 million", "3 + 2 layers", "d_model 64", "post-norm", "20,500", "two left", "f" * 16):
        assert part in text
    assert "1,234 steps of up to 2,048 tokens, seed 7" in text
    assert "a line" in text.splitlines()
    assert "Left out" not in text


def test_a_card_is_silent_on_languages_that_are_not_known() -> None:
    for text, title in (({}, "# A translator"), (RECIPE.text, "# A translator: en → de")):
        recipe = recipe_from({"text": dict(text)})
        assert card(recipe, ["a line"], "f" * 64, 1, ["a line"]).splitlines()[0] == title


def test_what_it_was_made_of_and_by_stands_where_it_belongs(tmp_path: Path) -> None:
    provenance = Provenance(("regard train",), ("1.0",), ("a processor",), (DataFile("a.en", 12, "e" * 64),), "CC0")
    made = provenance.training_lines(datetime(2026, 11, 23, tzinfo=UTC), 7)
    text = card(RECIPE, ["data", *provenance.data_lines()], "f" * 64, 1, ["At step 4: loss 2."], made)
    data, scores, training = (text.index(f"\n## {title}") for title in ("Data", "Scores", "Training"))
    assert data < text.index("e" * 64) < text.index("CC0") < scores < training
    assert training < text.index("2026-11-23") < text.index("7.0 seconds") < text.index("a processor")
    (tmp_path / CARD).write_text(text.replace("| made |", "* made"), encoding="utf-8")
    assert not final(tmp_path)  # a list elsewhere is no score


@pytest.mark.parametrize("task", list(TASKS))
def test_every_task_and_family_has_its_words(task: str) -> None:
    for family in TASKS[task].families:
        recipe = recipe_from({"task": task, "model": {"family": family}})
        text = card(recipe, ["data"], "f", 1, ["a line"])
        assert text.startswith(("# A ", "# An "))
        assert " layer" in text


def test_what_was_left_out_is_counted() -> None:
    for counts, lines in (
        ({"empty": 0}, []),
        ({"empty": 2, "validation": 0, "too long": 1500}, ["Left out: 2 empty, 1,500 too long."]),
    ):
        prepared: Any = SimpleNamespace(left_out={"counts": counts})
        assert left_out(prepared) == lines


def test_scores_are_final_once_they_are_searched_for(tmp_path: Path) -> None:
    assert not final(tmp_path)
    for lines, found in ((["At step 40: loss 2.500 nats a token, BLEU 3.2."], False), (["* BLEU 100.00"], True)):
        (tmp_path / CARD).write_text(card(RECIPE, ["data"], "f", 1, lines), encoding="utf-8")
        assert final(tmp_path) == found


@pytest.mark.parametrize(("make", "unit"), [(translator, " nats a token"), (classifier, "")])
def test_the_card_of_an_unfinished_run_has_its_best_step(
    make: Any, unit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = make()
    prepared = SimpleNamespace(left_out={}, fingerprint="f" * 64)
    teaching: Any = SimpleNamespace(task=task, model=task.model, prepared=prepared, paths=ProductPaths())
    teaching.data_lines = lambda: ["data"]
    writer = ModelFolderWriter(tmp_path, teaching, Fast(), Provenance(("regard train",), ("1.0",), ("here",), (), ""))
    keep(tmp_path, task, 40, "checkpoints")
    writer.best(store.weights(task.model), Best(40, "loss", 2.5), Validation(2.5, {"bleu": 3.25}), 7.0)
    assert f"At step 40: loss 2.500{unit}, BLEU 3.2." in (tmp_path / CARD).read_text().splitlines()
    (tmp_path / "recipe.toml").write_text("")
    monkeypatch.setattr(model_writer, "load_progress", lambda training: Progress(40, best=Best(40, "bleu", 3.25)))
    writer.begin(list[str]().append)
    assert "At step 40: bleu 3.250." in (tmp_path / CARD).read_text().splitlines()
