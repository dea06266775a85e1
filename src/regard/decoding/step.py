"""The protocols a model implements for search: a step, and its lazily evaluated scores (ARCHITECTURE idea 3).

Search is a function of a step. It runs on the host in NumPy and knows no network. A model
(``models/decoding``, later the fast engine) fits these protocols by shape; nothing inherits from them.

Rows: a *row* is one hypothesis being grown. Several rows may share one sentence's memory (a beam). Rows of one sentence
stay next to each other: search keeps them so in every call of ``select``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.config import Decoding

State = TypeVar("State")


class Answer(Protocol):
    """The distribution over the next token of every row, kept on the device until queried."""

    def best(self, k: int, without: Sequence[int] = ()) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The ``k`` most probable tokens of each row, best first, ties to the smaller id: (ids_Nk, log_probability_Nk).

        Tokens in ``without`` are never returned; the other log-probabilities are those of the whole distribution. A
        column that no token is left for may be missing, or minus infinity.
        """

    def most_probable(self, without: Sequence[int] = ()) -> NDArray[np.int64]:
        """The most probable token of each row, ties to the smaller id: that of ``best``, without its probability.

        -1 where no token is left, or a score is not a number.
        """

    def of(self, tokens_N: NDArray[np.int64]) -> NDArray[np.float64]:
        """The log-probability of one given token per row."""

    def sample(
        self,
        uniform_N: NDArray[np.float64],
        decoding: Decoding,
        without: Sequence[int] = (),
        seen_NS: NDArray[np.int64] | None = None,
        banned_NF: NDArray[np.int64] | None = None,
    ) -> NDArray[np.int64]:
        """One token per row, a pure function of the row's scores and of its number in [0, 1); -1 where none is left.

        Args:
            uniform_N: where in the distribution each row draws: the inverse of its cumulative function is taken.
            decoding: temperature (0: the most probable token, ties to the smaller id), top_k, top_p, min_p, typical,
                in this order; each filters what the one before it left.
            without: tokens that are never drawn.
            seen_NS: tokens that each row has already, for ``repetition_penalty``, which comes before all of these;
                -1 where a row has fewer. Without it there is no penalty.
            banned_NF: tokens that each row does not draw; -1 where a row has fewer.
        """

    def all(self) -> NDArray[np.float64]:
        """Every log-probability, ``log_probability_NV`` (slow, exact)."""

    def context(self) -> NDArray[np.float64] | None:
        """Cross-attention weights of this step, ``weight_NHS`` (S = longest memory), if asked for."""


def log_probabilities(answer: Answer, tokens_NF: NDArray[np.int64]) -> NDArray[np.float64]:
    """The log-probabilities of several given tokens per row; minus infinity for -1, where a row has fewer.

    An answer may offer ``of_several``, which computes them at once.
    """
    if of_several := getattr(answer, "of_several", None):
        return of_several(tokens_NF)
    columns = [answer.of(np.maximum(tokens_N, 0)) for tokens_N in tokens_NF.T]
    return np.where(tokens_NF < 0, -np.inf, np.array(columns).reshape(tokens_NF.shape[::-1]).T)


class Step(Protocol[State]):
    """A model that generates, one token a row at a time. The state handed in is consumed; use the one handed back."""

    def start(self, sources: Sequence[NDArray[np.int64]]) -> State:
        """Encode sentences (ids with ``</s>``) and open one row for each, in order."""

    def admit(self, state: State, sources: Sequence[NDArray[np.int64]]) -> State:
        """Encode further sentences and append one row for each."""

    def step(self, state: State, tokens_N: NDArray[np.int64]) -> tuple[State, Answer]:
        """Append one token to each row (the start symbol first) and give the :class:`Answer` for the next ones."""

    def select(self, state: State, rows_M: NDArray[np.int64]) -> State:
        """New row ``i`` continues old row ``rows_M[i]``: rows are reordered, repeated (a beam) or left out (retired).

        A sentence without rows is dropped.
        """


def with_weights(step: Step[Any]) -> Step[Any]:
    """A step whose answers have a context, where the model attends to its source; it takes no several steps at once.

    Such a model offers ``with_weights``.
    """
    attentive = getattr(step, "with_weights", None)
    return attentive() if attentive else step


@dataclass(frozen=True)
class MultiStepRequest:
    """Steps in which no row ends, asked for at once.

    Args:
        token_N, sentence_N, log_probability_N: last token, sentence and log-probability of each row; rows of a sentence
            lie side by side.
        bar_N, penalty_N: the same for each row of a sentence; ``log_probability / penalty`` must stay above the bar.
        width: so many continuations of each sentence survive, the best; ties as in ``strategies.Beam``.
        without: tokens that are never chosen.
        end: the token that ends a row.
        scores: whether log-probabilities are wanted; they may be NaN where they are not.
        steps: taken at most.
    """

    token_N: NDArray[np.int64]
    sentence_N: NDArray[np.int64]
    log_probability_N: NDArray[np.float64]
    bar_N: NDArray[np.float64]
    penalty_N: NDArray[np.float64]
    width: int
    without: Sequence[int]
    end: int
    scores: bool
    steps: int


@dataclass(frozen=True)
class MultiStepOutput:
    """Rows after S steps: row ``i`` continues old row ``parent_M[i]`` by the tokens ``tokens_MS[i]``."""

    parent_M: NDArray[np.int64]
    tokens_MS: NDArray[np.int64]
    token_log_probability_MS: NDArray[np.float64]
    log_probability_M: NDArray[np.float64]


class MultiStep(Step[State], Protocol[State]):
    """A model that can take many steps at once, which saves the time of a search between them."""

    def multi_step(self, state: State, asked: MultiStepRequest) -> tuple[State, MultiStepOutput, Answer]:
        """The rows before the first step that may end one, and the :class:`Answer` for that step's choice."""


class DraftStep(Step[State], Protocol[State]):
    """A model that reads several tokens of a row in one pass, as if one by one, and can drop the last of them again."""

    verifies: bool
    """Whether such a pass takes less time than steps."""

    def verify(self, state: State, tokens: Sequence[Sequence[int]]) -> tuple[State, list[int], Answer]:
        """Append tokens to each row, one or more of them, fewer where positions run out.

        How many were read of each row, and the :class:`Answer` behind every one of them, those of a row one after
        another.
        """

    def crop(self, state: State, count_N: NDArray[np.int64]) -> State:
        """The rows without their last ``count_N`` tokens."""
