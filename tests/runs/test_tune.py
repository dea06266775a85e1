"""Beam and length penalty by validation data, heads that align words: what is chosen, and becomes of the folder."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.config import recipe_from
from regard.runs.tune import COVERAGES, PENALTIES, Setting, choose, learned_pairs, tune, tune_alignment
from regard.system.errors import RegardError, UsageError
from regard.tasks.translation.align import choose_heads, heads_of
from regard.training.checkpoints import manifest
from tests.data.prepare.preparing import prepare_pairs, written
from tests.refusals import refused

FIXTURES = Path(__file__).parents[1] / "fixtures" / "runs"
TEXTS = ["a dog", "the man runs far", "x y z", "b"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A translator with made-up weights, texts, and what it writes of them with a beam of 2 and a penalty of 1.2."""
    shutil.copytree(FIXTURES / "translator" / "model", tmp_path / "model")
    model = regard.Translator.load(tmp_path / "model", "cpu").with_settings(["decoding.length_penalty=1.2"])
    (tmp_path / "a").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    written = model.translate(TEXTS, beam=2)
    (tmp_path / "b").write_text("".join(f"{text or '?'}\n" for text in written), encoding="utf-8")
    return tmp_path


def test_the_best_setting_is_written_to_the_recipe(folder: Path) -> None:
    before, lines = (folder / "model" / "recipe.toml").read_bytes(), list[str]()
    given = folder / "model", folder / "a", folder / "b"
    tried, chosen = tune(*given, dry_run=True)
    assert (folder / "model" / "recipe.toml").read_bytes() == before
    assert {one.length_penalty for one in tried} >= set(PENALTIES)
    assert {one.beam for one in tried} == {1, 2, 4, 8}
    assert len({(one.beam, one.length_penalty, one.coverage_penalty) for one in tried}) == len(tried)
    assert {one.coverage_penalty for one in tried if one.beam == chosen.beam} == set(COVERAGES) or chosen.beam == 1
    assert (tried, chosen) == tune(*given, told=lines.append)
    assert lines[0] == "4 sentences: a choice by so few says little of other texts"
    assert lines[-1] == tried[-1].line
    found = regard.Translator.load(folder / "model", "cpu").recipe.decoding
    assert (found.beam, found.length_penalty) == (chosen.beam, chosen.length_penalty)
    assert manifest.read_manifest(folder / "model" / manifest.NAME)["recipe.toml"].size == len(
        (folder / "model" / "recipe.toml").read_bytes()
    )
    card = (folder / "model" / "card.md").read_text(encoding="utf-8")
    assert all(f"    {one.line}\n" in card for one in tried)
    assert manifest.verify(folder / "model", extra=True) is None
    tune(*given)
    assert (folder / "model" / "card.md").read_text(encoding="utf-8").count("## Searches tried") == 1
    again, same = tune(*given, dry_run=True)
    assert same.bleu >= chosen.bleu
    assert again


def test_of_a_hundred_pairs_what_is_usual_is_fitted(folder: Path) -> None:
    for name in "ab":
        (folder / name).write_text((folder / name).read_text(encoding="utf-8") * 25, encoding="utf-8")
    given = folder / "model", folder / "a", folder / "b"
    tune(*given, dry_run=True)
    assert not regard.Translator.load(folder / "model", "cpu").assets.calibration.guard
    tune(*given)
    assets = regard.Translator.load(folder / "model", "cpu").assets
    assert {"ratio", "omission", "improbable"} < assets.calibration.guard.keys()
    assert assets.doubted_below > 0
    manifest.verify(folder / "model", extra=True)


def test_a_wider_beam_has_to_gain() -> None:
    def of(beam: int, bleu: float, coverage: float = 0.0) -> Setting:
        return Setting(beam, 0.6, bleu, 1.0, coverage)

    assert choose([of(8, 30.3), of(1, 29.0), of(4, 30.25), of(2, 30.1)]).beam == 4
    assert choose([of(1, 30.0), of(2, 30.05), of(4, 30.09)]).beam == 1
    assert choose([of(1, 30.0), of(2, 29.0), of(4, 30.2)]).beam == 4
    assert choose([of(2, 30.0), of(2, 30.05, 0.1), of(4, 30.0)]).coverage_penalty == 0.0
    assert choose([of(2, 30.0), of(2, 30.12, 0.1), of(2, 30.15, 0.2)]).coverage_penalty == 0.1


def test_what_cannot_be_tuned_is_refused(folder: Path) -> None:
    with refused(UsageError, FIXTURES / "classifier" / "model", "classif"):
        tune(FIXTURES / "classifier" / "model")
    with refused(UsageError, "reference", "missing"):
        tune(folder / "model", folder / "a")
    (folder / "b").write_text("one line\n")
    with refused(RegardError):
        tune(folder / "model", folder / "a", folder / "b")


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
    monkeypatch.setattr("regard.runs.tune.TAKEN", 250)
    texts, translations = learned_pairs(folder)
    assert texts[:3] == [sources[0], sources[2], sources[4]]
    assert [int(text.split()[-1]) for text in translations] == np.linspace(0, 499, 250, dtype=np.int64).tolist()
    wanted = choose_heads(regard.Translator.load(folder, "cpu"), texts, translations)
    assert tune_alignment(folder) == wanted


def test_what_translates_nothing_is_refused() -> None:
    folder = FIXTURES / "classifier" / "model"
    with refused(UsageError, folder, "classif"):
        tune_alignment(folder, ["a"] * 200, ["b"] * 200)
