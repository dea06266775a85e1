"""Every recipe of the repository can be used, says what is true of it, and those to compare can be compared."""

import re
from pathlib import Path

import pytest
import torch

from regard.config import Recipe, recipe_from, recipe_values
from regard.models.build import encoder_decoder
from regard.runs.compare.compare import refuse_unlike, unlike_batches

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "recipes").rglob("*.toml"))
COMPARED = [path for path in RECIPES if path.parent.name == "compare"]
NORMS = [path for path in RECIPES if path.parent.name == "norms"]
PARAMETERS = re.compile(r"^# .*: ([\d.]+) million parameters\.")


def recipe(path: Path) -> Recipe:
    return recipe_from(recipe_values(path), str(path))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: str(path.relative_to(ROOT / "recipes")))
def test_a_recipe_fits_and_begins_with_what_it_is(path: Path) -> None:
    recipe(path)
    first, *_ = path.read_text(encoding="utf-8").splitlines()
    assert first.startswith("# ")
    values = recipe_values(path)
    assert "minutes" not in values.get("training", {})  # how long is for whoever uses it


@pytest.mark.parametrize("path", COMPARED, ids=lambda path: path.stem)
def test_a_recipe_to_compare_has_the_parameters_it_says(path: Path) -> None:
    said = PARAMETERS.match(path.read_text(encoding="utf-8"))
    assert said is not None
    found = recipe(path)
    with torch.device("meta"):
        model = encoder_decoder(found.model, found.text.vocabulary, found.text.vocabulary)
    count = sum(weight.numel() for weight in model.parameters())
    assert float(said.group(1)) == pytest.approx(count / 1e6, abs=0.05)


@pytest.mark.parametrize("paths", [COMPARED, NORMS], ids=["families", "norms"])
def test_recipes_to_compare_read_the_same(paths: list[Path]) -> None:
    assert len(paths) > 3
    refuse_unlike({path.stem: recipe(path) for path in paths})
    recurrent = [found for path in paths if (found := recipe(path)).model.family == "rnn"]
    assert unlike_batches(recurrent or [recipe(path) for path in paths]) is None


def test_every_kind_of_cell_and_score_is_compared() -> None:
    models = [recipe(path).model for path in COMPARED]
    cells = {model.cell for model in models if model.family == "rnn" and model.score == "none"}
    assert cells == {"elman", "gru", "lstm"}
    scores = {model.score for model in models if model.family == "rnn" and model.cell == "gru"}
    assert scores == {"none", "dot", "scaled", "general", "additive", "cosine"}
    assert any(model.family == "rnn" and model.input_feeding for model in models)
    assert any(model.family == "transformer" for model in models)
    assert {recipe(path).model.norm for path in NORMS} == {"layer", "rms", "batch", "group"}


@pytest.mark.parametrize("paths", [COMPARED, NORMS], ids=["families", "norms"])
def test_recipes_differ_in_nothing_but_model_and_rate(paths: list[Path]) -> None:
    first, *others = [recipe(path) for path in paths if recipe(path).model.family == recipe(paths[0]).model.family]
    for other in others:
        for section in ("text", "data", "decoding"):
            assert getattr(other, section) == getattr(first, section)
        assert other.training.model_copy(update={"rate": first.training.rate}) == first.training
