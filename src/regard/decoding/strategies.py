"""Which rows continue with which token: greedy and beam search [Wu16 §7]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regard.decoding.hypotheses import Choice, Floats, Ints, Rows
from regard.decoding.step import Answer
from regard.system.errors import RegardError


@dataclass(frozen=True)
class Greedy:
    """Each row continues with its most probable token (ties to the smaller id).

    Args:
        without: tokens that are never chosen.
        scores: whether log-probabilities are wanted; without them an engine may find tokens sooner, and they are NaN.
    """

    without: Sequence[int] = ()
    scores: bool = True
    width: ClassVar[int] = 1

    def __call__(self, rows: Rows, answer: Answer) -> Choice:
        """The token of each row that has one."""
        if not self.scores:
            token_N = answer.most_probable(self.without)
            if token_N.min() >= 0:
                return Choice(None, token_N, np.full(len(token_N), np.nan))
        ids_Nk, log_probability_Nk = answer.best(1, self.without)
        possible_N = log_probability_Nk[:, 0] > -np.inf
        if possible_N.all():
            return Choice(None, ids_Nk[:, 0], log_probability_Nk[:, 0])
        numbers(log_probability_Nk)
        row_M = possible_N.nonzero()[0]
        return Choice(row_M, ids_Nk[row_M, 0], log_probability_Nk[row_M, 0])


@dataclass(frozen=True)
class Beam:
    """Keep the ``width`` best continuations of each sentence [Wu16 §7].

    Ties go to the smaller parent row, then to the row's own order (the more probable token, then the smaller id).
    ``width`` candidates a row are enough: the ``width`` best of a sentence hold at most ``width`` of one row, and those
    are the best of that row, since a row adds the same log-probability to all its candidates.
    """

    width: int
    without: Sequence[int] = ()
    scores: ClassVar[bool] = True

    def __call__(self, rows: Rows, answer: Answer) -> Choice:
        """The best continuations."""
        ids_Nk, log_probability_Nk = answer.best(self.width, self.without)
        total_Nk = rows.log_probability_N[:, None] + numbers(log_probability_Nk)
        place_M = _best_of_sentences(total_Nk, rows, self.width)
        row_M = place_M // total_Nk.shape[1]
        return Choice(row_M, ids_Nk.take(place_M), log_probability_Nk.take(place_M))


def _best_of_sentences(total_Nk: Floats, rows: Rows, width: int) -> Ints:
    """Places in ``total_Nk`` of each sentence's ``width`` best possible candidates, best first."""
    sentences, k = len(rows.sentences), total_Nk.shape[1]
    if sentences == 1:
        line_C = total_Nk.ravel()
        order_W = (-line_C).argsort(kind="stable")[:width]  # stable: ties to the smaller row, then column
        return order_W[line_C.take(order_W) > -np.inf]
    first_B = np.searchsorted(rows.sentence_N, np.arange(sentences))
    place_N = np.arange(rows.count) - first_B[rows.sentence_N]  # each row's place inside its sentence
    table = np.full((sentences, int(place_N.max()) + 1, k), -np.inf)
    table[rows.sentence_N, place_N] = total_Nk
    line_BC = table.reshape(sentences, -1)  # a sentence's candidates side by side
    order_BW = (-line_BC).argsort(axis=1, kind="stable")[:, :width]
    possible_BW = line_BC[np.arange(sentences)[:, None], order_BW] > -np.inf
    return (order_BW + (first_B * k)[:, None])[possible_BW]  # sentences' rows lie one after another


def numbers(log_probability: Floats) -> Floats:
    """The log-probabilities of a model, refused if one is not a number."""
    if np.isnan(log_probability).any():
        raise RegardError("some of the model are not numbers; are its weights damaged?", "log-probabilities")
    return log_probability
