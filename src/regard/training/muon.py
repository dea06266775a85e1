"""Muon: the momentum of a weight matrix, made orthogonal, is its update [Jordan24]."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

MOMENTUM = 0.95
RMS = 0.2
"""Root mean square of an update of rate 1, about that of Adam's, so that one rate suits both [Liu25 §2.2]."""
COEFFICIENTS = 3.4445, -4.7750, 2.0315
ROUNDS = 3
"""Of Newton-Schulz; with five, as in [Jordan24], translators learned as much in a step, which took longer."""


def orthogonal(x_NAB: Tensor, dtype: torch.dtype) -> Tensor:
    """``U Vᵀ`` of each matrix ``U Σ Vᵀ``, nearly: by Newton-Schulz its larger singular values come near 1 [Jordan24].

    Args:
        dtype: of the products, such as bf16.
    """
    wide = x_NAB.shape[1] <= x_NAB.shape[2]
    y_NAB = x_NAB if wide else x_NAB.transpose(1, 2)
    y_NAB = (y_NAB / y_NAB.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)).to(dtype)
    a, b, c = COEFFICIENTS
    for _ in range(ROUNDS):
        gram_NAA = y_NAB @ y_NAB.transpose(1, 2)
        y_NAB = torch.baddbmm(y_NAB, torch.baddbmm(gram_NAA, gram_NAA, gram_NAA, beta=b, alpha=c), y_NAB, beta=a)
    return (y_NAB if wide else y_NAB.transpose(1, 2)).to(x_NAB.dtype)


@dataclass(frozen=True)
class Muon:
    """Muon for matrices of one shape that lie end to end in a buffer.

    Args:
        start: of the first of them.
        count: how many they are.
        stride: from the start of one to that of the next.
        shape: of each.
        decay: of the weights, beside the gradient.
        dtype: of the products that make a matrix orthogonal.
    """

    start: int
    count: int
    stride: int
    shape: torch.Size
    decay: float
    dtype: torch.dtype

    @torch.no_grad()
    def update(self, weights: Tensor, gradients: Tensor, momenta: Tensor, rate: float) -> None:
        """One update of these matrices of all buffers, in place."""
        weight_NAB, gradient_NAB, momentum_NAB = (self._matrices(flat) for flat in (weights, gradients, momenta))
        momentum_NAB.lerp_(gradient_NAB, 1 - MOMENTUM)
        ahead_NAB = gradient_NAB.lerp(momentum_NAB, MOMENTUM)  # Nesterov's
        if self.decay:
            weight_NAB.mul_(1 - rate * self.decay)
        weight_NAB.sub_(orthogonal(ahead_NAB, self.dtype), alpha=rate * RMS * max(self.shape) ** 0.5)

    def _matrices(self, flat: Tensor) -> Tensor:
        rows = flat[self.start : self.start + self.count * self.stride].view(self.count, self.stride)
        return rows[:, : self.shape.numel()].unflatten(1, self.shape)
