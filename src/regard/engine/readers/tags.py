"""Tags of a sentence's words: the best allowed sequence, and how sure each is (``nn/heads``) [Lafferty01 §3]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.text.tags import ForbiddenTransitions

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
NEVER = -1e4
"""Added to forbidden scores, as in the model."""


@dataclass(frozen=True)
class TagDecoder:
    """A linear chain of tags, of which some transitions are forbidden.

    Args:
        transition_CC: score of each tag behind each other tag; ``start_C`` and ``end_C`` of the first and the last.
        together: tags depend on each other, as in a conditional random field; else each word's probabilities are its
            own, and what is forbidden only limits the choice.
    """

    transition_CC: Floats
    start_C: Floats
    end_C: Floats
    together: bool

    @classmethod
    def of(
        cls, field: tuple[NDArray[np.float32], ...] | None, classes: int, forbidden: ForbiddenTransitions
    ) -> TagDecoder:
        """The chain of a field's scores of transitions, first and last tags, or of none."""
        plain = np.zeros((classes, classes)), np.zeros(classes), np.zeros(classes)
        scores = plain if field is None else tuple(part.astype(np.float64) for part in field)
        transition_CC, start_C, end_C = scores
        for left, right in forbidden.between:
            transition_CC[left, right] += NEVER
        start_C[list(forbidden.first)] += NEVER
        end_C[list(forbidden.last)] += NEVER
        return cls(transition_CC, start_C, end_C, field is not None)

    def choose(self, score_RC: Floats, lengths_B: Ids, heat: float = 1.0) -> tuple[Ids, Floats]:
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

    def _viterbi(self, score_BLC: Floats, real_BL: NDArray[np.bool_]) -> Ids:
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

    def _marginals(self, score_BLC: Floats, real_BL: NDArray[np.bool_]) -> Floats:
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


def softmax(score_XC: Floats) -> Floats:
    """Probabilities of scores, over the last axis."""
    weight_XC = np.exp(score_XC - score_XC.max(-1, keepdims=True))
    return np.asarray(weight_XC / weight_XC.sum(-1, keepdims=True))


def _log_sum(score: Floats, axis: int) -> Floats:
    highest = score.max(axis, keepdims=True)
    return np.asarray(np.log(np.exp(score - highest).sum(axis)) + highest.squeeze(axis))
