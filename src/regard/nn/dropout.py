"""Dropout from keyed random bytes: a pure function of the key last given to :func:`reseed` (ARCHITECTURE idea 5).

One byte decides each entry, so the probability is rounded to 1/256 and the scale is exact for the rounded one. This is
several times faster than drawing a float per entry, and the mask is a quarter of the size.
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

    torch's own generators are seeded too: masks on other devices, and weights dropped inside torch's kernels, draw
    from them.
    """
    _Source.bits = np.random.SFC64(key)
    torch.manual_seed(key & 0x7FFF_FFFF_FFFF_FFFF)


def _keep_mask(shape: torch.Size, threshold: int, device: torch.device) -> Tensor:
    """1 with probability ``1 - threshold / 256``, else 0, as int8 (multiplied faster than booleans)."""
    if device.type != "cpu":
        return (torch.randint(0, 256, shape, dtype=torch.uint8, device=device) >= threshold).to(torch.int8)
    count = shape.numel()
    drawn = _Source.bits.random_raw((count + 7) // 8).view(np.uint8)[:count]
    return torch.from_numpy((drawn >= threshold).view(np.int8)).view(shape)


class _Drop(torch.autograd.Function):
    """y · kept / (1 - p); only the mask, one byte per entry, is saved for backward."""

    @staticmethod
    def forward(ctx, y, threshold):  # type: ignore[no-untyped-def]
        kept = _keep_mask(y.shape, threshold, y.device)
        ctx.save_for_backward(kept)
        ctx.scale = 256 / (256 - threshold)
        return (y * kept).mul_(ctx.scale)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (kept,) = ctx.saved_tensors
        return (gradient * kept).mul_(ctx.scale), None


class _AddDropped(torch.autograd.Function):
    """x + y · kept / (1 - p) in one pass less; y may be of lower precision than the stream x."""

    @staticmethod
    def forward(ctx, x, y, threshold):  # type: ignore[no-untyped-def]
        kept = _keep_mask(y.shape, threshold, y.device)
        ctx.save_for_backward(kept)
        ctx.scale, ctx.type = 256 / (256 - threshold), y.dtype
        return torch.add(x, y * kept, alpha=ctx.scale)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (kept,) = ctx.saved_tensors
        return gradient, (gradient * kept).mul_(ctx.scale).to(ctx.type), None


def drop(y: Tensor, probability: float) -> Tensor:
    """Zero each entry with ``probability`` (rounded to 1/256) and scale the others so that the mean stays."""
    threshold = round(probability * 256)
    dropped: Tensor = _Drop.apply(y, threshold) if threshold else y
    return dropped


class Dropout(nn.Module):
    """Residual dropout [Vaswani17 §5.4]: on while training, the identity otherwise."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, y: Tensor) -> Tensor:
        """``Dropout(y)``, any shape."""
        return drop(y, self.probability) if self.training else y

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """``x + Dropout(y)``: a sub-layer's output joins the residual stream."""
        threshold = round(self.probability * 256) if self.training else 0
        added: Tensor = _AddDropped.apply(x, y, threshold) if threshold else x + y
        return added

    def extra_repr(self) -> str:
        """The probability, for printing."""
        return f"{self.probability}"
