"""Constraints that outputs keep: tokens that a row may not continue with, and tokens that cost more.

A constraint is a small object that looks at all rows at once. It takes nothing from a search without any: only where
there is one does an :class:`Answer` become a :class:`ConstrainedAnswer`, which strategies ask in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from regard.config import Decoding
from regard.decoding.hypotheses import Floats, Ints, Rows
from regard.decoding.step import Answer, log_probabilities

Constraint = Callable[[Rows], Ints]
"""The tokens that each row may not continue with, ``banned_NF``; -1 where a row has fewer."""


def early_ends(rows: Rows, end: int) -> Ints:
    """``</s>`` for the rows with fewer than the least number of tokens of their sentence, the prefix counted."""
    least_B = np.array([sentence.least for sentence in rows.sentences])
    return np.where(rows.length_N < least_B[rows.sentence_N], end, -1)[:, None]


def repeats(rows: Rows, size: int) -> Ints:
    """The tokens that would make an n-gram occur twice in an output, or in it and its prompt [Paulus18 §2.5].

    They stood behind the last n - 1 tokens of a row before.
    """
    tokens_NS = tokens_so_far(rows)
    if tokens_NS.shape[1] < size:
        return np.full((rows.count, 1), -1)
    ngrams_NWn = np.lib.stride_tricks.sliding_window_view(tokens_NS, size, axis=1)
    last_N1n = tokens_NS[:, None, tokens_NS.shape[1] - size + 1 :]
    again_NW = (ngrams_NWn[:, :, :-1] == last_N1n).all(axis=2) & (ngrams_NWn[:, :, 0] >= 0)
    return np.where(again_NW, ngrams_NWn[:, :, -1], -1)


def forbidden_tokens(rows: Rows) -> Ints:
    """The last tokens of those forbidden sequences of its sentence that a row ends with but for these."""
    tokens_NT = rows.with_histories().tokens_NT
    found: list[list[int]] = []
    for row, (place, length) in enumerate(zip(rows.sentence_N.tolist(), rows.length_N.tolist(), strict=True)):
        own = tuple(tokens_NT[row, :length].tolist())
        banned = rows.sentences[place].forbidden
        found.append([form[-1] for form in banned if own[max(0, length + 1 - len(form)) :] == form[:-1]])
    most = max(map(len, found), default=0)
    return np.array([[*own, *[-1] * (most - len(own))] for own in found], np.int64).reshape(rows.count, most)


def tokens_so_far(rows: Rows) -> Ints:
    """The tokens of each row behind those of its prompt, ``tokens_NS``, aligned at their ends; -1 before them."""
    prompts = [[] if s.first is None else [*s.source.tolist(), s.first] for s in rows.sentences]
    own_NT = rows.with_histories().tokens_NT[:, : rows.longest]
    prompt_B = np.array([len(prompt) for prompt in prompts])
    prompt_BP = np.full((len(prompts), prompt_B.max(initial=0)), -1, np.int64)
    for place, prompt in enumerate(prompts):
        prompt_BP[place, : len(prompt)] = prompt
    every_NR = np.concatenate([prompt_BP[rows.sentence_N], own_NT, np.full((rows.count, 1), -1)], axis=1)
    before_N = prompt_B[rows.sentence_N]
    total_N = before_N + rows.length_N
    longest = int(total_N.max(initial=0))
    place_NS = np.arange(longest) - (longest - total_N)[:, None]
    own_NS = place_NS + (prompt_BP.shape[1] - before_N)[:, None]
    taken_NS = np.where(place_NS < 0, -1, np.where(place_NS < before_N[:, None], place_NS, own_NS))
    return np.take_along_axis(every_NR, taken_NS, axis=1)


@dataclass(frozen=True)
class Constraints:
    """The constraints of a search.

    Args:
        given: none, in most searches.
        penalty: by which the log-probabilities of tokens that a row has are multiplied.
    """

    given: tuple[Constraint, ...] = ()
    penalty: float = 1.0

    @classmethod
    def of(cls, decoding: Decoding, end: int, searches: bool) -> Constraints:
        """Those of a recipe's section.

        Args:
            decoding: the section.
            end: ``</s>``.
            searches: whether the best outputs are searched for; what draws them has its own penalty.
        """
        given: list[Constraint] = []
        if decoding.min_length or decoding.min_share:
            given.append(partial(early_ends, end=end))
        if decoding.no_repeat_ngram:
            given.append(partial(repeats, size=decoding.no_repeat_ngram))
        return cls(tuple(given), decoding.repetition_penalty if searches else 1.0)

    def __bool__(self) -> bool:
        return bool(self.given) or self.penalty != 1.0

    def __call__(self, rows: Rows, answer: Answer) -> Answer:
        """The answer of the model, under these constraints."""
        banned = [np.full((rows.count, 0), -1), *(one(rows) for one in self.given)]
        seen_NS = np.full((rows.count, 0), -1) if self.penalty == 1.0 else tokens_so_far(rows)
        return ConstrainedAnswer(answer, np.concatenate(banned, axis=1), seen_NS, self.penalty)


@dataclass(frozen=True)
class ConstrainedAnswer:
    """An answer under constraints.

    Args:
        answer: that of the model.
        banned_NF: tokens that each row may not continue with; -1 where a row has fewer.
        seen_NS: tokens whose log-probability is multiplied by ``penalty``, as in the beam search of transformers.
    """

    answer: Answer
    banned_NF: Ints
    seen_NS: Ints
    penalty: float

    def best(self, k: int, without: Sequence[int] = ()) -> tuple[Ints, Floats]:
        """The k best tokens of each row that it may continue with, best first, ties to the smaller id.

        Both kinds of tokens only fall, so the k best are among the k and as many as these best of the model.
        """
        more = self.banned_NF.shape[1] + self.seen_NS.shape[1]
        ids_NR, log_probability_NR = self.answer.best(k + more, without)
        log_probability_NR = self._apply(ids_NR, log_probability_NR)
        order_NR = np.lexsort((ids_NR, -log_probability_NR), axis=1)[:, :k]
        return np.take_along_axis(ids_NR, order_NR, 1), np.take_along_axis(log_probability_NR, order_NR, 1)

    def most_probable(self, without: Sequence[int] = ()) -> Ints:
        """The best token of each row; -1 where none is left, or its score is not a number."""
        ids_N1, log_probability_N1 = self.best(1, without)
        return np.where(log_probability_N1 > -np.inf, ids_N1, -1)[:, 0]

    def of(self, tokens_N: Ints) -> Floats:
        """The log-probability of one given token per row."""
        return self._apply(tokens_N[:, None], self.answer.of(tokens_N)[:, None])[:, 0]

    def of_several(self, tokens_NF: Ints) -> Floats:
        """The log-probabilities of several given tokens per row; minus infinity for -1."""
        return self._apply(tokens_NF, log_probabilities(self.answer, tokens_NF))

    def sample(
        self,
        uniform_N: Floats,
        decoding: Decoding,
        without: Sequence[int] = (),
        seen_NS: Ints | None = None,
        banned_NF: Ints | None = None,
    ) -> Ints:
        """One token per row among those that it may continue with."""
        banned_NF = self.banned_NF if banned_NF is None else np.concatenate([self.banned_NF, banned_NF], axis=1)
        return self.answer.sample(uniform_N, decoding, without, seen_NS, banned_NF)

    def all(self) -> Floats:
        """Every log-probability, ``log_probability_NV``."""
        log_probability_NV = self.answer.all()
        ids_NV = np.broadcast_to(np.arange(log_probability_NV.shape[1]), log_probability_NV.shape)
        return self._apply(ids_NV, log_probability_NV)

    def context(self) -> Floats | None:
        """Cross-attention weights of this step."""
        return self.answer.context()

    def _apply(self, ids_NR: Ints, log_probability_NR: Floats) -> Floats:
        if self.penalty != 1.0:
            times_NR = np.where(_among(ids_NR, self.seen_NS), self.penalty, 1.0)
            log_probability_NR = log_probability_NR * times_NR
        return np.where(_among(ids_NR, self.banned_NF), -np.inf, log_probability_NR)


def _among(ids_NR: Ints, some_NS: Ints) -> NDArray[np.bool_]:
    """Which ids are among those of their row."""
    row_N1 = np.arange(len(ids_NR))[:, None] << 32
    return np.isin(ids_NR + row_N1, (some_NS + row_N1)[some_NS >= 0])
