"""Which rows continue with which token: greedy and beam search [Wu16 §7], and sampling.

Each draw of a sample is a pure function of (seed, index of the source, number of the sample, step): every row has its
own random number, so a sample depends neither on the other rows (law *refilling*) nor on the order of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from regard.config import Decoding
from regard.decoding.constraints import tokens_so_far
from regard.decoding.hypotheses import Choice, Choose, Floats, Ints, Rows
from regard.decoding.step import Answer
from regard.system.errors import RegardError
from regard.system.keys import key


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

    Args:
        width: N.
        without: tokens that are never chosen.
        end: the token that ends a row, where one that ends leaves its place to the next best that does not.
    """

    width: int
    without: Sequence[int] = ()
    end: int | None = None
    scores: ClassVar[bool] = True

    def __call__(self, rows: Rows, answer: Answer) -> Choice:
        """The best continuations."""
        looked_at = self.width if self.end is None else 2 * self.width  # of which a row ends at most one
        return self.choose(rows, looked_at, *answer.best(looked_at, self.without))

    def choose(self, rows: Rows, looked_at: int, ids_Nk: Ints, log_probability_Nk: Floats) -> Choice:
        """The best continuations among the ``looked_at`` best tokens of each row, best first."""
        total_Nk = rows.log_probability_N[:, None] + numbers(log_probability_Nk)
        place_M = _best_of_sentences(total_Nk, rows, looked_at)
        if self.end is not None:
            sentence_M = rows.sentence_N[place_M // total_Nk.shape[1]]
            place_M = place_M[refill_places(ids_Nk.take(place_M) == self.end, sentence_M, self.width)]
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


def refill_places(ends_M: NDArray[np.bool_], sentence_M: Ints, width: int | Ints) -> NDArray[np.bool_]:
    """Of the candidates of sentences, best first: the first ``width`` that do not end, and what ends before these."""
    begins_M = np.diff(sentence_M, prepend=-1) != 0
    first_M = np.maximum.accumulate(np.where(begins_M, np.arange(len(sentence_M)), 0))
    rank_M, going_M = np.arange(len(sentence_M)) - first_M, (~ends_M).cumsum()
    before_M = going_M - going_M[first_M] + (~ends_M)[first_M]
    return np.where(ends_M, rank_M < width, before_M <= width)


def numbers(log_probability: Floats) -> Floats:
    """The log-probabilities of a model, refused if one is not a number."""
    if np.isnan(log_probability).any():
        raise RegardError("some of the model are not numbers; are its weights damaged?", "log-probabilities")
    return log_probability


@dataclass(frozen=True)
class RandomSampling:
    """Each row continues with one random token.

    The log-probabilities noted are those of the model, before temperature, limits and penalty. The repetition penalty
    sees the row's own tokens and its prompt, if any; not a source in another language.

    Args:
        decoding: temperature, limits and penalty.
        seed: another seed, other tokens.
        without: tokens that are never drawn.
    """

    decoding: Decoding
    seed: int
    without: Sequence[int] = ()

    def __call__(self, rows: Rows, answer: Answer) -> Choice:
        """The token of each row that has one left."""
        seen_NS = None
        if self.decoding.repetition_penalty != 1.0:
            seen_NS = tokens_so_far(rows)
        token_N = answer.sample(uniforms(rows, self.seed), self.decoding, self.without, seen_NS)
        log_probability_N = numbers(answer.of(np.maximum(token_N, 0)))
        if token_N.min() >= 0:
            return Choice(None, token_N, log_probability_N)
        row_M = np.flatnonzero(token_N >= 0)
        return Choice(row_M, token_N[row_M], log_probability_N[row_M])


def random_sampling(decoding: Decoding, seed: int, without: Sequence[int] = (), scores: bool = True) -> Choose:
    """Sampling as a recipe's section has it; at temperature 0 without a penalty it is greedy search.

    Args:
        decoding, seed, without: as for :class:`RandomSampling`.
        scores: as for :class:`Greedy`.
    """
    if decoding.temperature == 0.0 and decoding.repetition_penalty == 1.0:
        return Greedy(without, scores)
    return RandomSampling(decoding, seed, without)


def uniforms(rows: Rows, seed: int) -> Floats:
    """A number in [0, 1) for each row, ``uniform_N``: the upper 53 bits of its key."""
    names = [(sentence.index, sentence.sample) for sentence in rows.sentences]
    pairs = zip(rows.sentence_N.tolist(), rows.length_N.tolist(), strict=True)
    return np.array([(key(seed, "sample", *names[place], step) >> 11) * 2.0**-53 for place, step in pairs])
