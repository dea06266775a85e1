"""Next-token scores of a step, kept on the device until queried; a ``decoding.step.Answer``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from regard.config import Decoding
from regard.models.decoding.logits_filters import filter_logits, penalize_repetition, top_k


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
        ids_N1, log_probability_N1 = self.best(1, without)
        return np.where(log_probability_N1 > -np.inf, ids_N1, -1)[:, 0]

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
    ) -> NDArray[np.int64]:
        """One token per row: where the running sum of the probabilities that ``decoding`` leaves passes ``uniform``.

        A row depends on its own scores and its own number only.
        """
        score_NV = self._wide()
        if seen_NS is not None:
            seen = torch.from_numpy(seen_NS).to(score_NV.device)
            score_NV = penalize_repetition(score_NV, seen, decoding.repetition_penalty)
        score_NV = _exclude(score_NV, without)
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

    def context(self) -> NDArray[np.float64] | None:
        """Cross-attention weights of the last layer, ``weight_NHS``, or None if not requested.

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
