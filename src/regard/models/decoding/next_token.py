"""Next-token scores of a step, kept on the device until queried (a ``decoding.step.Answer``), and logits filters.

Filters are applied in order, each to what the ones before it left, as in other libraries: repetition penalty,
temperature, top-k, top-p, min-p, typical [Keskar19 §4.1; Fan18; Holtzman20 §3.1; Nguyen25; Meister23].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from regard.config import Decoding


class NextTokenScores:
    """The distribution ``softmax(score_NV)`` over the next token of every row [Vaswani17 §3.4].

    Args:
        weights: cross-attention weights of this step, if requested: for each sentence (heads, rows, memory).
    """

    def __init__(self, score_NV: Tensor, weights: Sequence[Tensor] = ()) -> None:
        self._score_NV = score_NV
        self._weights = weights

    def _wide(self) -> Tensor:
        return self._score_NV if self._score_NV.dtype == torch.float64 else self._score_NV.float()

    def _log_sum_N1(self) -> Tensor:
        return self._wide().logsumexp(1, keepdim=True).double()

    def best(self, k: int, without: Sequence[int] = ()) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The k most probable tokens of each row, best first, ties to the smaller id."""
        score_NV = _exclude(self._score_NV, without)
        score_NR, ids_NR = top_k(score_NV, min(k, score_NV.shape[1]))
        log_probability_NR = (score_NR.double() - self._log_sum_N1()).cpu().numpy()
        ids = ids_NR.cpu().numpy()
        order = np.lexsort((ids, -log_probability_NR), axis=1)
        return np.take_along_axis(ids, order, 1), np.take_along_axis(log_probability_NR, order, 1)

    def most_probable(self, without: Sequence[int] = ()) -> NDArray[np.int64]:
        """The most probable token of each row; -1 where none is left, or its score is not a number."""
        ids_NR, log_probability_NR = self.best(1, without)
        return np.where(log_probability_NR > -np.inf, ids_NR, -1)[:, 0]

    def of(self, tokens_N: NDArray[np.int64]) -> NDArray[np.float64]:
        """The log-probability of one given token per row."""
        tokens = torch.from_numpy(tokens_N).to(self._score_NV.device)[:, None]
        return (self._score_NV.gather(1, tokens).double() - self._log_sum_N1())[:, 0].cpu().numpy()

    def sample(
        self,
        uniform_N: NDArray[np.float64],
        decoding: Decoding,
        without: Sequence[int] = (),
        seen_NS: NDArray[np.int64] | None = None,
        banned_NF: NDArray[np.int64] | None = None,
    ) -> NDArray[np.int64]:
        """One token per row: where the running sum of the probabilities that ``decoding`` leaves passes ``uniform``.

        A row depends on its own scores and its own number only.
        """
        score_NV = self._wide()
        if seen_NS is not None:
            seen = torch.from_numpy(seen_NS).to(score_NV.device)
            score_NV = penalize_repetition(score_NV, seen, decoding.repetition_penalty)
        score_NV = _exclude(score_NV, without)
        if banned_NF is not None:
            row_M, place_M = ((banned_NF >= 0) & (banned_NF < score_NV.shape[1])).nonzero()
            places = torch.from_numpy(row_M), torch.from_numpy(banned_NF[row_M, place_M])
            score_NV = score_NV.index_put(places, score_NV.new_tensor(-torch.inf))
        score_NR, ids_NR = top_k(score_NV, 1) if decoding.temperature == 0.0 else filter_logits(score_NV, decoding)
        sum_NR = score_NR.softmax(1).cumsum(1, dtype=torch.float64)
        bound_N = torch.from_numpy(uniform_N).to(sum_NR.device) * sum_NR[:, -1]
        # The first sum above the number: a token without probability adds nothing, so it is never the first.
        place_N = torch.searchsorted(sum_NR, bound_N[:, None], right=True)[:, 0].clamp(max=sum_NR.shape[1] - 1)
        token_N = ids_NR.gather(1, place_N[:, None])[:, 0].masked_fill(score_NV.amax(1) == -torch.inf, -1)
        return token_N.cpu().numpy()

    def all(self) -> NDArray[np.float64]:
        """Every log-probability, ``log_probability_NV``."""
        return (self._score_NV.double() - self._log_sum_N1()).cpu().numpy()

    def rows(self, row_M: NDArray[np.int64]) -> NextTokenScores:
        """That of some rows alone, without weights."""
        return NextTokenScores(self._score_NV[torch.from_numpy(row_M)])

    def context(self) -> NDArray[np.float64] | None:
        """Cross-attention weights of all layers' heads, ``weight_NHS``, or None if not requested.

        Those of a sentence with a shorter memory end in zeros.
        """
        if not self._weights:
            return None
        longest = max(weight.shape[2] for weight in self._weights)
        padded = [F.pad(weight, (0, longest - weight.shape[2])).transpose(0, 1) for weight in self._weights]
        return torch.cat(padded).double().cpu().numpy()


def _exclude(score_NV: Tensor, without: Sequence[int]) -> Tensor:
    if not without:
        return score_NV
    return score_NV.index_fill(1, torch.tensor(list(without), device=score_NV.device), -torch.inf)


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
        probability_NR = score_NR.softmax(1)
        outside_NR = probability_NR.cumsum(1) - probability_NR >= decoding.top_p  # the fewest that hold that share
        outside_NR[:, 0] = False
        score_NR = score_NR.masked_fill(outside_NR, -torch.inf)
    if decoding.min_p > 0.0:
        probability_NR = score_NR.softmax(1)
        least_N = decoding.min_p * probability_NR.amax(1)
        score_NR = score_NR.masked_fill(probability_NR < least_N[:, None], -torch.inf)
    if decoding.typical < 1.0:
        score_NR = _keep_typical(score_NR, decoding.typical)
    return score_NR, ids_NR


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
