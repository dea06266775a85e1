"""Hypotheses of a search: one a row of its batch, n-best lists, and scores with the length penalty [Wu16 §7].

Rows of a sentence are adjacent.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.decoding.step import Answer

Number = TypeVar("Number", np.int64, np.float64)
Length = TypeVar("Length", float, NDArray[np.float64])
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Stop = Callable[[Ints], bool]
"""A stopping criterion beyond ``</s>``: called after each step with the tokens of a row."""


@dataclass(frozen=True)
class Hypothesis:
    """One output of a search. ``tokens`` come without ``</s>``; log-probabilities are natural logarithms.

    Score and log-probabilities are NaN where a greedy search was not asked for them.
    """

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


@dataclass(frozen=True)
class Symbols:
    """Special ids for search. ``without`` are never produced; ``start`` lies outside the output vocabulary."""

    start: int
    end: int = 0
    without: tuple[int, ...] = (1,)


@dataclass(frozen=True)
class Sentence:
    """A sentence under search, named by ``index``, and by ``sample`` where several are drawn of one source."""

    index: int
    source: Ints
    limit: int
    """The most tokens an output may have, ``</s>`` counted."""
    best: NBest
    first: int | None = None
    """The last token of a prompt, whose other tokens are ``source``: the first that a language model is stepped with.

    None: the start symbol, after a source that is not part of the output (translation).
    """
    sample: int = 0

    @property
    def tokens(self) -> int:
        """Tokens a row keeps in memory: the source; for language models also the output."""
        own = self.limit if self.first is not None or not len(self.source) else 0
        return len(self.source) + own


@dataclass(frozen=True)
class Choice:
    """The choice of a step: new row ``i`` is old row ``parent_M[i]`` and one more token.

    Rows of one sentence stay adjacent, sentences in order; within a sentence the best row comes first.
    """

    parent_M: Ints
    token_M: Ints
    token_log_probability_M: Floats


ROOM = 16
"""Tokens that histories have room for at a time while the rows stay the same, as in greedy search."""


@dataclass(frozen=True)
class Rows:
    """N live rows of B sentences. ``sentence_N`` points into ``sentences`` and never falls; histories fit in T.

    What a history holds after a row's length is not defined: rows that continue alike write there in place.
    """

    sentences: list[Sentence]
    sentence_N: Ints
    length_N: Ints
    token_N: Ints
    """The last token of each row: the next input of the step (the start symbol or the prompt's last at first)."""
    log_probability_N: Floats
    tokens_NT: Ints
    token_log_probability_NT: Floats

    @property
    def count(self) -> int:
        """N, the rows there are."""
        return len(self.sentence_N)

    def extend(self, choice: Choice) -> Rows:
        """The rows after a step: each parent's tokens plus the chosen token."""
        parent_M, row_M = choice.parent_M, np.arange(len(choice.parent_M))
        same = len(parent_M) == self.count and (parent_M == row_M).all()
        length_M = self.length_N if same else self.length_N.take(parent_M)
        longest = int(length_M.max(initial=0))  # shrinks when a long sentence has left
        places = (row_M, length_M)
        if same and longest < self.tokens_NT.shape[1]:
            tokens_MT, token_log_probability_MT = self.tokens_NT, self.token_log_probability_NT
        else:
            room = ROOM if same else 1
            tokens_MT = _longer(self.tokens_NT[:, :longest], parent_M, room)
            token_log_probability_MT = _longer(self.token_log_probability_NT[:, :longest], parent_M, room)
        tokens_MT[places] = choice.token_M
        token_log_probability_MT[places] = choice.token_log_probability_M
        return Rows(
            self.sentences,
            self.sentence_N if same else self.sentence_N.take(parent_M),
            length_M + 1,
            choice.token_M,
            (self.log_probability_N if same else self.log_probability_N.take(parent_M))
            + choice.token_log_probability_M,
            tokens_MT,
            token_log_probability_MT,
        )

    def keep(self, live_N: NDArray[np.bool_]) -> Rows:
        """Only the rows marked, and only the sentences that still have one."""
        if live_N.all():
            return self
        used_B = np.bincount(self.sentence_N[live_N], minlength=len(self.sentences)) > 0
        return Rows(
            [sentence for sentence, used in zip(self.sentences, used_B, strict=True) if used],
            (np.cumsum(used_B) - 1)[self.sentence_N[live_N]],
            self.length_N[live_N],
            self.token_N[live_N],
            self.log_probability_N[live_N],
            self.tokens_NT[live_N],
            self.token_log_probability_NT[live_N],
        )

    def open(self, sentences: list[Sentence], start: int) -> Rows:
        """These rows, followed by one empty row for each new sentence, before its ``first`` token or ``start``."""
        more, longest = len(sentences), self.tokens_NT.shape[1]
        first = [start if sentence.first is None else sentence.first for sentence in sentences]
        return Rows(
            self.sentences + sentences,
            np.append(self.sentence_N, len(self.sentences) + np.arange(more)),
            np.append(self.length_N, np.zeros(more, np.int64)),
            np.append(self.token_N, np.array(first, np.int64)),
            np.append(self.log_probability_N, np.zeros(more)),
            np.concatenate([self.tokens_NT, np.zeros((more, longest), np.int64)]),
            np.concatenate([self.token_log_probability_NT, np.zeros((more, longest))]),
        )

    def hypothesis(self, row: int, alpha: float, finished: bool) -> Hypothesis:
        """Row ``row`` as a hypothesis; a finished one ends in ``</s>``, which counts but is not among its tokens."""
        length, log_probability = int(self.length_N[row]), float(self.log_probability_N[row])
        return Hypothesis(
            tokens=tuple(self.tokens_NT[row, : length - finished].tolist()),
            score=log_probability / length_penalty(float(length), alpha),
            log_probability=log_probability,
            token_log_probabilities=tuple(self.token_log_probability_NT[row, :length].tolist()),
            finished=finished,
        )


def _longer(history_NT: NDArray[Number], parent_M: Ints, room: int) -> NDArray[Number]:
    """The parents' histories, and room for so many more entries."""
    longest = history_NT.shape[1]
    wider_MR = np.zeros((len(parent_M), longest + room), history_NT.dtype)
    wider_MR[:, :longest] = history_NT.take(parent_M, axis=0)
    return wider_MR


NO_ROWS = Rows(
    [],
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    np.zeros(0),
    np.zeros((0, 0), np.int64),
    np.zeros((0, 0)),
)

Choose = Callable[[Rows, Answer], Choice]
"""A search strategy: which rows continue with which token (greedy, beam, sampling)."""


@dataclass(frozen=True)
class Chosen:
    """A token of an output as it is chosen; ``last``: this output is complete (``sentence.best`` has it)."""

    sentence: Sentence
    token: int | None
    """None if no token was left to be chosen."""
    last: bool
