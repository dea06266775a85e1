"""Ensembles: several steps over the same tokens, whose next-token probabilities are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from regard.config import Decoding
from regard.decoding.hypotheses import Floats, Ints
from regard.decoding.sampling import sample
from regard.decoding.step import Answer, Step, with_weights


@dataclass(frozen=True)
class EnsembleStep:
    """A step whose answers are those of several; its state is theirs.

    Args:
        steps: over the same tokens.
    """

    steps: Sequence[Step[Any]]

    def with_weights(self) -> EnsembleStep:
        """The same, each of whose steps has weights."""
        return EnsembleStep([with_weights(step) for step in self.steps])

    def start(self, sources: Sequence[Ints]) -> list[Any]:
        """Open one row for each source."""
        return [step.start(sources) for step in self.steps]

    def admit(self, state: list[Any], sources: Sequence[Ints]) -> list[Any]:
        """Append one row for each source."""
        return [step.admit(own, sources) for step, own in zip(self.steps, state, strict=True)]

    def step(self, state: list[Any], tokens_N: Ints) -> tuple[list[Any], EnsembleAnswer]:
        """Append one token to each row; the answer is the mean of the distributions of the next."""
        states, answers = zip(
            *(one.step(own, tokens_N) for one, own in zip(self.steps, state, strict=True)), strict=True
        )
        return list(states), EnsembleAnswer(answers)

    def select(self, state: list[Any], rows_M: Ints) -> list[Any]:
        """New row ``i`` continues old row ``rows_M[i]``."""
        return [step.select(own, rows_M) for step, own in zip(self.steps, state, strict=True)]


@dataclass(frozen=True)
class EnsembleAnswer:
    """The mean of several distributions over the next token of every row: of their probabilities, not of logarithms.

    Drawing is by its log-probabilities, which are scores as good as others.
    """

    answers: Sequence[Answer]

    @cached_property
    def _every_ANV(self) -> list[Floats]:
        return [answer.all() for answer in self.answers]

    @cached_property
    def _log_probability_NV(self) -> Floats:
        return _log_mean(self._every_ANV)

    def best(self, k: int, without: Sequence[int] = ()) -> tuple[Ints, Floats]:
        """The k most probable tokens of each row, best first, ties to the smaller id.

        The k best of one model have at least its share of the mean, so what all models find less probable than that is
        not among the k best.
        """
        shares = (answer.best(k, without)[1] for answer in self.answers)
        least = [best_Nk[:, -1] if best_Nk.shape[1] == k else np.full(len(best_Nk), -np.inf) for best_Nk in shares]
        bar_N = np.maximum.reduce(least) - np.log(len(self.answers)) - 1e-3  # log-probabilities are rounded
        able_NV = np.logical_or.reduce([~(one_NV < bar_N[:, None]) for one_NV in self._every_ANV])
        able_NV[:, list(without)] = False
        row_M, id_M = able_NV.nonzero()
        count_N = np.count_nonzero(able_NV, axis=1)
        column_M = np.arange(len(row_M)) - (count_N.cumsum() - count_N)[row_M]
        ids_NR = np.zeros((len(able_NV), count_N.max(initial=1)), np.int64)
        log_probability_NR = np.full(ids_NR.shape, -np.inf)
        ids_NR[row_M, column_M] = id_M
        log_probability_NR[row_M, column_M] = _log_mean([one[row_M, id_M] for one in self._every_ANV])
        order_Nk = np.lexsort((ids_NR, -log_probability_NR), axis=1)[:, :k]
        return np.take_along_axis(ids_NR, order_Nk, 1), np.take_along_axis(log_probability_NR, order_Nk, 1)

    def most_probable(self, without: Sequence[int] = ()) -> Ints:
        """The most probable token of each row, ties to the smaller id; -1 where none is left, or a score is none."""
        log_probability_NV = self._without(without)
        return np.where(log_probability_NV.max(1) > -np.inf, log_probability_NV.argmax(1), -1)

    def of(self, tokens_N: Ints) -> Floats:
        """The log-probability of one given token per row."""
        return self._log_probability_NV[np.arange(len(tokens_N)), tokens_N]

    def sample(
        self,
        uniform_N: Floats,
        decoding: Decoding,
        without: Sequence[int] = (),
        seen_NS: Ints | None = None,
        banned_NF: Ints | None = None,
    ) -> Ints:
        """One token per row of what ``decoding`` leaves of the mean."""
        return sample(self._log_probability_NV, uniform_N, decoding, without, seen_NS, banned_NF)

    def all(self) -> Floats:
        """Every log-probability, ``log_probability_NV``."""
        return self._log_probability_NV

    def context(self) -> Floats | None:
        """Cross-attention weights of this step, the heads of all models side by side, where all have them."""
        found = [answer.context() for answer in self.answers]
        weights = [weight_NHS for weight_NHS in found if weight_NHS is not None]
        return np.concatenate(weights, axis=1) if len(weights) == len(found) else None

    def _without(self, without: Sequence[int]) -> Floats:
        if not without:
            return self._log_probability_NV
        log_probability_NV = self._log_probability_NV.copy()
        log_probability_NV[:, list(without)] = -np.inf
        return log_probability_NV


def _log_mean(every: Sequence[Floats]) -> Floats:
    """The logarithm of the mean of probabilities, entry by entry."""
    highest_X = np.maximum(np.maximum.reduce(every), np.finfo(np.float64).min)
    total_X = np.exp(every[0] - highest_X)
    for log_probability_X in every[1:]:
        total_X += np.exp(log_probability_X - highest_X)
    with np.errstate(divide="ignore"):
        return highest_X + np.log(total_X / len(every))
