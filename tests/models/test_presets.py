"""The sizes of Table 3, counted by formula; its relatives', by transformers; what is published is near."""

from typing import Any

import pytest
import torch

from regard.config import TASKS, BertSection, Recipe, RnnSection, TransformerSection, recipe_from
from regard.models.presets import PRESETS, meta_model, parts_of, preset
from regard.system.errors import UsageError
from tests.refusals import refused

PAPER = {"base": 65, "B1": 58, "B2": 60, "big": 213}
PAPER |= {"C1": 36, "C2": 50, "C3": 80, "C4": 28, "C5": 168, "C6": 53, "C7": 90}
"""Millions of parameters [Vaswani17 Table 3]."""


def by_formula(pieces: int, layers: int, d: int, d_ff: int, heads: int, d_k: int, d_v: int) -> int:
    """Post-norm, everything tied; the table has one row more, the start symbol's."""
    attention = 2 * (d * heads * d_k + heads * d_k) + (d * heads * d_v + heads * d_v) + (heads * d_v * d + d)
    feedforward = d * d_ff + d_ff + d_ff * d + d
    encoder = attention + feedforward + 2 * 2 * d
    decoder = 2 * attention + feedforward + 3 * 2 * d
    return (pieces + 1) * d + layers * (encoder + decoder)


BASE = (6, 512, 2048, 8, 64, 64)
ROWS = {
    "base": BASE,
    "A1": (*BASE[:3], 1, 512, 512),
    "A2": (*BASE[:3], 4, 128, 128),
    "A3": (*BASE[:3], 16, 32, 32),
    "A4": (*BASE[:3], 32, 16, 16),
    "B1": (*BASE[:4], 16, 64),
    "B2": (*BASE[:4], 32, 64),
    **{f"C{row}": (layers, *BASE[1:]) for row, layers in ((1, 2), (2, 4), (3, 8))},
    "C4": (6, 256, 2048, 8, 32, 32),
    "C5": (6, 1024, 2048, 8, 128, 128),
    **{f"C{row}": (6, 512, d_ff, *BASE[3:]) for row, d_ff in ((6, 1024), (7, 4096))},
    **{f"D{row}": BASE for row in range(1, 5)},
    "big": (6, 1024, 4096, 16, 64, 64),
}
"""Layers, d_model, d_ff, heads, d_k and d_v of Table 3."""
EXPECTED = {name: by_formula(37_000, *sizes) for name, sizes in ROWS.items()} | {
    # Pre-norm: a norm ends each stack; relative positions: a number for each head and distance of each stack.
    "tiny": by_formula(37_000, 4, 128, 512, 4, 32, 32) + 2 * 2 * 128 + 2 * 32 * 4,
    "small": by_formula(37_000, 3, 256, 1024, 4, 64, 64) + 2 * 2 * 256 + 2 * 32 * 4,
    "E": by_formula(37_000, *BASE) + 2 * 512 * 512,  # learned positions of two sides
}
GPT2 = {"gpt2": 124, "gpt2-medium": 355, "gpt2-large": 774, "gpt2-xl": 1558}
PUBLISHED = {"bert-base": 110, "bert-large": 340, **GPT2, "t5-small": 60, "t5-base": 220, "vit-base": 86}
"""Millions of parameters [Devlin19 §3; Raffel20 §3.7; Dosovitskiy21 Table 1]; GPT-2's as its published weights have."""
START = {"t5-small": 512, "t5-base": 768}
"""What we have and they have not: a row of the table for the start symbol, which T5 spells with its pad piece."""


def count(name: str) -> int:
    counted = parts_of(meta_model(preset(name).section, preset(name).pieces))
    return sum(part.parameters for part in counted)


@pytest.mark.one_of(10)
@pytest.mark.parametrize("name", list(EXPECTED))
def test_parameters_are_counted_exactly(name: str) -> None:
    assert count(name) == EXPECTED[name]


def theirs(name: str) -> Any:
    """The same model of transformers, without memory for its weights."""
    peers = pytest.importorskip("transformers")
    large = {"num_hidden_layers": 24, "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16}
    gpt2 = {
        "gpt2": (12, 768, 12),
        "gpt2-medium": (24, 1024, 16),
        "gpt2-large": (36, 1280, 20),
        "gpt2-xl": (48, 1600, 25),
    }
    t5 = {"t5-small": {}, "t5-base": {"num_layers": 12, "d_model": 768, "d_ff": 3072, "num_heads": 12}}
    with torch.device("meta"):
        if name.startswith("bert"):
            return peers.BertForMaskedLM(peers.BertConfig(**(large if name == "bert-large" else {})))
        if name.startswith("gpt2"):
            sizes = dict(zip(("n_layer", "n_embd", "n_head"), gpt2[name], strict=True))
            return peers.GPT2LMHeadModel(peers.GPT2Config(**sizes))
        if name.startswith("t5"):
            return peers.T5ForConditionalGeneration(peers.T5Config(**t5[name]))
        return peers.ViTForImageClassification(peers.ViTConfig(num_labels=1000))


@pytest.mark.one_of(12)
@pytest.mark.parametrize("name", list(PUBLISHED))
def test_relatives_have_as_many_parameters_as_those_of_transformers(name: str) -> None:
    assert count(name) == sum(weight.numel() for weight in theirs(name).parameters()) + START.get(name, 0)


@pytest.mark.parametrize("name", [name for name in PRESETS if name not in EXPECTED])
def test_a_preset_of_a_relative_is_a_valid_recipe_of_a_task_its_family_can_do(name: str) -> None:
    row = preset(name)
    task = next(info.name for info in TASKS.values() if row.family in info.families)
    recipe = recipe_from({"task": task, "model": {"family": row.family, **row.model}})
    assert recipe.model == row.section
    assert recipe.model.family == row.family


@pytest.mark.one_of(12)
@pytest.mark.parametrize(("name", "figure"), [*PAPER.items(), *PUBLISHED.items()])
def test_a_published_figure_stands_beside_and_is_near(name: str, figure: int) -> None:
    assert preset(name).parameters == figure
    assert abs(count(name) / 1e6 - figure) < (max(2.6, 0.03 * figure) if name in PAPER else 0.04 * figure)


def test_only_published_figures_stand_there() -> None:
    assert {name for name, row in PRESETS.items() if row.parameters} == set(PAPER) | set(PUBLISHED)


@pytest.mark.parametrize("name", list(EXPECTED))
def test_a_preset_is_a_valid_recipe_that_differs_from_base_in_its_values(name: str) -> None:
    row = PRESETS[name]
    recipe = Recipe.model_validate({"model": {"max_positions": 512, **row.model}, "training": row.training})
    base = TransformerSection()
    assert all(getattr(recipe.model, field) == value for field, value in row.model.items())
    assert name in ("base", "D3", "D4") or any(getattr(base, f) != v for f, v in row.model.items())


def test_parts_are_those_of_figure_1_and_shared_ones_count_once() -> None:
    model = meta_model(TransformerSection(), 37_000)
    assert all(parameter.is_meta for parameter in model.parameters())
    named = {part.name: part.parameters for part in parts_of(model)}
    assert named["source embedding"] == 37_001 * 512
    assert named["target embedding"] == named["output"] == named["encoder.final"] == 0
    assert named["encoder.5.attention"] == 4 * (512 * 512 + 512)
    assert named["decoder.0.cross"] == named["decoder.0.attention"] == named["encoder.5.attention"]
    assert named["decoder.3.feedforward"] == 2 * 512 * 2048 + 2048 + 512
    untied = {part.name: part.parameters for part in parts_of(meta_model(TransformerSection(tie="none"), 100, 200))}
    assert [untied[n] for n in ("source embedding", "target embedding", "output")] == [101 * 512, *[201 * 512] * 2]


def test_parts_of_every_family_are_all_its_parameters() -> None:
    tiny = (PRESETS[name].section for name in ("tiny", "bert-tiny", "gpt-tiny", "vit-tiny"))
    biased = TransformerSection(output_bias=True, tie="none")
    for model in (biased, RnnSection(input_feeding=True), BertSection(positions="relative"), *tiny):
        built = meta_model(model, 90)
        counted = parts_of(built)
        assert sum(part.parameters for part in counted) == sum(weight.numel() for weight in built.parameters())
        assert len({part.name for part in counted}) == len(counted)
    named = [part.name for part in parts_of(meta_model(PRESETS["bert-tiny"].section, 90))]
    assert (named[0], named[-1]) == ("embedding", "head")


def test_an_unknown_preset_is_answered_with_the_nearest() -> None:
    with refused(UsageError, "preset", "bas", "base"):
        preset("bas")
