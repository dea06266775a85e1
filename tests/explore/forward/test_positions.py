"""Positional encodings, compared with the paper's formula in plain loops and with the modules' tables."""

from __future__ import annotations

import math

import numpy as np
import pytest

from regard.config import VitSection
from regard.explore.forward.vector_space import position_views
from regard.models.build import vit
from regard.system.errors import RegardError
from tests.explore.forward.small_scenes import SIZES, alone, both, recurrent
from tests.refusals import refused


def test_sinusoids_are_the_formula_and_their_likeness_depends_on_distance_alone() -> None:
    seen = both()
    found = position_views(seen.task.model, seen.task.recipe.model, "encoder", 9)
    for place in range(9):
        for pair in range(6):
            angle = place / 10000 ** (2 * pair / 12)
            assert found.vector_TD[place, 2 * pair] == pytest.approx(math.sin(angle), abs=1e-6)
            assert found.vector_TD[place, 2 * pair + 1] == pytest.approx(math.cos(angle), abs=1e-6)
    expected = [sum(math.cos(far / 10000 ** (2 * pair / 12)) for pair in range(6)) / 6 for far in range(9)]
    assert found.likeness_by_distance == pytest.approx(expected, abs=1e-6)
    for one in range(9):
        for other in range(9):
            assert found.likeness_TT[one, other] == pytest.approx(expected[abs(one - other)], abs=1e-6)
    assert found.bias_HX is None


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_relative_positions_add_to_scores_by_distance(stack: str) -> None:
    seen = both(positions="relative", relative_buckets=8, relative_distance=16)
    part = getattr(seen.task.model, stack).input.positions
    found = position_views(seen.task.model, seen.task.recipe.model, stack, 3)
    assert not found.vector_TD.any()
    assert found.likeness_by_distance == [0, 0, 0]
    assert found.bias_HX is not None
    before = [
        2,
        1,
        0,
    ]  # the bucket of what stands so far before the query; two-way, half of them are for what is behind
    behind = [5, 6] if stack == "encoder" else [0, 0]  # two-way: half of them are for what stands behind
    np.testing.assert_allclose(found.bias_HX.T, part.weight.detach().numpy()[before + behind], atol=1e-6)


def test_learned_positions_end_where_their_table_does() -> None:
    seen = both(positions="learned", max_positions=6)
    found = position_views(seen.task.model, seen.task.recipe.model, "decoder", 100)
    np.testing.assert_array_equal(found.vector_TD, seen.task.model.decoder.input.positions.weight.detach().numpy())


def test_an_image_has_its_class_token_and_its_patches() -> None:
    section = VitSection(layers=1, height=6, width=4, channels=1, patch=2, positions="grid", **SIZES)
    assert position_views(vit(section, 3, 1), section, "encoder", 100).vector_TD.shape == (7, 12)


def test_who_has_none() -> None:
    seen = recurrent(score="dot")
    assert not position_views(seen.task.model, seen.task.recipe.model, "encoder", 4).vector_TD.any()
    one = alone()
    assert position_views(one.task.model, one.task.recipe.model, "decoder", 4).vector_TD.shape == (4, 12)
    with refused(RegardError, "stack"):
        position_views(one.task.model, one.task.recipe.model, "encoder", 4)
