"""One vector for several tokens: of a text, or of a word's pieces (``nn/heads``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.engine.parts import Floats, Linear

Ids = NDArray[np.int64]
Pool = Callable[[Floats, Ids, Ids], Floats]
"""``(hidden_TD, starts_B, lengths_B) → pooled_BD``."""


def first(hidden_TD: Floats, starts_B: Ids, lengths_B: Ids) -> Floats:
    """The first token of every sequence [Devlin19 §3]."""
    return hidden_TD[starts_B]


def mean(hidden_TD: Floats, starts_B: Ids, lengths_B: Ids) -> Floats:
    """The mean over every sequence's tokens; zeros for none."""
    sums_BD = _reduce(np.add, hidden_TD, starts_B, lengths_B, 0.0)
    return np.asarray(sums_BD / np.maximum(lengths_B, 1)[:, None].astype(np.float32), np.float32)


def largest(hidden_TD: Floats, starts_B: Ids, lengths_B: Ids) -> Floats:
    """The largest of every entry over every sequence's tokens."""
    return _reduce(np.maximum, hidden_TD, starts_B, lengths_B, -np.inf)


@dataclass(frozen=True)
class Attention:
    """A mean of every sequence's tokens, weighed by a learned query [Lin17 §2.1, Yang16 §2.2]; zeros for none.

    Args:
        key: adds the query to the keys of tokens.
        score: the direction that the additive score compares with [Bahdanau15 §A.1.2].
    """

    key: Linear
    score: Linear

    def __call__(self, hidden_TD: Floats, starts_B: Ids, lengths_B: Ids) -> Floats:
        """``context_BD``."""
        score_T1 = self.score.rows(np.tanh(self.key.rows(hidden_TD)))
        row_T = np.repeat(np.arange(len(lengths_B)), lengths_B)
        place_T = np.repeat(starts_B - (lengths_B.cumsum() - lengths_B), lengths_B) + np.arange(len(row_T))
        highest_B1 = _reduce(np.maximum, score_T1, starts_B, lengths_B, 0.0)
        weight_T1 = np.zeros_like(score_T1)
        weight_T1[place_T] = np.exp(score_T1[place_T] - highest_B1[row_T])
        total_B1 = _reduce(np.add, weight_T1, starts_B, lengths_B, 1.0)
        return np.asarray(_reduce(np.add, weight_T1 * hidden_TD, starts_B, lengths_B, 0.0) / total_B1)


def _reduce(function: np.ufunc, hidden_TD: Floats, starts_B: Ids, lengths_B: Ids, empty: float) -> Floats:
    """Each sequence's rows by themselves, one after the other; between sequences there may be other rows."""
    if not len(starts_B):
        return np.zeros((0, hidden_TD.shape[1]), np.float32)
    ended = np.concatenate([hidden_TD, np.zeros((1, hidden_TD.shape[1]), np.float32)])
    borders = np.stack([starts_B, starts_B + lengths_B], 1).ravel()
    found_BD: Floats = function.reduceat(ended, borders, axis=0)[::2]
    found_BD[lengths_B == 0] = empty
    return found_BD


POOLS: dict[str, Pool] = {"first": first, "mean": mean, "max": largest}
"""The recipe's words."""
