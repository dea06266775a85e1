"""What stands on an encoder: classes of a text, tags of its words, pieces in gaps, or a vector (``models/bert``).

Before them one vector for several tokens, of a text or of a word's pieces, and how tags are chosen (``nn/heads``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.engine.layers import Floats, Ids, Linear, Norm, Scores
from regard.engine.stack import Texts
from regard.text.tags import ForbiddenTransitions

Pool = Callable[[Floats, Ids, Ids], Floats]
"""``(hidden_TD, starts_B, lengths_B) → pooled_BD``."""
NEVER = -1e4
"""Added to forbidden scores, as in the model."""


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
POOLER_ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {
    "tanh": np.tanh,
    "relu": lambda x_BD: np.maximum(x_BD, 0.0),
}
"""Of the layer on a text's vector."""


class TagDecoder:
    """A linear chain of tags: the best allowed sequence, and how sure each is [Lafferty01 §3].

    Args:
        field: scores of each tag behind each other tag, of the first tag and of the last, where tags depend on each
            other, as in a conditional random field. None: each word's probabilities are its own, and what is forbidden
            only limits the choice.
        classes: how many tags there are.
        forbidden: transitions.
    """

    def __init__(self, field: Sequence[Floats] | None, classes: int, forbidden: ForbiddenTransitions) -> None:
        self.together = field is not None
        parts = field or [np.zeros(shape, np.float32) for shape in ((classes, classes), classes, classes)]
        self.transition_CC, self.start_C, self.end_C = (part.astype(np.float64) for part in parts)
        for left, right in forbidden.between:
            self.transition_CC[left, right] += NEVER
        self.start_C[list(forbidden.first)] += NEVER
        self.end_C[list(forbidden.last)] += NEVER

    def choose(self, score_RC: Scores, lengths_B: Ids, heat: float = 1.0) -> tuple[Ids, Scores]:
        """``(tags_R, probability_R)``: the best tags of each sentence's words, and how probable each is.

        Args:
            score_RC: of the words of all sentences, end to end.
            lengths_B: words of each, one or more.
            heat: what scores are divided by for the probabilities.
        """
        real_BL = np.arange(int(lengths_B.max(initial=0))) < lengths_B[:, None]
        score_BLC = np.zeros((*real_BL.shape, score_RC.shape[1]))
        score_BLC[real_BL] = score_RC
        tags_R = self._viterbi(score_BLC, real_BL)[real_BL]
        probability_RC = (
            self._marginals(score_BLC / heat, real_BL)[real_BL] if self.together else softmax(score_RC / heat)
        )
        return tags_R, probability_RC[np.arange(len(tags_R)), tags_R]

    def _viterbi(self, score_BLC: Scores, real_BL: NDArray[np.bool_]) -> Ids:
        """The tags of each best path, from the last back to the first; padding has any."""
        best_BC, back = self.start_C + score_BLC[:, 0], list[Ids]()
        same_C = np.arange(score_BLC.shape[2])
        for place in range(1, score_BLC.shape[1]):
            total_BCC = best_BC[:, :, None] + self.transition_CC
            here_B1 = real_BL[:, place, None]
            back.append(np.where(here_B1, total_BCC.argmax(1), same_C))
            best_BC = np.where(here_B1, total_BCC.max(1) + score_BLC[:, place], best_BC)
        tags = [(best_BC + self.end_C).argmax(1)]
        for from_BC in reversed(back):
            tags.append(np.take_along_axis(from_BC, tags[-1][:, None], 1)[:, 0])
        return np.stack(tags[::-1], 1)

    def _marginals(self, score_BLC: Scores, real_BL: NDArray[np.bool_]) -> Scores:
        """``p(tag | sentence)`` by the forward and the backward recursion: ``probability_BLC``."""
        longest = score_BLC.shape[1]
        forward = [self.start_C + score_BLC[:, 0]]
        for place in range(1, longest):
            next_BC = _log_sum(forward[-1][:, :, None] + self.transition_CC, 1) + score_BLC[:, place]
            forward.append(np.where(real_BL[:, place, None], next_BC, forward[-1]))
        backward = [np.broadcast_to(self.end_C, forward[0].shape)]
        for place in range(longest - 1, 0, -1):
            entering_BC = backward[-1] + score_BLC[:, place]
            before_BC = _log_sum(self.transition_CC + entering_BC[:, None], 2)
            backward.append(np.where(real_BL[:, place, None], before_BC, backward[-1]))
        return softmax(np.stack(forward, 1) + np.stack(backward[::-1], 1))


def softmax(score_XC: Scores) -> Scores:
    """Probabilities of scores, over the last axis."""
    weight_XC = np.exp(score_XC - score_XC.max(-1, keepdims=True))
    return np.asarray(weight_XC / weight_XC.sum(-1, keepdims=True))


def _log_sum(score: Scores, axis: int) -> Scores:
    highest = score.max(axis, keepdims=True)
    return np.asarray(np.log(np.exp(score - highest).sum(axis)) + highest.squeeze(axis))


@dataclass(frozen=True)
class TextHead:
    """Scores of a text's classes [Devlin19 §4.1], or without classes its vector.

    Args:
        pool: one vector for the tokens of a text.
        dense: a layer on it, if there is one.
        classes: from this to a score for each class.
        activation: of the layer's output.
    """

    pool: Pool
    dense: Linear | None
    classes: Linear | None
    activation: Callable[[Floats], Floats] = np.tanh

    def __call__(self, hidden_TD: Floats, texts: Texts) -> Floats:
        """``score_BC``, or ``vector_BD``."""
        vector_BD = self.pool(hidden_TD, texts.starts_B, texts.lengths_B)
        if self.dense is not None:
            vector_BD = self.activation(self.dense.rows(vector_BD))
        return vector_BD if self.classes is None else self.classes.rows(vector_BD)


@dataclass(frozen=True)
class TagHead:
    """Scores of tags of a word, by its pieces [Devlin19 §5.3].

    Args:
        classes: from d_model to a score for each tag.
        pool: one vector for the pieces of a word.
        chain: chooses the tags of a text's words.
    """

    classes: Linear
    pool: Pool
    chain: TagDecoder

    def __call__(self, hidden_TD: Floats, texts: Texts) -> Floats:
        """``score_TC``: of every token, as a word of one piece."""
        return self.classes.rows(hidden_TD)

    def words(self, hidden_TD: Floats, starts_R: Ids, lengths_R: Ids) -> Floats:
        """``score_RC`` of words whose pieces lie there."""
        return self.classes.rows(self.pool(hidden_TD, starts_R, lengths_R))


@dataclass(frozen=True)
class WordHead:
    """Masked words: a dense layer with its activation, a norm, and scores of every piece [Devlin19 §3.1]."""

    dense: Linear
    norm: Norm
    output: Linear

    def __call__(self, hidden_ND: Floats, texts: Texts) -> Floats:
        """``score_NV``."""
        return self.output.rows(self.norm.rows(self.dense.rows(hidden_ND)))
