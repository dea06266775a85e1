"""Tag decoders: independent softmax per word, or a linear-chain CRF.

Neither decodes a transition that the tag scheme forbids. The tokens here are words.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.heads.crf import ConditionalRandomField, constrained_viterbi
from regard.nn.layout import Sequences
from regard.text.tag_schemes import ForbiddenTransitions


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
