"""The loss of two passes with other dropout that should agree, R-Drop [Liang21 §2], in chunks of tokens."""

from __future__ import annotations

import torch

from regard.nn.autograd.loss import GPU_SCORES, softmax
from regard.nn.ops import matmul

CHUNK = 128
"""Tokens projected at once: the scores of both passes are read several times, and should stay near the processor."""


class RDropFunction(torch.autograd.Function):
    """``½ (CE₁ + CE₂) + α/4 (KL(p₁‖p₂) + KL(p₂‖p₁))``, summed over tokens: half of [Liang21]'s loss of both passes.

    With ``d = log p₁ - log p₂`` the gradient of both divergences with respect to the scores of the first pass is
    ``p₁ (d - KL(p₁‖p₂) + 1) - p₂``; that of the second follows by symmetry.
    """

    @staticmethod
    def forward(ctx, first_TD, second_TD, table_V1D, labels_T, weight_T, pieces, smoothing, alpha, path):  # type: ignore[no-untyped-def]
        rows_VD, passes = table_V1D[:pieces], (first_TD, second_TD)
        low = path == "bf16" and first_TD.dtype == torch.float32
        factor_VD, mean_D = rows_VD.bfloat16() if low else rows_VD, rows_VD.mean(0)
        gradients, table_gradient_V1D = [torch.empty_like(one) for one in passes], torch.zeros_like(table_V1D)
        total, nll = first_TD.new_zeros(()), first_TD.new_zeros(())
        chunk = CHUNK if first_TD.device.type == "cpu" else max(CHUNK, GPU_SCORES // pieces)
        for start in range(0, len(labels_T), chunk):
            part = slice(start, start + chunk)
            labels_R, weight_R = labels_T[part], weight_T[part]
            label_cells = torch.arange(len(labels_R), device=labels_R.device), labels_R
            factors = [hidden_TD[part].to(factor_VD.dtype) for hidden_TD in passes]
            products = (matmul(factor_RD, factor_VD.t(), path) for factor_RD in factors)
            score_RV, other_RV = (one_RV.to(first_TD.dtype) for one_RV in products)
            label_scores, d_RV = [one_RV[label_cells] for one_RV in (score_RV, other_RV)], score_RV - other_RV
            (p_RV, sum_R), (q_RV, other_sum_R) = (softmax(one_RV, labels_R) for one_RV in (score_RV, other_RV))
            d_RV -= (sum_R - other_sum_R)[:, None]
            for own, (factor_RD, log_sum_R) in enumerate(zip(factors, (sum_R, other_sum_R), strict=True)):
                likelihood_R, divergence_R = log_sum_R - label_scores[own], (p_RV * d_RV).sum(1)
                uniform_R = log_sum_R - passes[own][part] @ mean_D
                total_R = (1 - smoothing) * likelihood_R + smoothing * uniform_R + alpha / 2 * divergence_R
                total, nll = total + total_R @ weight_R / 2, nll + likelihood_R @ weight_R / 2
                constant_R = 0.5 + alpha / 4 * (1 - divergence_R)
                gradient_RV = d_RV.mul(alpha / 4).add_(constant_R[:, None]).mul_(p_RV)
                gradient_RV.sub_(q_RV, alpha=alpha / 4)
                gradient_RV[label_cells] += (smoothing - 1) / 2
                low_RV, counted_RD = (x.to(factor_RD.dtype) for x in (gradient_RV, factor_RD * weight_R[:, None]))
                gradients[own][part] = matmul(low_RV, factor_VD, path)
                table_gradient_V1D[:pieces] += matmul(low_RV.t(), counted_RD, path)
                d_RV, p_RV, q_RV = -d_RV, q_RV, p_RV
        for hidden_TD, gradient_TD in zip(passes, gradients, strict=True):  # the smoothed target's uniform part
            gradient_TD -= smoothing / 2 * mean_D
            gradient_TD *= weight_T[:, None]
            table_gradient_V1D[:pieces] -= smoothing / 2 / pieces * (weight_T @ hidden_TD)
        ctx.save_for_backward(*gradients, table_gradient_V1D)
        ctx.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    def backward(ctx, gradient, _):  # type: ignore[no-untyped-def]
        return (*(one * gradient for one in ctx.saved_tensors), None, None, None, None, None, None)
