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
from regard.decoding.step import Answer, Step


@dataclass(frozen=True)
class EnsembleStep:
    """A step whose answers are those of several; its state is theirs.

    Args:
        steps: over the same tokens.
    """

    steps: Sequence[Step[Any]]

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
    def _log_probability_NV(self) -> Floats:
        every_ANV = [answer.all() for answer in self.answers]
        highest_NV = np.maximum(np.maximum.reduce(every_ANV), np.finfo(np.float64).min)
        total_NV = np.exp(every_ANV[0] - highest_NV)
        for log_probability_NV in every_ANV[1:]:
            total_NV += np.exp(log_probability_NV - highest_NV)
        with np.errstate(divide="ignore"):
            return highest_NV + np.log(total_NV / len(every_ANV))

    def best(self, k: int, without: Sequence[int] = ()) -> tuple[Ints, Floats]:
        """The k most probable tokens of each row, best first, ties to the smaller id."""
        log_probability_NV = self._without(without)
        k = min(k, log_probability_NV.shape[1])
        ids_Nk = np.argpartition(-log_probability_NV, k - 1, axis=1)[:, :k]
        least_N = np.take_along_axis(log_probability_NV, ids_Nk, 1).min(1)
        if ((log_probability_NV >= least_N[:, None]).sum(1) != k).any():  # which of equal ones are taken is open
            ids_Nk = np.argsort(-log_probability_NV, axis=1, kind="stable")[:, :k]
        best_Nk = np.take_along_axis(log_probability_NV, ids_Nk, 1)
        order_Nk = np.lexsort((ids_Nk, -best_Nk), axis=1)
        return np.take_along_axis(ids_Nk, order_Nk, 1), np.take_along_axis(best_Nk, order_Nk, 1)

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
