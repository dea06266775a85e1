"""The lazy answer of a step: scores stay on the device until asked (fits ``decoding.step.Answer`` by shape)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class ScoreAnswer:
    """The distribution ``softmax(score_NV)`` over the next token of every row [Vaswani17 §3.4].

    Args:
        weight_NHS: cross-attention weights of this step, if they were asked for.
    """

    def __init__(self, score_NV: Tensor, weight_NHS: Tensor | None = None) -> None:
        self._score_NV = score_NV
        self._weight_NHS = weight_NHS

    def _log_sum_N1(self) -> Tensor:
        wide_NV = self._score_NV if self._score_NV.dtype == torch.float64 else self._score_NV.float()
        return wide_NV.logsumexp(1, keepdim=True).double()

    def best(self, k: int, without: Sequence[int] = ()) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The k most probable tokens of each row, best first, ties to the smaller id."""
        score_NV = self._score_NV
        if without:
            score_NV = score_NV.index_fill(1, torch.tensor(list(without), device=score_NV.device), -torch.inf)
        score_NR, ids_NR = _largest(score_NV, min(k, score_NV.shape[1]))
        log_probability_NR = (score_NR.double() - self._log_sum_N1()).cpu().numpy()
        ids = ids_NR.cpu().numpy()
        order = np.lexsort((ids, -log_probability_NR), axis=1)
        return np.take_along_axis(ids, order, 1), np.take_along_axis(log_probability_NR, order, 1)

    def of(self, tokens_N: NDArray[np.int64]) -> NDArray[np.float64]:
        """The log-probability of one given token per row."""
        tokens = torch.from_numpy(tokens_N).to(self._score_NV.device)[:, None]
        log_probability: NDArray[np.float64] = (
            (self._score_NV.gather(1, tokens).double() - self._log_sum_N1())[:, 0].cpu().numpy()
        )
        return log_probability

    def sample(self, key: int, temperature: float = 1.0, without: Sequence[int] = ()) -> NDArray[np.int64]:
        """One token per row: the largest of score / temperature plus Gumbel noise, a pure function of the key."""
        generator = torch.Generator().manual_seed(key & 0x7FFF_FFFF_FFFF_FFFF)
        noise_NV = -torch.empty(self._score_NV.shape).exponential_(generator=generator).log()
        score_NV = self._score_NV.float() / temperature + noise_NV.to(self._score_NV.device)
        if without:
            score_NV[:, list(without)] = -torch.inf
        tokens: NDArray[np.int64] = score_NV.argmax(1).cpu().numpy()
        return tokens

    def all(self) -> NDArray[np.float64]:
        """Every log-probability, ``log_probability_NV``."""
        log_probability: NDArray[np.float64] = (self._score_NV.double() - self._log_sum_N1()).cpu().numpy()
        return log_probability

    def context(self) -> NDArray[np.float64] | None:
        """Cross-attention weights of the last layer, ``weight_NHS``, or None if they were not asked for."""
        return None if self._weight_NHS is None else self._weight_NHS.double().cpu().numpy()


def _largest(score_NV: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest scores of each row and their ids; which of equal ones topk takes is open, so then sort stably."""
    score_NR, ids_NR = score_NV.topk(min(k + 1, score_NV.shape[1]), dim=1)
    if score_NR.shape[1] > k and bool((score_NR[:, k - 1] == score_NR[:, k]).any()):
        score_NR, ids_NR = score_NV.sort(dim=1, descending=True, stable=True)
    return score_NR[:, :k], ids_NR[:, :k]
