"""Dropout from keyed random bytes: a pure function of the key last given to :func:`reseed` (DESIGN idea 5).

A byte an entry decides, so the probability is rounded to 1/256 and the scale is exact for the rounded one. It is several
times faster than drawing a float an entry, and the mask is a quarter of the size.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn


class _Source:
    """The random bytes of the parts; reseeded before every micro-batch, so nothing of it is ever saved."""

    bits = np.random.SFC64(0)


def reseed(key: int) -> None:
    """Start every random source of the parts from ``key`` (64 bits): the same key gives the same masks.

    torch's own generators are seeded too (attention weights dropped inside torch's kernels draw from them).
    """
    _Source.bits = np.random.SFC64(key)
    torch.manual_seed(key & 0x7FFF_FFFF_FFFF_FFFF)


def _bytes_X(count: int, device: torch.device) -> Tensor:
    if device.type != "cpu":  # drawn where they are used, by torch's generator of that device
        return torch.randint(0, 256, (count,), dtype=torch.uint8, device=device)
    words = _Source.bits.random_raw((count + 7) // 8)
    return torch.from_numpy(words.view(np.uint8))[:count]


class _Drop(torch.autograd.Function):
    """x times mask / keep; only the mask (a byte an entry) is kept for the way back."""

    @staticmethod
    def forward(ctx, x, threshold):  # type: ignore[no-untyped-def]
        keep = (_bytes_X(x.numel(), x.device) >= threshold).view(x.shape)
        ctx.save_for_backward(keep)
        ctx.scale = 256 / (256 - threshold)
        return (x * keep).mul_(ctx.scale)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (keep,) = ctx.saved_tensors
        return (gradient * keep).mul_(ctx.scale), None


def drop(x: Tensor, probability: float) -> Tensor:
    """Zero each entry with ``probability`` (rounded to 1/256) and scale the others so that the mean stays."""
    threshold = round(probability * 256)
    return _Drop.apply(x, threshold) if threshold else x


class Dropout(nn.Module):
    """Residual dropout [Vaswani17 §5.4]: on while training, the identity otherwise."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        """Entries of ``x`` dropped, any shape."""
        return drop(x, self.probability) if self.training else x

    def extra_repr(self) -> str:
        """The probability, for printing."""
        return f"{self.probability}"
