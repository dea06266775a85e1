"""Label-smoothed cross-entropy in chunks of tokens; the T×V matrix of scores never exists as a whole.

Each chunk of tokens is projected, its loss and gradient are taken, and the next one's scores take the place of its own.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.nn.autograd.native import array, has_kernel
from regard.nn.ops import matmul

CHUNK = 512
"""Tokens projected at once: scores of 512 tokens × 8,000 pieces are 16 MB and stay near the processor."""
GPU_SCORES = 2**26
"""Scores computed at once on a GPU, where few large kernels are faster: 8,388 tokens × 8,000 pieces, 256 MB."""


class CrossEntropyFunction(torch.autograd.Function):
    """Sum of losses and its gradient with respect to hidden and table, both computed in the forward pass.

    The smoothed target is ``(1 - ε) one-hot + ε / V``. Its uniform part needs no pass over the scores: their mean is
    the hidden vector times the mean row of the table, and its gradient is a product of two vectors, taken once at the
    end.
    """

    @staticmethod
    def forward(ctx, hidden_TD, table_V1D, labels_T, weight_T, pieces, smoothing, path):  # type: ignore[no-untyped-def]
        rows_VD = table_V1D[:pieces]
        low = path == "bf16" and hidden_TD.dtype == torch.float32
        factor_TD, factor_VD = (hidden_TD.bfloat16(), rows_VD.bfloat16()) if low else (hidden_TD, rows_VD)
        counted_TD = factor_TD * weight_T[:, None].to(factor_TD.dtype)
        hidden_gradient_TD = torch.empty_like(hidden_TD)
        table_gradient_V1D = torch.zeros_like(table_V1D)
        log_sum_T, label_score_T = hidden_TD.new_empty(len(labels_T)), hidden_TD.new_empty(len(labels_T))
        chunk = CHUNK if hidden_TD.device.type == "cpu" else max(CHUNK, GPU_SCORES // pieces)
        scores_CV = factor_TD.new_empty(min(chunk, len(labels_T)), pieces)
        for start in range(0, len(labels_T), chunk):
            part = slice(start, start + chunk)
            labels_R = labels_T[part]
            score_RV = matmul(factor_TD[part], factor_VD.t(), path, out=scores_CV[: len(labels_R)])
            label_score_T[part] = score_RV.gather(1, labels_R[:, None])[:, 0]
            gradient_RV, log_sum_T[part] = softmax(score_RV, labels_R)
            rows_R = torch.arange(len(labels_R), device=labels_R.device)
            gradient_RV[rows_R, labels_R] += smoothing - 1  # in bf16 scatter_add_ would copy all scores twice
            hidden_gradient_TD[part] = matmul(gradient_RV, factor_VD, path)
            table_gradient_V1D[:pieces] += matmul(gradient_RV.t(), counted_TD[part], path)
        hidden_gradient_TD *= weight_T[:, None]
        nll_T = log_sum_T - label_score_T
        total_T = (1 - smoothing) * nll_T
        if smoothing:
            mean_D = rows_VD.mean(0)
            total_T += smoothing * (log_sum_T - hidden_TD @ mean_D)
            hidden_gradient_TD -= smoothing * weight_T[:, None] * mean_D
            table_gradient_V1D[:pieces] -= smoothing / pieces * (weight_T @ hidden_TD)
        ctx.save_for_backward(hidden_gradient_TD, table_gradient_V1D)
        nll = (nll_T * weight_T).sum()
        ctx.mark_non_differentiable(nll)
        return (total_T * weight_T).sum(), nll

    @staticmethod
    def backward(ctx, gradient, _):  # type: ignore[no-untyped-def]
        hidden_gradient_TD, table_gradient_V1D = ctx.saved_tensors
        return hidden_gradient_TD * gradient, table_gradient_V1D * gradient, None, None, None, None, None


def softmax(score_RV: Tensor, labels_R: Tensor) -> tuple[Tensor, Tensor]:
    """The softmax of scores, which it may replace, and ``log Σ exp(score)`` of each token."""
    if has_kernel(score_RV):
        from regard.system.kernels import _native

        log_sum_R = score_RV.new_empty(len(score_RV), dtype=torch.float32)
        _native.softmax(array(score_RV), log_sum_R.numpy())
        return score_RV, log_sum_R
    probability_RV = score_RV.softmax(1)
    return probability_RV, _log_sum(score_RV, probability_RV, labels_R)


def _log_sum(score_RV: Tensor, probability_RV: Tensor, labels_R: Tensor) -> Tensor:
    """``log Σ exp(score)`` of each token, from its label's score and probability, which needs no pass over the others.

    Where a label's probability is too small to be told from zero, it follows from the largest of each.
    """
    wide = torch.promote_types(score_RV.dtype, torch.float32)
    label_R = probability_RV.gather(1, labels_R[:, None])[:, 0].to(wide)
    log_sum_R = score_RV.gather(1, labels_R[:, None])[:, 0] - label_R.log()
    unknown_R = label_R < torch.finfo(torch.float32).tiny
    if bool(unknown_R.any()):
        from_largest_R = score_RV.amax(1).to(wide) - probability_RV.amax(1).to(wide).log()
        log_sum_R = torch.where(unknown_R, from_largest_R, log_sum_R)
    return log_sum_R
