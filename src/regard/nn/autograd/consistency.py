"""The loss of two passes with other dropout that should agree, R-Drop [Liang21 §2], in chunks of tokens."""

from __future__ import annotations

import torch

from regard.nn.autograd.loss import GPU_SCORES
from regard.nn.ops import matmul

CHUNK = 128
"""Tokens projected at once: the scores of both passes are read several times, and should stay near the processor."""


class ConsistentCrossEntropyFunction(torch.autograd.Function):
    """``½ (CE₁ + CE₂) + α/4 (KL(p₁‖p₂) + KL(p₂‖p₁))``, summed over tokens: half of [Liang21]'s loss of both passes.

    With ``d = log p₁ - log p₂`` the gradient of both divergences with respect to the scores of the first pass is
    ``p₁ (d - KL(p₁‖p₂)) + p₁ - p₂``; that of the second follows by symmetry.
    """

    @staticmethod
    def forward(ctx, first_TD, second_TD, table_V1D, labels_T, weight_T, pieces, smoothing, alpha, path):  # type: ignore[no-untyped-def]
        rows_VD = table_V1D[:pieces]
        low = path == "bf16" and first_TD.dtype == torch.float32
        factor_VD = rows_VD.bfloat16() if low else rows_VD
        gradients = torch.empty_like(first_TD), torch.empty_like(second_TD)
        table_gradient_V1D = torch.zeros_like(table_V1D)
        total, nll = first_TD.new_zeros(()), first_TD.new_zeros(())
        chunk = CHUNK if first_TD.device.type == "cpu" else max(CHUNK, GPU_SCORES // pieces)
        for start in range(0, len(labels_T), chunk):
            part = slice(start, start + chunk)
            labels_R, weight_R = labels_T[part], weight_T[part]
            factors = [hidden_TD[part].to(factor_VD.dtype) for hidden_TD in (first_TD, second_TD)]
            scores = [matmul(factor_RD, factor_VD.t(), path).to(first_TD.dtype) for factor_RD in factors]
            log_RV, other_RV = (score_RV.log_softmax(1) for score_RV in scores)
            d_RV, p_RV, q_RV = log_RV - other_RV, log_RV.exp(), other_RV.exp()
            for own, factor_RD in enumerate(factors):
                likelihood_R = -log_RV.gather(1, labels_R[:, None])[:, 0]
                divergence_R = (p_RV * d_RV).sum(1)
                total_R = (1 - smoothing) * likelihood_R - smoothing * log_RV.mean(1) + alpha / 2 * divergence_R
                total, nll = total + total_R @ weight_R / 2, nll + likelihood_R @ weight_R / 2
                gradient_RV = (d_RV - divergence_R[:, None]).mul_(alpha / 4).add_(0.5).mul_(p_RV)
                gradient_RV.add_(p_RV - q_RV, alpha=alpha / 4).sub_(smoothing / 2 / pieces)
                gradient_RV[torch.arange(len(labels_R), device=labels_R.device), labels_R] += (smoothing - 1) / 2
                low_RV = gradient_RV.mul_(weight_R[:, None]).to(factor_VD.dtype)
                gradients[own][part] = matmul(low_RV, factor_VD, path)
                table_gradient_V1D[:pieces] += matmul(low_RV.t(), factor_RD, path)
                log_RV, d_RV, p_RV, q_RV = other_RV, -d_RV, q_RV, p_RV
        ctx.save_for_backward(*gradients, table_gradient_V1D)
        ctx.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    def backward(ctx, gradient, _):  # type: ignore[no-untyped-def]
        return (*(one * gradient for one in ctx.saved_tensors), None, None, None, None, None, None)
