"""Hypotheses, their length-penalised score, and the n-best list of a sentence."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Length = TypeVar("Length", float, NDArray[np.float64])


@dataclass(frozen=True)
class Hypothesis:
    """One output of a search. ``tokens`` come without ``</s>``; log-probabilities are natural logarithms."""

    tokens: tuple[int, ...]
    score: float
    """``log_probability / length_penalty``: what hypotheses are compared by, larger is better."""
    log_probability: float
    """Of the whole output, ``</s>`` included: the sum of ``token_log_probabilities``."""
    token_log_probabilities: tuple[float, ...]
    """One for each token, and a last one for ``</s>`` if it is finished."""
    finished: bool
    """``</s>`` was produced; otherwise the output was cut off by the limit."""


def length_penalty(length: Length, alpha: float) -> Length:
    """``((5 + length) / 6) ** alpha``, by which a log-probability is divided [Wu16 §7, eq. 14; Vaswani17 §6.1].

    ``length`` counts ``</s>``. It is at least 1 at ``length`` 1, never falls as ``length`` grows (``alpha`` >= 0), and
    ``alpha`` 0 gives plain log-probabilities.
    """
    return ((5.0 + length) / 6.0) ** alpha


class NBest:
    """The n best hypotheses of one sentence so far, best first; ties keep the earlier one first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.hypotheses: list[Hypothesis] = []

    def add(self, hypothesis: Hypothesis) -> None:
        """Put it in its place; the worst one leaves if there are more than n."""
        bisect.insort_right(self.hypotheses, hypothesis, key=lambda h: -h.score)
        del self.hypotheses[self.size :]

    @property
    def bar(self) -> float:
        """The score that a further hypothesis has to exceed; minus infinity while there are fewer than n."""
        return self.hypotheses[-1].score if len(self.hypotheses) == self.size else -np.inf
