"""The sizes of Table 3, counted by formula; the paper's figures stand beside and are near."""

import pytest

from regard.config import Recipe, TransformerSection
from regard.errors import UsageError
from regard.models.presets import PAPER_VOCABULARY, PRESETS, parts, preset

PAPER = {
    "base": 65,
    "B1": 58,
    "B2": 60,
    "C1": 36,
    "C2": 50,
    "C3": 80,
    "C4": 28,
    "C5": 168,
    "C6": 53,
    "C7": 90,
    "big": 213,
}
"""Millions of parameters [Vaswani17 Table 3]."""
LEARNED = 2 * 512


def by_formula(pieces: int, layers: int, d: int, d_ff: int, heads: int, d_k: int, d_v: int) -> int:
    """Post-norm, everything tied; the table has one row more, the start symbol's."""
    attention = 2 * (d * heads * d_k + heads * d_k) + (d * heads * d_v + heads * d_v) + (heads * d_v * d + d)
    feedforward = d * d_ff + d_ff + d_ff * d + d
    encoder = attention + feedforward + 2 * 2 * d
    decoder = 2 * attention + feedforward + 3 * 2 * d
    return (pieces + 1) * d + layers * (encoder + decoder)


BASE = (6, 512, 2048, 8, 64, 64)
EXPECTED = {
    "tiny": by_formula(37_000, 4, 128, 512, 4, 32, 32) + 2 * 2 * 128,  # pre-norm: a norm ends each stack
    "small": by_formula(37_000, 3, 256, 1024, 4, 64, 64) + 2 * 2 * 256,
    "base": by_formula(37_000, *BASE),
    "A1": by_formula(37_000, 6, 512, 2048, 1, 512, 512),
    "A2": by_formula(37_000, 6, 512, 2048, 4, 128, 128),
    "A3": by_formula(37_000, 6, 512, 2048, 16, 32, 32),
    "A4": by_formula(37_000, 6, 512, 2048, 32, 16, 16),
    "B1": by_formula(37_000, 6, 512, 2048, 8, 16, 64),
    "B2": by_formula(37_000, 6, 512, 2048, 8, 32, 64),
    "C1": by_formula(37_000, 2, *BASE[1:]),
    "C2": by_formula(37_000, 4, *BASE[1:]),
    "C3": by_formula(37_000, 8, *BASE[1:]),
    "C4": by_formula(37_000, 6, 256, 2048, 8, 32, 32),
    "C5": by_formula(37_000, 6, 1024, 2048, 8, 128, 128),
    "C6": by_formula(37_000, 6, 512, 1024, 8, 64, 64),
    "C7": by_formula(37_000, 6, 512, 4096, 8, 64, 64),
    **{row: by_formula(37_000, *BASE) for row in ("D1", "D2", "D3", "D4")},
    "E": by_formula(37_000, *BASE) + LEARNED * 512,
    "big": by_formula(37_000, 6, 1024, 4096, 16, 64, 64),
}


def count(name: str) -> int:
    counted = parts(TransformerSection(**preset(name).model), PAPER_VOCABULARY, PAPER_VOCABULARY)
    return sum(part.parameters for part in counted)


@pytest.mark.parametrize("name", list(PRESETS))
def test_parameters_are_counted_exactly(name: str) -> None:
    assert count(name) == EXPECTED[name]


@pytest.mark.parametrize("name", list(PAPER))
def test_the_papers_figure_stands_beside_and_is_near(name: str) -> None:
    assert preset(name).parameters == PAPER[name]
    assert abs(count(name) / 1e6 - PAPER[name]) < max(2.6, 0.03 * PAPER[name])


def test_only_the_papers_figures_stand_there() -> None:
    assert {name for name, row in PRESETS.items() if row.parameters} == set(PAPER)


@pytest.mark.parametrize("name", list(PRESETS))
def test_a_preset_is_a_valid_recipe_that_differs_from_base_in_its_values(name: str) -> None:
    row = PRESETS[name]
    recipe = Recipe.model_validate({"model": {"max_positions": 512, **row.model}, "training": row.training})
    base = TransformerSection()
    assert all(getattr(recipe.model, field) == value for field, value in row.model.items())
    assert name in ("base", "D3", "D4") or any(getattr(base, f) != v for f, v in row.model.items())


def test_parts_are_those_of_figure_1_and_shared_ones_count_once() -> None:
    named = {part.name: part.parameters for part in parts(TransformerSection(), 37_000, 37_000)}
    assert named["source embedding"] == 37_001 * 512
    assert named["target embedding"] == named["output"] == named["encoder.final"] == 0
    assert named["encoder.5.attention"] == 4 * (512 * 512 + 512)
    assert named["decoder.0.cross"] == named["decoder.0.attention"] == named["encoder.5.attention"]
    assert named["decoder.3.feedforward"] == 2 * 512 * 2048 + 2048 + 512
    untied = {part.name: part.parameters for part in parts(TransformerSection(tie="none"), 100, 200)}
    assert [untied[n] for n in ("source embedding", "target embedding", "output")] == [101 * 512, *[201 * 512] * 2]


def test_an_unknown_preset_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"unknown preset 'bas'\. Did you mean 'base'"):
        preset("bas")
