"""Training losses: label-smoothed cross-entropy, and the adversarial perturbation of embeddings."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.nn.autograd.loss import CrossEntropyFunction
from regard.nn.layout import Sequences
from regard.nn.ops import Path

EMBEDDING = "encoder.input.embedding"
"""Where embeddings pass in the models that read texts or images, by the probe's name."""


class SmoothedCrossEntropy(nn.Module):
    """Cross-entropy against the target mixed with ε of the uniform distribution [Vaswani17 §5.4, Szegedy16].

    Args:
        smoothing: ε_ls; the paper's 0.1 hurts perplexity and helps BLEU.
    """

    product: Path = "exact"

    def __init__(self, smoothing: float) -> None:
        super().__init__()
        self.smoothing = smoothing

    def forward(
        self, hidden_TD: Tensor, table_V1D: Tensor, labels_T: Tensor, weight_T: Tensor, pieces: int
    ) -> tuple[Tensor, Tensor]:
        """``(total, nll)``: the smoothed loss and the plain negative log-likelihood, both summed over tokens, in nats.

        Args:
            table_V1D: the pre-softmax projection; only its first ``pieces`` (V) rows can be predicted, not the start
                symbol after them.
            weight_T: 0 for a token that does not count.
        """
        smoothing, path = (self.smoothing, self.product) if self.training else (0.0, "exact")
        total, nll = CrossEntropyFunction.apply(hidden_TD, table_V1D, labels_T, weight_T, pieces, smoothing, path)
        return total, nll


def adversarial_perturbation(loss: Tensor, embedding_TD: Tensor, sequences: Sequences, size: float) -> Tensor:
    """The embedding perturbation that increases a loss most, to first order: ``ε g / |g|`` [Miyato17 §3].

    ``g`` is the gradient with respect to all embeddings of a text together; if it is zero nothing is added. The paper
    makes embeddings of unit variance, so that ε has a meaning; here it counts in lengths of an embedding, the mean of
    the batch.

    Args:
        loss: of all texts, computed from ``embedding_TD``; its graph is kept.
        embedding_TD: of all tokens; those of no text are not perturbed.
        sequences: the texts.
        size: ε.
    """
    (gradient_TD,) = torch.autograd.grad(loss, embedding_TD, retain_graph=True)
    inside_T, rows = sequences.inside_T, sequences.rows_T
    mean = embedding_TD.detach()[inside_T].norm(dim=1).mean()
    square_B = gradient_TD.new_zeros(sequences.count).index_add(0, rows, gradient_TD[inside_T].square().sum(1))
    scale_B = torch.where(square_B > 0, size * mean / square_B.sqrt(), 0.0)
    scale_T = gradient_TD.new_zeros(len(gradient_TD))
    scale_T[inside_T] = scale_B[rows]
    return gradient_TD * scale_T[:, None]
