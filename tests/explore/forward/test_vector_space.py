"""Cosines, planes, positions and layer paths, compared with plain loops."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from regard.config import VitSection
from regard.explore.questions.vectors import Plane, cosines, layer_paths, nearest, position_views
from regard.models.build import vit
from regard.system.errors import RegardError
from tests.explore.forward.small_scenes import SIZES, alone, both, recurrent
from tests.refusals import refused

DRAWN = np.random.default_rng(3)


def test_neighbours_are_those_of_plain_loops() -> None:
    table = DRAWN.normal(size=(30, 5))
    for place in (0, 17):
        wanted = []
        for other, row in enumerate(table):
            dot = sum(a * b for a, b in zip(row, table[place], strict=True))
            wanted.append((dot / math.dist(row, [0] * 5) / math.dist(table[place], [0] * 5), other))
        expected = [(other, cosine) for cosine, other in sorted(wanted, reverse=True) if other != place][:7]
        found = nearest(table, place, 7)
        assert [one for one, _ in found] == [one for one, _ in expected]
        assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in expected])


def test_what_has_no_direction_is_near_to_nothing() -> None:
    table = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [-1.0, 0.0]])
    assert cosines(table, table[0]).tolist() == [0, 0, 0, 0]
    assert cosines(table, table[1]).tolist() == [0, 1, 1, -1]
    assert nearest(table, 1, 10) == [(2, 1.0), (0, 0.0), (3, -1.0)]


def test_the_plane_is_that_of_the_largest_eigenvalues() -> None:
    points = DRAWN.normal(size=(40, 6)) * [5, 1, 3, 0.5, 0.2, 0.1] + 7
    found = Plane.fit(points)
    values, vectors = np.linalg.eigh(np.cov(points.T))
    assert found.share == pytest.approx(values[-2:].sum() / values.sum())
    for axis, vector in zip(found.axes_AD, vectors.T[:-3:-1], strict=True):
        assert abs(axis @ vector) == pytest.approx(1)
        assert axis[np.abs(axis).argmax()] > 0
    np.testing.assert_allclose(found.on(points).mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(found.on(points), (points - points.mean(axis=0)) @ found.axes_AD.T)


@pytest.mark.parametrize("points", [[[1.0, 2.0, 3.0]], [[1.0], [3.0]], [[2.0, 2.0]] * 4])
def test_few_points_lie_on_it_too(points: list[list[float]]) -> None:
    found = Plane.fit(np.array(points))
    assert found.on(np.array(points)).shape == (len(points), 2)
    assert np.isfinite(found.on(np.array(points))).all()
    assert found.share == pytest.approx(1)


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
    before = [2, 1, 0]  # the bucket of what stands so far before the query
    behind = [5, 6] if stack == "encoder" else [0, 0]  # two-way: half of them are for what stands behind
    np.testing.assert_allclose(found.bias_HX.T, part.weight.detach().numpy()[before + behind], atol=1e-6)


def test_linear_biases_fall_by_the_slope_of_each_head() -> None:
    seen = both(positions="alibi")
    found = position_views(seen.task.model, seen.task.recipe.model, "encoder", 3)
    assert found.bias_HX is not None
    assert not found.vector_TD.any()
    slope_H = seen.task.model.encoder.input.positions.slope_H.numpy()
    np.testing.assert_allclose(found.bias_HX, -slope_H[:, None] * [2, 1, 0, 1, 2])


def test_rotary_positions_turn_by_the_formula() -> None:
    seen = both(positions="rotary", d_k=6, rotary_base=100.0)
    found = position_views(seen.task.model, seen.task.recipe.model, "decoder", 9)
    angle_TK = np.arange(9)[:, None] * 100.0 ** (-np.arange(3) / 3)
    np.testing.assert_allclose(found.vector_TD, np.hstack([np.cos(angle_TK), np.sin(angle_TK)]), atol=1e-6)
    assert found.likeness_by_distance == pytest.approx(np.cos(angle_TK).mean(1), abs=1e-6)
    assert found.bias_HX is None


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


def test_vectors_are_those_between_the_layers() -> None:
    seen = both()
    model = seen.task.model
    with torch.no_grad():
        hidden_TD = seen.run()
        entered = model.encoder.input(torch.tensor([5, 6, 7, 8, 0]), torch.arange(5), 5)
    found = layer_paths([seen], "decoder").vectors[0]
    assert found.shape == (3, 3, 12)
    np.testing.assert_allclose(found[-1], hidden_TD.numpy(), atol=1e-6)
    np.testing.assert_allclose(layer_paths([seen], "encoder").vectors[0][0], entered.numpy(), atol=1e-6)


def test_paths_lie_on_one_plane() -> None:
    one = alone()
    other = dataclasses.replace(one, run=lambda: one.task.model.eval() and one.run())
    found = layer_paths([one, other], "decoder")
    assert [path.shape for path in found.paths] == [(3, 5, 2), (3, 5, 2)]
    np.testing.assert_array_equal(*found.paths)
    points = np.concatenate([each.reshape(-1, 12) for each in found.vectors])
    spread = ((points - points.mean(axis=0)) ** 2).sum()
    assert found.plane.share == pytest.approx(sum((path**2).sum() for path in found.paths) / spread, rel=1e-4)
    assert found.layer_cosines((0, 2), (1, 2)) == pytest.approx([1, 1, 1])
    wanted = [
        float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
        for a, b in zip(*found.vectors[0][:, [1, 3]].transpose(1, 0, 2), strict=True)
    ]
    assert found.layer_cosines((0, 1), (1, 3)) == pytest.approx(wanted, abs=1e-5)


def test_a_recurrence_has_no_layers_to_follow() -> None:
    with refused(RegardError, "stack"):
        layer_paths([recurrent(score="dot")], "encoder")
