"""Neighbours, compared with plain loops; the plane, compared with the covariance's eigenvectors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from regard.explore.forward.vector_space import Plane, cosines, nearest

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
