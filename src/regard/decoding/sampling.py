"""Drawing from next-token scores in NumPy: the filters of ``models/decoding/next_token`` [Holtzman20 §3.1]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.config import Decoding

Ids = NDArray[np.int64]
Floats = NDArray[Any]
"""Scores, in float32 or float64."""


def sample(
    score_NV: Floats,
    uniform_N: NDArray[np.float64],
    decoding: Decoding,
    without: Sequence[int],
    seen_NS: Ids | None,
    banned_NF: Ids | None = None,
) -> Ids:
    """One token per row, -1 where none is left; a row depends on its own scores and its own number only."""
    score_NV = score_NV.copy()
    if seen_NS is not None:
        _penalize_repetition(score_NV, seen_NS, decoding.repetition_penalty)
    score_NV[:, list(without)] = -np.inf
    if banned_NF is not None:
        row_M, place_M = np.nonzero((banned_NF >= 0) & (banned_NF < score_NV.shape[1]))
        score_NV[row_M, banned_NF[row_M, place_M]] = -np.inf
    if decoding.temperature == 0.0:
        return np.where(score_NV.max(1) == -np.inf, -1, score_NV.argmax(1))  # ties to the smaller id
    order_NV = None
    sorted_NV = score_NV
    if decoding.top_k or decoding.top_p < 1.0:
        order_NV = np.argsort(-score_NV, axis=1, kind="stable")  # ties to the smaller id
        sorted_NV = np.take_along_axis(score_NV, order_NV, axis=1)
    place_N = _draw(filter_logits(sorted_NV, decoding), uniform_N)
    token_N = place_N if order_NV is None else np.take_along_axis(order_NV, place_N[:, None], axis=1)[:, 0]
    return np.where(score_NV.max(1) == -np.inf, -1, token_N)


def _draw(score_NV: Floats, uniform_N: NDArray[np.float64]) -> Ids:
    """The place in each row where the running sum of the probabilities passes ``uniform``.

    Where few tokens are left, only these are summed: the others add nothing.
    """
    left_NV = score_NV > -np.inf
    count_N = np.count_nonzero(left_NV, axis=1)
    if 4 * count_N.max(initial=1) >= score_NV.shape[1]:
        return _first_above(score_NV, uniform_N)
    row_M, place_M = left_NV.nonzero()
    column_M = np.arange(len(row_M)) - (count_N.cumsum() - count_N)[row_M]
    place_NR = np.zeros((len(score_NV), count_N.max(initial=1)), np.int64)
    score_NR = np.full(place_NR.shape, -np.inf, score_NV.dtype)
    place_NR[row_M, column_M], score_NR[row_M, column_M] = place_M, score_NV[row_M, place_M]
    return np.take_along_axis(place_NR, _first_above(score_NR, uniform_N)[:, None], axis=1)[:, 0]


def _first_above(score_NR: Floats, uniform_N: NDArray[np.float64]) -> Ids:
    """The first sum above the number: a token without probability adds nothing, so it is never the first."""
    with np.errstate(invalid="ignore"):
        sum_NR = np.exp(score_NR - score_NR.max(1)[:, None]).cumsum(1, dtype=np.float64)
    bound_N = uniform_N * sum_NR[:, -1]
    return np.minimum((sum_NR <= bound_N[:, None]).sum(1), sum_NR.shape[1] - 1)


def filter_logits(score_NV: Floats, decoding: Decoding) -> Floats:
    """Scores over the temperature of the tokens that may be drawn, minus infinity for the others.

    The temperature must not be zero; for ``top_k`` and ``top_p`` each row is sorted, best first.
    """
    limits = np.finfo(np.float32)
    highest_N1 = np.maximum(score_NV.max(1, keepdims=True), limits.min)
    with np.errstate(over="ignore"):  # where the temperature is next to nothing, only the best is left
        score_NV = (score_NV - highest_N1) / np.float32(max(decoding.temperature, float(limits.tiny)))
    if decoding.top_k:
        score_NV[:, decoding.top_k :] = -np.inf
    if decoding.top_p < 1.0:
        probability_NV = _probabilities(score_NV)
        outside_NV = probability_NV.cumsum(1) - probability_NV >= decoding.top_p
        outside_NV[:, 0] = False
        score_NV = np.where(outside_NV, -np.inf, score_NV)
    if decoding.min_p > 0.0:
        score_NV = np.where(score_NV < np.log(decoding.min_p), -np.inf, score_NV)  # the largest score is zero
    if decoding.typical < 1.0:
        score_NV = _keep_typical(score_NV, decoding.typical)
    return score_NV


def _keep_typical(score_NV: Floats, share: float) -> Floats:
    """The tokens whose surprisal is nearest to the entropy and that hold ``share`` [Meister23]."""
    probability_NV = _probabilities(score_NV)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_probability_NV = np.log(probability_NV)
        entropy_N = -np.nansum(probability_NV * log_probability_NV, axis=1)
    distance_NV = np.abs(log_probability_NV + entropy_N[:, None])
    order_NV = np.argsort(distance_NV, axis=1, kind="stable")
    held_NV = np.take_along_axis(probability_NV, order_NV, axis=1).cumsum(1)
    last_N = np.minimum((held_NV < share).sum(1), score_NV.shape[1] - 1)
    farthest_N = np.take_along_axis(np.take_along_axis(distance_NV, order_NV, axis=1), last_N[:, None], axis=1)
    return np.where(distance_NV > farthest_N, -np.inf, score_NV)


def _penalize_repetition(score_NV: Floats, seen_NS: Ids, penalty: float) -> None:
    """Scores of the tokens that a row has already: divided by ``penalty`` if positive, else multiplied by it."""
    row_M, place_M = np.nonzero((seen_NS >= 0) & (seen_NS < score_NV.shape[1]))
    places = row_M, seen_NS[row_M, place_M]
    old_M = score_NV[places]
    score_NV[places] = np.where(old_M < 0, old_M * penalty, old_M / penalty)


def _probabilities(score_NV: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        weight_NV = np.exp(score_NV - score_NV.max(1, keepdims=True))
        return np.asarray(weight_NV / weight_NV.sum(1, keepdims=True))
