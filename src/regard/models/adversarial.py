"""Adversarial training: perturb embeddings by ε along the loss gradient and train on both losses [Miyato17]."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.nn.layout import Sequences

EMBEDDING = "encoder.input.embedding"
"""Where embeddings pass in the models that read texts or images, by the probe's name."""


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
