"""Dropout by a mask of bytes, which is all that is kept for the backward pass."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


class RandomGenerator:
    """The random bytes of the parts; reseeded before every micro-batch, so nothing of it is ever saved."""

    bits = np.random.SFC64(0)


def keep_mask(shape: torch.Size, threshold: int) -> Tensor:
    """1 with probability ``1 - threshold / 256``, else 0, as int8 (multiplied faster than booleans)."""
    count = shape.numel()
    drawn = RandomGenerator.bits.random_raw((count + 7) // 8).view(np.uint8)[:count]
    return torch.from_numpy((drawn >= threshold).view(np.int8)).view(shape)


class DropoutFunction(torch.autograd.Function):
    """y · kept / (1 - p); only the mask, one byte per entry, is saved for backward."""

    @staticmethod
    def forward(ctx, y, threshold):  # type: ignore[no-untyped-def]
        kept = keep_mask(y.shape, threshold)
        ctx.save_for_backward(kept)
        ctx.scale = 256 / (256 - threshold)
        return (y * kept).mul_(ctx.scale)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (kept,) = ctx.saved_tensors
        return (gradient * kept).mul_(ctx.scale), None


class ResidualDropoutFunction(torch.autograd.Function):
    """x + y · kept / (1 - p) in one pass less; y may be of lower precision than the stream x."""

    @staticmethod
    def forward(ctx, x, y, threshold):  # type: ignore[no-untyped-def]
        kept = keep_mask(y.shape, threshold)
        ctx.save_for_backward(kept)
        ctx.scale, ctx.type = 256 / (256 - threshold), y.dtype
        return torch.add(x, y * kept, alpha=ctx.scale)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (kept,) = ctx.saved_tensors
        return gradient, (gradient * kept).mul_(ctx.scale).to(ctx.type), None
