"""Head measures, compared with plain loops; rollout, compared with enumerating all paths."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from regard.explore.forward.record import measures, rollout


def drawn(seed: int, heads: int, queries: int, keys: int) -> np.ndarray:
    score = np.random.default_rng(seed).normal(0, 3, (heads, queries, keys))
    return np.exp(score) / np.exp(score).sum(axis=2, keepdims=True)


@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (4, 7), (1, 6), (6, 1)])
def test_measures_are_means_over_the_queries(queries: int, keys: int) -> None:
    weight_HQK = drawn(1, 3, queries, keys)
    special = [key in (0, keys - 1) for key in range(keys)]
    found = measures(weight_HQK, special)
    for head, weight_QK in enumerate(weight_HQK):
        entropies, distances, shares = [], [], []
        for query, row in enumerate(weight_QK):
            place = query if queries == keys else query * (keys - 1) / max(1, queries - 1)
            entropies.append(-sum(w * math.log2(w) for w in row))
            distances.append(sum(w * abs(place - key) for key, w in enumerate(row)))
            shares.append(sum(w for w, one in zip(row, special, strict=True) if one))
        assert found.entropy_H[head] == pytest.approx(np.mean(entropies))
        assert found.distance_H[head] == pytest.approx(np.mean(distances))
        assert found.special_H[head] == pytest.approx(np.mean(shares))


def test_the_ends_of_the_measures() -> None:
    even, one, nothing = np.full((4, 4), 0.25), np.eye(4), np.zeros((4, 4))
    found = measures(np.stack([even, one, nothing]), [True, False, False, True])
    np.testing.assert_allclose(found.entropy_H, [2.0, 0.0, 0.0])
    np.testing.assert_allclose(found.distance_H, [1.25, 0.0, 0.0])
    np.testing.assert_allclose(found.special_H, [0.5, 0.5, 0.0])
    half = one.copy()
    half[2:] = 0  # two queries see nothing, and count nothing
    assert measures(half[None], [True, False, False, False]).special_H[0] == pytest.approx(0.5)


def test_the_distance_between_patches_is_along_the_straight_line() -> None:
    """Reading order would have the first patch of a row far from the one above it."""
    weight_HQK, far = drawn(2, 2, 7, 7), list[list[float]]()
    for weight_QK in weight_HQK:
        far.append([])
        for query in range(6):
            share = weight_QK[query + 1, 1:] / sum(weight_QK[query + 1, 1:])
            far[-1].append(sum(w * math.dist(divmod(query, 2), divmod(key, 2)) for key, w in enumerate(share)))
    found = measures(weight_HQK, [True] + [False] * 6, (3, 2))
    np.testing.assert_allclose(found.distance_H, np.mean(far, axis=1))


def test_rollout_sums_over_all_paths() -> None:
    layers = [drawn(seed, 2, 4, 4) for seed in range(3)]
    steps = [(layer.mean(axis=0) + np.eye(4)) / 2 for layer in layers]
    wanted = np.zeros((4, 4))
    for first, second, third, last in itertools.product(range(4), repeat=4):
        wanted[first, last] += steps[2][first, second] * steps[1][second, third] * steps[0][third, last]
    found = rollout(layers)
    np.testing.assert_allclose(found, wanted)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(rollout([np.stack([np.eye(4)] * 2)] * 3), np.eye(4))
