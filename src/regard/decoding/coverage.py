"""The coverage penalty: an output is worse the less attention some of its source's tokens got [Wu16 §7, eq. 14].

``score = log P / length_penalty + β Σ_s log(min(1, Σ_t weight_ts))``, where the weights are cross-attention's, the mean
of all heads and layers. It counts when an output ends: rows of a beam, all equally long, are compared without it, as
attention that is still to come would decide otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regard.decoding.hypotheses import Floats, Ints
from regard.decoding.step import Answer, Step, with_weights
from regard.system.errors import UsageError

LEAST = 1e-30
"""Attention that a token counts as having got at least."""


@dataclass(frozen=True)
class CoveredState:
    """The state of a step, and what its rows attended to.

    Args:
        inner: the state.
        length_N: tokens of each row's source.
        total_NS: attention that each of them got, summed over the row's steps; 0 behind a shorter source.
    """

    inner: Any
    length_N: Ints
    total_NS: Floats

    def penalty(self, beta: float) -> Floats:
        """``β Σ_s log(min(1, Σ_t weight_ts))`` of each row; never above 0."""
        real_NS = np.arange(self.total_NS.shape[1]) < self.length_N[:, None]
        log_NS = np.log(np.where(real_NS, self.total_NS, 1.0).clip(LEAST, 1.0))
        return beta * log_NS.sum(1)


class CoverageStep:
    """A step whose state sums the attention of each row as it grows, reorders and leaves.

    Args:
        step: of a model that attends to its source.
    """

    def __init__(self, step: Step[Any]) -> None:
        self._step = with_weights(step)

    def start(self, sources: Sequence[Ints]) -> CoveredState:
        """Encode sentences and open one row for each."""
        return CoveredState(self._step.start(sources), _lengths(sources), np.zeros((len(sources), 0)))

    def admit(self, state: CoveredState, sources: Sequence[Ints]) -> CoveredState:
        """Encode further sentences and append one row for each."""
        inner, length_N = self._step.admit(state.inner, sources), np.append(state.length_N, _lengths(sources))
        return CoveredState(inner, length_N, np.pad(state.total_NS, ((0, len(sources)), (0, 0))))

    def step(self, state: CoveredState, tokens_N: Ints) -> tuple[CoveredState, Answer]:
        """Append one token to each row.

        Raises:
            UsageError: the model hands out no attention.
        """
        inner, answer = self._step.step(state.inner, tokens_N)
        weight_NHS = answer.context()
        if weight_NHS is None:
            message = "needs attention between source and output, which this model does not have or hand out"
            raise UsageError(message, "decoding.coverage_penalty")
        total_NS = weight_NHS.mean(1)
        wide = min(total_NS.shape[1], state.total_NS.shape[1])
        total_NS[:, :wide] += state.total_NS[:, :wide]
        return CoveredState(inner, state.length_N, total_NS), answer

    def select(self, state: CoveredState, rows_M: Ints) -> CoveredState:
        """New row ``i`` continues old row ``rows_M[i]``."""
        inner = self._step.select(state.inner, rows_M)
        return replace(state, inner=inner, length_N=state.length_N[rows_M], total_NS=state.total_NS[rows_M])


def _lengths(sources: Sequence[Ints]) -> Ints:
    return np.array([len(source) for source in sources], np.int64)
