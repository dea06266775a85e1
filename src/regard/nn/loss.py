"""The training loss: label-smoothed cross-entropy, computed with its gradient in chunks of tokens.

The T×V matrix of scores never exists whole: a chunk of tokens is projected, its loss and gradient are taken, and it is gone.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.nn.ops import Path, matmul

CHUNK = 512
"""Tokens projected at once: scores of 512 tokens × 8,000 pieces are 16 MB and stay near the processor."""


class _ChunkedLoss(torch.autograd.Function):
    """Sum of losses and its gradient with respect to hidden and table, both made on the way forward."""

    @staticmethod
    def forward(ctx, hidden_TD, table_VD, labels_T, weight_T, pieces, smoothing, path):  # type: ignore[no-untyped-def]
        low = path == "bf16" and hidden_TD.dtype == torch.float32
        factor_VD = table_VD[:pieces].bfloat16() if low else table_VD[:pieces]
        factor_TD = hidden_TD.bfloat16() if low else hidden_TD
        learning = any(ctx.needs_input_grad)
        hidden_gradient_TD = torch.empty_like(factor_TD) if learning else None
        table_gradient_VD = torch.zeros_like(table_VD) if learning else None
        total = hidden_TD.new_zeros(())
        nll = hidden_TD.new_zeros(())
        for start in range(0, len(labels_T), CHUNK):
            part = slice(start, start + CHUNK)
            score_RV = matmul(factor_TD[part], factor_VD.t(), path)
            score_RV = score_RV.float() if low else score_RV
            chunk_total, chunk_nll, score_gradient_RV = _smoothed(score_RV, labels_T[part], weight_T[part], smoothing)
            total += chunk_total
            nll += chunk_nll
            if learning:
                score_gradient_RV = score_gradient_RV.to(factor_TD.dtype)
                matmul(score_gradient_RV, factor_VD, path, out=hidden_gradient_TD[part])
                table_gradient_VD[:pieces] += matmul(score_gradient_RV.t(), factor_TD[part], path)
        ctx.save_for_backward(hidden_gradient_TD, table_gradient_VD)
        ctx.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    def backward(ctx, gradient, _):  # type: ignore[no-untyped-def]
        hidden_gradient_TD, table_gradient_VD = ctx.saved_tensors
        hidden = hidden_gradient_TD.to(table_gradient_VD.dtype) * gradient
        return hidden, table_gradient_VD * gradient, None, None, None, None, None


def _smoothed(score_RV: Tensor, labels_R: Tensor, weight_R: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    """Losses of a chunk, and the gradient with respect to its scores (written over them): softmax minus smoothed target."""
    pieces = score_RV.shape[1]
    label_R1 = labels_R[:, None]
    log_sum_R1 = score_RV.logsumexp(1, keepdim=True)
    nll_R = (log_sum_R1 - score_RV.gather(1, label_R1))[:, 0] * weight_R
    uniform_R = (log_sum_R1[:, 0] - score_RV.mean(1)) * weight_R
    total = (1 - smoothing) * nll_R.sum() + smoothing * uniform_R.sum()
    gradient_RV = score_RV.sub_(log_sum_R1).exp_()
    if smoothing:
        gradient_RV -= smoothing / pieces
    gradient_RV.scatter_add_(1, label_R1, torch.full_like(label_R1, smoothing - 1, dtype=gradient_RV.dtype))
    return total, nll_R.sum(), gradient_RV.mul_(weight_R[:, None])


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
        self, hidden_TD: Tensor, table_VD: Tensor, labels_T: Tensor, weight_T: Tensor, pieces: int
    ) -> tuple[Tensor, Tensor]:
        """``(total, nll)``: the smoothed loss and the plain negative log-likelihood, both summed over tokens, in nats.

        Args:
            table_VD: the pre-softmax projection; only its first ``pieces`` rows can be predicted (not the start symbol).
            weight_T: 0 for a token that does not count.
        """
        smoothing = self.smoothing if self.training else 0.0
        total, nll = _ChunkedLoss.apply(hidden_TD, table_VD, labels_T, weight_T, pieces, smoothing, self.product)
        return total, nll
