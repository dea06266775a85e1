"""The heads that align words: what is chosen is written to the recipe, and used."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.config import recipe_from
from regard.runs.align import learned_pairs, tune_alignment
from regard.system.errors import UsageError
from regard.tasks.translation.align import choose_heads, heads_of
from regard.training.checkpoints import manifest
from tests.data.prepare.preparing import prepare_pairs, written
from tests.refusals import refused

FIXTURES = Path(__file__).parents[1] / "fixtures" / "runs"


def test_the_chosen_heads_are_written_to_the_recipe_and_used(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "translator" / "model", tmp_path / "model")
    draw = np.random.default_rng(1)
    texts = [" ".join(draw.choice("a dog the man runs far".split(), draw.integers(2, 6))) for _ in range(200)]
    model = regard.Translator.load(tmp_path / "model", "cpu")
    wanted = choose_heads(model, texts, texts)
    assert tune_alignment(tmp_path / "model", texts, texts) == wanted
    tuned = regard.Translator.load(tmp_path / "model", "cpu")
    layers = model.recipe.model.decoder_layers  # type: ignore[union-attr]
    assert heads_of(tuned.recipe, layers) == wanted[0]
    chosen = f"decoding.alignment_heads={json.dumps(list(map(str, wanted[0])))}"
    assert tuned.align(texts, texts) == model.with_settings([chosen]).align(texts, texts)
    size = len((tmp_path / "model" / "recipe.toml").read_bytes())
    assert manifest.read_manifest(tmp_path / "model" / manifest.NAME)["recipe.toml"].size == size


def test_pairs_of_the_training_choose_where_none_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, draw = tmp_path / "model", np.random.default_rng(2)
    shutil.copytree(FIXTURES / "translator" / "model", folder)
    shutil.rmtree(folder / "training")
    with refused(UsageError, folder, "--input"):
        tune_alignment(folder)
    sources = [" ".join(draw.choice("a dog the man runs far".split(), draw.integers(2, 6))) for _ in range(500)]
    corpus = written(tmp_path, "train", sources, [f"{text} {n}" for n, text in enumerate(sources)])
    held = written(tmp_path, "valid", ["x y"], ["y x"])
    prepare_pairs([corpus], recipe_from({"text": {"vocabulary": 300}}), folder / "training" / "data", held)
    monkeypatch.setattr("regard.runs.align.TAKEN", 250)
    texts, translations = learned_pairs(folder)
    assert texts[:3] == [sources[0], sources[2], sources[4]]
    assert [int(text.split()[-1]) for text in translations] == np.linspace(0, 499, 250, dtype=np.int64).tolist()
    wanted = choose_heads(regard.Translator.load(folder, "cpu"), texts, translations)
    assert tune_alignment(folder) == wanted


def test_what_translates_nothing_is_refused() -> None:
    folder = FIXTURES / "classifier" / "model"
    with refused(UsageError, folder, "classif"):
        tune_alignment(folder, ["a"] * 200, ["b"] * 200)
