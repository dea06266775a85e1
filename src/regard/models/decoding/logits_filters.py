"""Logits filters for sampling, applied in order, each to what the ones before it left, as in other libraries.

Repetition penalty, temperature, top-k, top-p, min-p, typical [Keskar19 §4.1; Fan18; Holtzman20 §3.1; Nguyen25;
Meister23].
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.config import Decoding


def top_k(score_NV: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest scores of each row and their ids; which of equal ones topk takes is open, so then sort stably."""
    score_NR, ids_NR = score_NV.topk(min(k + 1, score_NV.shape[1]), dim=1)
    if score_NR.shape[1] > k and bool((score_NR[:, k - 1] == score_NR[:, k]).any()):
        score_NR, ids_NR = score_NV.sort(dim=1, descending=True, stable=True)
    return score_NR[:, :k], ids_NR[:, :k]


def penalize_repetition(score_NV: Tensor, seen_NS: Tensor, penalty: float) -> Tensor:
    """Scores of the tokens that a row has already: divided by ``penalty`` if positive, else multiplied by it.

    The discount of [Keskar19 §4.1], which divides always, and so favours where a score is negative; this does not.

    Args:
        seen_NS: ids; those outside the vocabulary (-1 where a row has fewer) count for nothing.
    """
    row_M, place_M = ((seen_NS >= 0) & (seen_NS < score_NV.shape[1])).nonzero(as_tuple=True)
    places = (row_M, seen_NS[row_M, place_M])
    old_M = score_NV[places]
    return score_NV.index_put(places, torch.where(old_M < 0, old_M * penalty, old_M / penalty))


def filter_logits(score_NV: Tensor, decoding: Decoding) -> tuple[Tensor, Tensor]:
    """Scores over the temperature of the tokens that may be drawn, minus infinity for the others, and their ids.

    The temperature must not be zero. The R columns are all tokens, or fewer and sorted where that was cheaper.
    """
    # Scores from the largest down: however cold, the largest stays zero and nothing overflows.
    limits = torch.finfo(score_NV.dtype)
    highest_N = score_NV.amax(1).clamp(min=limits.min)
    score_NV = (score_NV - highest_N[:, None]) / max(decoding.temperature, limits.tiny)
    if decoding.top_k:
        score_NR, ids_NR = top_k(score_NV, min(decoding.top_k, score_NV.shape[1]))
    elif decoding.top_p < 1.0:
        score_NR, ids_NR = score_NV.sort(dim=1, descending=True, stable=True)
    else:
        score_NR, ids_NR = score_NV, torch.arange(score_NV.shape[1], device=score_NV.device).expand_as(score_NV)
    if decoding.top_p < 1.0:
        score_NR = _keep_top_p(score_NR, decoding.top_p)
    if decoding.min_p > 0.0:
        probability_NR = score_NR.softmax(1)
        least_N = decoding.min_p * probability_NR.amax(1)
        score_NR = score_NR.masked_fill(probability_NR < least_N[:, None], -torch.inf)
    if decoding.typical < 1.0:
        score_NR = _keep_typical(score_NR, decoding.typical)
    return score_NR, ids_NR


def _keep_top_p(score_NR: Tensor, share: float) -> Tensor:
    """The fewest tokens that hold ``share`` of the probability [Holtzman20 §3.1]; the scores are sorted."""
    probability_NR = score_NR.softmax(1)
    before_NR = probability_NR.cumsum(1) - probability_NR
    outside_NR = before_NR >= share
    outside_NR[:, 0] = False
    return score_NR.masked_fill(outside_NR, -torch.inf)


def _keep_typical(score_NR: Tensor, share: float) -> Tensor:
    """The tokens whose surprisal is nearest to the entropy and that hold ``share`` [Meister23]."""
    log_probability_NR = score_NR.log_softmax(1)
    probability_NR = log_probability_NR.exp()
    entropy_N = -(probability_NR * log_probability_NR).nansum(1)
    distance_NR = (log_probability_NR + entropy_N[:, None]).abs()
    sorted_NR, order_NR = distance_NR.sort(dim=1, stable=True)
    held_NR = probability_NR.gather(1, order_NR).cumsum(1)
    last_N = (held_NR < share).sum(1).clamp(max=score_NR.shape[1] - 1)
    return score_NR.masked_fill(distance_NR > sorted_NR.gather(1, last_N[:, None]), -torch.inf)
