"""What stands on an encoder: pooling of a sequence into one vector, and tag decoders.

Tags are chosen by an independent softmax per word, or by a linear-chain conditional random field [Lafferty01 §3].
Neither decodes a transition that the tag scheme forbids. The tokens of tag decoders are words.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn import hooks
from regard.nn.alignment import AdditiveScore
from regard.nn.init import watch
from regard.nn.layout import Layout, Sequences
from regard.text.tags import ForbiddenTransitions

Pool = Callable[[Tensor, Sequences], Tensor]
"""``(hidden_TD, sequences) → pooled_BD``."""
NEVER = -1e4
"""Added to forbidden scores: its exponential is zero in every precision, and unlike -inf it makes no NaN."""
PENALTIES = ("between_CC", "first_C", "last_C")


def first(hidden_TD: Tensor, sequences: Sequences) -> Tensor:
    """The first token of every sequence [Devlin19 §3]."""
    return hidden_TD[sequences.starts_B[: sequences.count]]


def mean(hidden_TD: Tensor, sequences: Sequences) -> Tensor:
    """The mean over every sequence's tokens."""
    lengths_B = sequences.lengths_B[: sequences.count]
    sums_BD = hidden_TD.new_zeros(sequences.count, hidden_TD.shape[1])
    sums_BD = sums_BD.index_add(0, sequences.rows_T, hidden_TD[sequences.inside_T])
    return sums_BD / lengths_B[:, None].clamp(min=1).to(hidden_TD.dtype)


def largest(hidden_TD: Tensor, sequences: Sequences) -> Tensor:
    """The largest of every entry over every sequence's tokens."""
    low_BD = hidden_TD.new_full((sequences.count, hidden_TD.shape[1]), -torch.inf)
    index = sequences.rows_T[:, None].expand(-1, hidden_TD.shape[1])
    return low_BD.scatter_reduce(0, index, hidden_TD[sequences.inside_T], "amax")


class Attention(nn.Module):
    """A mean of every sequence's tokens, weighed by attention [Lin17 §2.1, Yang16 §2.2].

    One query, which is learned and the same for all texts, is compared with every token by the additive score.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.zeros(d_model))
        self.score = AdditiveScore(d_model)
        self.path = ""
        watch(self)

    def initialise(self, generator: torch.Generator | None = None) -> None:
        """The query is zero: all tokens weigh alike at first."""
        nn.init.zeros_(self.query)

    def forward(self, hidden_TD: Tensor, sequences: Sequences) -> Tensor:
        """``context_BD``; zeros for an empty sequence."""
        lengths_B = sequences.lengths_B[: sequences.count]
        layout = Layout(Sequences.rows(torch.ones_like(lengths_B), 1, 1), sequences)
        query_BD = self.query.to(hidden_TD.dtype).expand(sequences.count, -1)
        key_TD, point = self.score.key(hidden_TD), hooks.point_inside(self.path)
        context_BD = self.score.attend(query_BD, key_TD, hidden_TD, layout, point)
        return hooks.hook_point(f"{self.path}.output", context_BD)


def penalties(classes: int, forbidden: ForbiddenTransitions) -> tuple[Tensor, Tensor, Tensor]:
    """``(between_CC, first_C, last_C)``: :data:`NEVER` where a tag cannot follow, begin or end, else 0."""
    between_CC, first_C, last_C = torch.zeros(classes, classes), torch.zeros(classes), torch.zeros(classes)
    for left, right in forbidden.between:
        between_CC[left, right] = NEVER
    first_C[list(forbidden.first)] = NEVER
    last_C[list(forbidden.last)] = NEVER
    return between_CC, first_C, last_C


class ConditionalRandomField(nn.Module):
    """``log p(tags | scores)`` over whole sentences: scores of tags, of transitions, of the first tag and of the last.

    Computed in float32, or in float64 if the scores are.

    Args:
        classes: tags (C).
        forbidden: transitions that never happen (:func:`~regard.text.tags.forbidden`).
    """

    between_CC: Tensor
    first_C: Tensor
    last_C: Tensor

    def __init__(self, classes: int, forbidden: ForbiddenTransitions | None = None) -> None:
        super().__init__()
        self.transition_CC = nn.Parameter(torch.zeros(classes, classes))
        self.start_C = nn.Parameter(torch.zeros(classes))
        self.end_C = nn.Parameter(torch.zeros(classes))
        for name in PENALTIES:
            self.register_buffer(name, None, persistent=False)
        self.limit(forbidden or ForbiddenTransitions())
        watch(self)

    def limit(self, forbidden: ForbiddenTransitions) -> None:
        """Leave this out of everything that can be, from now on."""
        classes, device = self.transition_CC.shape[0], self.transition_CC.device
        for name, penalty in zip(PENALTIES, penalties(classes, forbidden), strict=True):
            setattr(self, name, penalty.to(device))

    def forward(self, score_TC: Tensor, labels_T: Tensor, sequences: Sequences) -> Tensor:
        """The negative log-likelihood of each real sequence's tags, in nats: ``nll_B``; 0 for one without tokens.

        Args:
            score_TC: of each tag for each token.
            labels_T: the tags' numbers; tokens outside of every sequence do not count, whatever theirs is.
            sequences: which tokens follow each other.
        """
        if not sequences.count or not sequences.longest:
            return score_TC.new_zeros(sequences.count)
        score_TC = _precise(score_TC)
        score_BLC = score_TC[sequences.grid_BL]
        transition_CC, start_C, end_C = self._scores(score_TC)
        normaliser_B = _normaliser_B(score_BLC, sequences.real_BL, transition_CC, start_C, end_C)
        labels_BL = labels_T[sequences.grid_BL].masked_fill(~sequences.real_BL, 0)
        path_B = _path_B(score_BLC, labels_BL, sequences.real_BL, transition_CC, start_C, end_C)
        lengths_B = sequences.lengths_B[: sequences.count]
        return torch.where(lengths_B > 0, normaliser_B - path_B, 0.0)

    @torch.no_grad()
    def decode(self, score_TC: Tensor, sequences: Sequences) -> Tensor:
        """The best tags of each sequence as a whole (Viterbi): ``tags_T``; 0 outside of every sequence."""
        score_TC = _precise(score_TC)
        return _viterbi_T(score_TC, sequences, *self._scores(score_TC))

    def _scores(self, score_TC: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Transition, start and end scores with forbidden ones masked, in the precision of the scores."""
        kind = score_TC.dtype
        return (
            self.transition_CC.to(kind) + self.between_CC.to(kind),
            self.start_C.to(kind) + self.first_C.to(kind),
            self.end_C.to(kind) + self.last_C.to(kind),
        )


@torch.no_grad()
def constrained_viterbi(score_TC: Tensor, sequences: Sequences, forbidden: ForbiddenTransitions) -> Tensor:
    """The best tag of each token among those that together are allowed: ``tags_T``; 0 outside of every sequence.

    Transitions themselves score nothing; where nothing is forbidden, this is the largest score of each token.
    """
    score_TC = _precise(score_TC)
    limits = (penalty.to(score_TC) for penalty in penalties(score_TC.shape[1], forbidden))
    return _viterbi_T(score_TC, sequences, *limits)


def _precise(score_TC: Tensor) -> Tensor:
    return score_TC if score_TC.dtype == torch.float64 else score_TC.float()


def _normaliser_B(score_BLC: Tensor, real_BL: Tensor, transition_CC: Tensor, start_C: Tensor, end_C: Tensor) -> Tensor:
    """``log Z``: the sum over all sequences of tags, by the forward recursion [Lafferty01 §3]."""
    alpha_BC = start_C + score_BLC[:, 0]
    for place in range(1, score_BLC.shape[1]):
        next_BC = (alpha_BC[:, :, None] + transition_CC).logsumexp(1) + score_BLC[:, place]
        alpha_BC = torch.where(real_BL[:, place, None], next_BC, alpha_BC)
    return (alpha_BC + end_C).logsumexp(1)


def _path_B(
    score_BLC: Tensor, labels_BL: Tensor, real_BL: Tensor, transition_CC: Tensor, start_C: Tensor, end_C: Tensor
) -> Tensor:
    """The score of the given tags."""
    own_BL = score_BLC.gather(2, labels_BL[:, :, None])[:, :, 0]
    own_BL[:, 1:] += transition_CC[labels_BL[:, :-1], labels_BL[:, 1:]]
    last_B = (real_BL.sum(1) - 1).clamp(min=0)
    ends_B = start_C[labels_BL[:, 0]] + end_C[labels_BL.gather(1, last_B[:, None])[:, 0]]
    return own_BL.masked_fill(~real_BL, 0.0).sum(1) + ends_B


def _viterbi_T(score_TC: Tensor, sequences: Sequences, transition_CC: Tensor, start_C: Tensor, end_C: Tensor) -> Tensor:
    """The tags of the best path, from the last back to the first."""
    tags_T = torch.zeros(score_TC.shape[0], dtype=torch.int64, device=score_TC.device)
    if not sequences.count or not sequences.longest:
        return tags_T
    score_BLC, real_BL = score_TC[sequences.grid_BL], sequences.real_BL
    best_BC = start_C + score_BLC[:, 0]
    same_C = torch.arange(score_TC.shape[1], device=score_TC.device)
    backward = []
    for place in range(1, sequences.longest):
        next_BC, from_BC = (best_BC[:, :, None] + transition_CC).max(1)
        here_B = real_BL[:, place]
        best_BC = torch.where(here_B[:, None], next_BC + score_BLC[:, place], best_BC)
        backward.append(torch.where(here_B[:, None], from_BC, same_C))
    tag_B = (best_BC + end_C).argmax(1)
    chosen = [tag_B]
    for from_BC in reversed(backward):
        tag_B = from_BC.gather(1, tag_B[:, None])[:, 0]
        chosen.append(tag_B)
    tags_BL = torch.stack(chosen[::-1], 1)
    tags_T[sequences.grid_BL[real_BL]] = tags_BL[real_BL]
    return tags_T


class IndependentTags(nn.Module):
    """Independent softmax per tag [Devlin19 §5.3]; decoding picks the best allowed sequence.

    Args:
        classes: tags (C).
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.forbidden = ForbiddenTransitions()

    def limit(self, forbidden: ForbiddenTransitions) -> None:
        """Choose nothing of this from now on."""
        self.forbidden = forbidden

    def loss(
        self, score_TC: Tensor, labels_T: Tensor, sequences: Sequences, smoothing: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """Two sums over words in nats: the cross-entropy, smoothed, and the negative log-likelihood.

        Args:
            score_TC: of each tag for each word.
            labels_T: the tags' numbers.
            sequences: which words follow each other.
            smoothing: probability given to all other tags [Szegedy16 §7].
        """
        nll = F.cross_entropy(score_TC.float(), labels_T, reduction="sum")
        if not smoothing:
            return nll, nll.detach()
        total = F.cross_entropy(score_TC.float(), labels_T, reduction="sum", label_smoothing=smoothing)
        return total, nll.detach()

    @torch.no_grad()
    def decode(self, score_TC: Tensor, sequences: Sequences) -> Tensor:
        """The best tags: ``tags_T``."""
        if self.forbidden == ForbiddenTransitions():
            return score_TC.argmax(1)
        return constrained_viterbi(score_TC, sequences, self.forbidden)

    @torch.no_grad()
    def probabilities(self, score_TC: Tensor, sequences: Sequences) -> Tensor:
        """``p(tag | word)``: ``probability_TC``."""
        return score_TC.float().softmax(1)


class CRFTags(nn.Module):
    """The tags of a sentence are learned and chosen as one [Lafferty01 §3].

    Args:
        classes: tags (C).
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.field = ConditionalRandomField(classes)

    def limit(self, forbidden: ForbiddenTransitions) -> None:
        """Leave this out of everything that can be, from now on."""
        self.field.limit(forbidden)

    def loss(
        self, score_TC: Tensor, labels_T: Tensor, sequences: Sequences, smoothing: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """The negative log-likelihood of the sentences' tags, summed, in nats; twice, for it is never smoothed."""
        nll = self.field(score_TC, labels_T, sequences).sum()
        return nll, nll.detach()

    def decode(self, score_TC: Tensor, sequences: Sequences) -> Tensor:
        """The best tags: ``tags_T``."""
        return self.field.decode(score_TC, sequences)

    def probabilities(self, score_TC: Tensor, sequences: Sequences) -> Tensor:
        """``p(tag | sentence)``, summed over all tags of the other words: ``probability_TC``.

        They are the gradient of ``log Z`` by the scores, and that is this of the loss plus one where the label is.
        """
        labels_T = torch.zeros(len(score_TC), dtype=torch.int64, device=score_TC.device)
        with torch.inference_mode(False), torch.enable_grad():
            score_TC = score_TC.detach().clone().requires_grad_()
            gradient_TC = torch.autograd.grad(self.field(score_TC, labels_T, sequences).sum(), score_TC)[0]
        gradient_TC[:, 0] += sequences.inside_T
        return gradient_TC.clamp(0.0, 1.0)


Chain = IndependentTags | CRFTags
"""The common interface: ``limit``, ``loss``, ``decode``, ``probabilities``."""
