"""The table by size, read as docs/recipes.md prints it."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.config import recipe_from
from regard.models.build import transformer
from regard.models.presets import PRESETS
from regard.system.errors import RegardError
from regard.tasks import job_class
from regard.tasks.training import defaults as sizing
from regard.tasks.training.defaults import SizeDefaults, defaults
from regard.text.tokenizers.tokenizer import learn
from regard.training.measure import step_seconds
from tests.tasks.small_tasks import size_tables

TABLES = size_tables()
SIZES = TABLES.pop("translation")
SPANS = job_class("text-to-text").training.spans
DOCUMENT = Path(__file__).parents[3] / "docs" / "recipes.md"


def values(
    row: SizeDefaults, name: str | None = None, task: str = "translation", with_model: bool = True
) -> dict[str, Any]:
    """What a row gives, for as many examples as it goes up to."""
    sizes, most = job_class(task).training.sizes, int(min(row.count, 1e12)) - 1
    return defaults(task, sizes, most, name, with_model, {})


size_for = partial(sizing.size_for, SIZES)


@pytest.mark.parametrize(("pairs", "row"), [(0, 0), (9_999, 0), (10_000, 1), (79_999, 1), (80_000, 2), (10**9, 4)])
def test_the_first_row_a_corpus_is_below(pairs: int, row: int) -> None:
    assert size_for(pairs) is SIZES[row]


@pytest.mark.parametrize(
    ("pairs", "minutes", "row"),
    [(160_000, 5, 1), (160_000, 50, 2), (600_000, 50, 2), (600_000, 5, 1), (600_000, 1e4, 3), (20_000, 0.1, 1)],
)
def test_few_steps_take_a_smaller_model(monkeypatch: pytest.MonkeyPatch, pairs: int, minutes: float, row: int) -> None:
    """A step of 1,024 tokens takes half a second of the small model, and ten of base."""
    monkeypatch.setattr(sizing, "step_seconds", lambda section, *sizes: 0.5 if section.d_model < 512 else 10.0)
    monkeypatch.setattr(sizing, "usable_cores", lambda: 2)
    assert size_for(pairs, minutes) is SIZES[row]
    assert size_for(pairs) is SIZES[max(row, 1 + (pairs >= 80_000) + (pairs >= 500_000))]


@pytest.mark.parametrize(("d_model", "row"), [(512, 3), (256, 2), (128, 1), (300, 3)])
def test_a_run_that_resumes_keeps_its_row(monkeypatch: pytest.MonkeyPatch, d_model: int, row: int) -> None:
    monkeypatch.setattr(sizing, "step_seconds", lambda *given: pytest.fail("nothing is to be timed"))
    assert size_for(600_000, 1, d_model) is SIZES[row]


@pytest.mark.parametrize(
    ("pairs", "training", "dropout"),
    [
        (30_000, {}, 0.2),  # 30 passes
        (30_000, {"steps": 3_500}, 0.0),  # 7.96
        (30_000, {"steps": 3_600}, 0.1),  # 8.2
        (30_000, {"steps": 9_000}, 0.2),  # 20.5
        (30_000, {"steps": 9_000, "tokens": 512}, 0.1),
        (30_000, {"minutes": 20}, 0.0),  # two cores make 168 steps a minute
        (30_000, {"minutes": 22}, 0.1),
        (5_000, {"minutes": 9}, 0.2),
        (5_000, {}, 0.2),  # 60
        (30_000, {"steps": 26_300}, 0.2),  # 59.8
        (30_000, {"steps": 26_400}, 0.3),
        (30_000, {"minutes": 5, "steps": 9_000}, 0.2),
        (600_000, {}, 0.1),  # the paper's base model
    ],
)
def test_passes_choose_dropout(monkeypatch: pytest.MonkeyPatch, pairs: int, training: Any, dropout: float) -> None:
    monkeypatch.setattr(sizing, "step_seconds", lambda section, *sizes: 0.5)
    monkeypatch.setattr(sizing, "usable_cores", lambda: 2)
    found = partial(defaults, "translation", SIZES, pairs, training=training)
    assert recipe_from(found(name=None, with_model=True)).model.dropout == dropout
    assert "model" not in found(name=None, with_model=False)
    assert found(name="tiny", with_model=True)["model"]["dropout"] == 0.2  # a preset is what it says
    monkeypatch.setattr(sizing, "step_seconds", lambda *given: pytest.fail("nothing is to be timed"))
    for kept in (0.0, 0.1, 0.2, 0.3) if pairs < 600_000 else ():
        earlier = {"model.d_model": 128, "model.dropout": kept}
        assert found(name=None, with_model=True, earlier=earlier)["model"]["dropout"] == kept


@pytest.mark.parametrize(
    ("training", "layers", "own", "dropout"),
    [
        ({}, 4, 0.2, 0.0),  # 3 passes
        ({"steps": 3_600}, 4, 0.2, 0.1),
        ({"steps": 3_600}, 4, 0.05, 0.05),
        ({"steps": 9_000}, 4, 0.3, 0.3),
        ({"minutes": 22}, 4, 0.2, 0.1),  # as above
        ({"minutes": 22}, 8, 0.2, 0.0),  # twice as large: half the passes
    ],
)
def test_a_translator_that_goes_on_has_the_dropout_of_its_passes(
    monkeypatch: pytest.MonkeyPatch, training: dict[str, Any], layers: int, own: float, dropout: float
) -> None:
    monkeypatch.setattr(sizing, "step_seconds", lambda section, *sizes: 0.5)
    monkeypatch.setattr(sizing, "usable_cores", lambda: 2)
    sizes = job_class("translation").training.adapted
    section = {"encoder_layers": layers, "decoder_layers": layers, "dropout": own}
    start = PRESETS["tiny"].section.model_copy(update=section)
    found = partial(defaults, "translation", sizes, 30_000, None, False, training, start=start)
    assert found()["model"] == {"dropout": dropout}
    assert found(earlier={"model.d_model": 128, "model.dropout": 0.02})["model"] == {"dropout": 0.02}


def test_a_step_is_timed_on_this_processor() -> None:
    seconds = step_seconds(PRESETS["tiny"].section, 300, 64)
    assert 0 < seconds == step_seconds(PRESETS["tiny"].section, 300, 64)


def test_every_row_with_every_preset_is_a_recipe() -> None:
    for size in SIZES:
        for name in (None, *(name for name, preset in PRESETS.items() if preset.family == "transformer")):
            recipe = recipe_from(values(size, name))
            assert recipe.training.steps is None
            assert recipe.text.vocabulary == size.values["text"]["vocabulary"]

    assert learn([""], sizing.FEWEST).size == sizing.FEWEST  # the smallest vocabulary is one


def test_a_recipes_own_model_is_not_mixed_with_the_rows() -> None:
    assert "model" not in values(SIZES[0], with_model=False)
    assert values(SIZES[0], "small", with_model=False)["model"]["d_model"] == 256  # a preset that is asked for is


def test_the_printed_table_is_this_one() -> None:
    rows = re.findall(r"^\| (?:below ([\d,]+)|more) \| (.*) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len(SIZES)
    for (below, rest), size in zip(rows, SIZES, strict=True):
        assert (float(below.replace(",", "")) if below else float("inf")) == size.count
        preset, vocabulary, tokens, epochs, rate = rest.split(" | ")
        assert preset == size.preset
        printed = [int(n.replace(",", "")) for n in (vocabulary, tokens, epochs)]
        assert printed == [size.values["text"]["vocabulary"], size.values["training"]["tokens"], size.epochs]
        assert float(rate) == recipe_from(values(size)).training.rate


def test_the_printed_table_of_the_other_tasks_is_this_one() -> None:
    rows = re.findall(
        r"^\| ([a-z-]+) \| ([\d,]+|any) \| (\S+) \| (\d+) \| ", DOCUMENT.read_text(encoding="utf-8"), re.M
    )
    printed = [(task, float("inf") if below == "any" else int(below.replace(",", "")), preset, int(passes))
               for task, below, preset, passes in rows]  # fmt: skip
    assert printed == [(task, row.count, row.preset, row.epochs) for task, table in TABLES.items() for row in table]


def test_passes_are_those_of_the_family() -> None:
    def epochs(task: str, count: int, family: str) -> int:
        return sizing.size_for(TABLES[task], count).of(family).epochs

    assert (epochs("classification", 100, "rnn-encoder"), epochs("classification", 100, "bert")) == (17, 12)
    assert epochs("tagging", 10**6, "rnn-encoder") == epochs("tagging", 10**6, "bert")


def test_every_row_of_the_other_tasks_with_every_fitting_preset_is_a_recipe() -> None:
    for task, table in TABLES.items():
        for row in (one for first in table for one in (first, first.other) if one):
            fitting = [name for name, preset in PRESETS.items() if preset.family == PRESETS[row.preset].family]
            for name in (None, *fitting):
                recipe = recipe_from(values(row, name, task))
                assert (recipe.task, recipe.training.steps) == (task, None)
    recipe = recipe_from(defaults("text-to-text", SPANS, 9, None, True, {}))
    assert (recipe.training.tokens, recipe.training.select) == (512, "loss")


@pytest.mark.parametrize("tie", ["three", "none"])
def test_a_model_is_refused_where_weights_gradient_and_moments_do_not_fit(
    tie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    section, cpu = recipe_from({"model": {**PRESETS["tiny"].model, "tie": tie}}).model, torch.device("cpu")
    make = lambda: transformer(section, 300, 300)  # noqa: E731
    model = make()
    taken = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters()) * 4
    for free, fits in ((taken, True), (None, True), (taken - 1, False)):
        monkeypatch.setattr(sizing, "free_memory", lambda device, free=free: free)
        if fits:
            sizing.refuse_too_large(section, make, cpu)
            continue
        with pytest.raises(RegardError, match=r" \(.*d_model 128, .*\) .* GB .* GB"):
            sizing.refuse_too_large(section, make, cpu)
    sizing.refuse_too_large(section, lambda: transformer(section, 258, 258), cpu)  # the smallest vocabulary fits
