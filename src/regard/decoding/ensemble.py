"""Ensembles: several steps over the same tokens, whose next-token probabilities are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from regard.config import Decoding
from regard.decoding.hypotheses import Floats, Ints
from regard.decoding.sampling import sample
from regard.decoding.step import Answer, Step, log_probabilities, with_weights
from regard.decoding.strategies import numbers

NOTHING = np.full((1, 1), -np.inf)


class RowsAnswer(Answer, Protocol):
    """An answer of which some rows can be asked alone."""

    def rows(self, row_M: Ints) -> RowsAnswer:
        """That of some rows."""


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
        return list(states), EnsembleAnswer(cast(Sequence[RowsAnswer], answers))

    def select(self, state: list[Any], rows_M: Ints) -> list[Any]:
        """New row ``i`` continues old row ``rows_M[i]``."""
        return [step.select(own, rows_M) for step, own in zip(self.steps, state, strict=True)]


@dataclass(frozen=True)
class EnsembleAnswer:
    """The mean of several distributions over the next token of every row: of their probabilities, not of logarithms.

    Drawing is by its log-probabilities, which are scores as good as others.
    """

    answers: Sequence[RowsAnswer]

    def best(self, k: int, without: Sequence[int] = ()) -> tuple[Ints, Floats]:
        """The k most probable tokens of each row, best first, ties to the smaller id."""
        return self._best_of_lists(k, without, 4 * k)

    def _best_of_lists(self, k: int, without: Sequence[int], length: int) -> tuple[Ints, Floats]:
        """The same by the most probable tokens of each model, which are longer lists for rows that these leave open.

        What a list lacks has at most its last log-probability; so the mean lies between two bounds. A row is open where
        a token may be among the best, by the upper one, of which both are not equal [Fagin03].
        """
        lists = [answer.best(length, without) for answer in self.answers]
        last = [own_Nk[:, length - 1 :] if own_Nk.shape[1] == length else NOTHING for _, own_Nk in lists]
        ids_NR = np.sort(np.concatenate([ids_Nk for ids_Nk, _ in lists], axis=1), axis=1)
        again_NR = np.diff(ids_NR, axis=1, prepend=-1) == 0
        known = [_entries(ids_NR, ids_Nk, numbers(own_Nk)) for ids_Nk, own_Nk in lists]
        least_NR = np.where(again_NR, -np.inf, _log_mean(known))
        most_NR = _log_mean([np.maximum(own_NR, last_Nk) for own_NR, last_Nk in zip(known, last, strict=True)])
        order_Nk = (-least_NR).argsort(axis=1, kind="stable")[:, :k]
        found = np.take_along_axis(ids_NR, order_Nk, 1), np.take_along_axis(least_NR, order_Nk, 1)
        open_N = np.where(again_NR | (most_NR == least_NR), _log_mean(last), most_NR).max(1, initial=-np.inf)
        row_M = np.flatnonzero((open_N > -np.inf) & (open_N >= found[1].min(1, initial=np.inf)))
        if len(row_M):
            found[0][row_M], found[1][row_M] = self.rows(row_M)._best_of_lists(k, without, 4 * length)
        return found

    def rows(self, row_M: Ints) -> EnsembleAnswer:
        """That of some rows alone."""
        return EnsembleAnswer([answer.rows(row_M) for answer in self.answers])

    def most_probable(self, without: Sequence[int] = ()) -> Ints:
        """The most probable token of each row, ties to the smaller id; -1 where none is left, or a score is none."""
        ids_Nk, log_probability_Nk = self.best(1, without)
        return np.where(log_probability_Nk > -np.inf, ids_Nk, -1).max(1, initial=-1)

    def of_several(self, tokens_NF: Ints) -> Floats:
        """The log-probabilities of several given tokens per row; minus infinity for -1."""
        return _log_mean([log_probabilities(answer, tokens_NF) for answer in self.answers])

    def of(self, tokens_N: Ints) -> Floats:
        """The log-probability of one given token per row."""
        return _log_mean([answer.of(tokens_N) for answer in self.answers])

    def sample(
        self,
        uniform_N: Floats,
        decoding: Decoding,
        without: Sequence[int] = (),
        seen_NS: Ints | None = None,
        banned_NF: Ints | None = None,
    ) -> Ints:
        """One token per row of what ``decoding`` leaves of the mean."""
        return sample(self.all(), uniform_N, decoding, without, seen_NS, banned_NF)

    def all(self) -> Floats:
        """Every log-probability, ``log_probability_NV``."""
        return _log_mean([answer.all() for answer in self.answers])

    def context(self) -> Floats | None:
        """Cross-attention weights of this step, the heads of all models side by side, where all have them."""
        found = [answer.context() for answer in self.answers]
        weights = [weight_NHS for weight_NHS in found if weight_NHS is not None]
        return np.concatenate(weights, axis=1) if len(weights) == len(found) else None


def _entries(ids_NR: Ints, ids_Nk: Ints, listed_Nk: Floats) -> Floats:
    """The log-probabilities of tokens as a list has them, of one that it has twice the first; else minus infinity."""
    if not ids_Nk.size:
        return np.full(ids_NR.shape, -np.inf)
    order_Nk = ids_Nk.argsort(axis=1, kind="stable")
    sorted_M = (np.take_along_axis(ids_Nk, order_Nk, 1) + _numbers(ids_Nk)).ravel()
    wanted_NR = ids_NR + _numbers(ids_NR)
    place_NR = np.searchsorted(sorted_M, wanted_NR).clip(max=sorted_M.size - 1)
    found_NR = np.take_along_axis(listed_Nk, order_Nk, 1).take(place_NR)
    return np.where(sorted_M.take(place_NR) == wanted_NR, found_NR, -np.inf)


def _numbers(rows: Ints) -> Ints:
    """What tells the ids of rows apart."""
    return np.arange(len(rows))[:, None] << 32


def _log_mean(every: Sequence[Floats]) -> Floats:
    """The logarithm of the mean of probabilities, entry by entry."""
    highest = np.maximum(np.maximum.reduce(every), np.finfo(np.float64).min)
    total = np.exp(every[0] - highest)
    for one in every[1:]:
        total += np.exp(one - highest)
    with np.errstate(divide="ignore"):
        return highest + np.log(total / len(every))
