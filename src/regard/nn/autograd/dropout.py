"""Dropout by a random byte for each entry, which is all that is kept for the backward pass."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.nn.autograd.native import array, has_kernel


class RandomGenerator:
    """The random bytes of the parts; reseeded before every micro-batch, so nothing of it is ever saved."""

    bits = np.random.SFC64(0)


def scale_of(threshold: int) -> float:
    """What the entries that stay are multiplied by, so that the mean stays: ``1 / (1 - p)``."""
    return 256 / (256 - threshold)


def draw(shape: torch.Size) -> Tensor:
    """A random byte for each entry; one below the threshold is dropped, so with probability ``threshold / 256``."""
    count = shape.numel()
    drawn = RandomGenerator.bits.random_raw((count + 7) // 8).view(np.uint8)[:count]
    return torch.from_numpy(drawn).view(shape)


def drop_entries(y: Tensor, drawn: Tensor, threshold: int, gate: Tensor | None = None) -> Tensor:
    """``y / (1 - p)`` where the byte is the threshold or more, and ``gate`` not zero or below; else zero."""
    scale = scale_of(threshold)
    if takes(y) and (gate is None or (takes(gate) and gate.dtype == y.dtype)):
        from regard.system.kernels import _native

        out = torch.empty_like(y)
        line = None if gate is None else _line(gate)
        _native.dropout(_line(y), drawn.view(-1).numpy(), _line(out), threshold, scale, line)
        return out
    kept = (drawn >= threshold).view(torch.int8)  # multiplied faster than booleans
    found = (y * kept).mul_(scale)
    return found if gate is None else found.masked_fill_(gate <= 0, 0.0)


class DropoutFunction(torch.autograd.Function):
    """``y · kept / (1 - p)``, or of ``max(0, y)``, which takes no pass of its own where the kernel takes ``y``."""

    @staticmethod
    def forward(ctx, y, threshold, relu=False):  # type: ignore[no-untyped-def]
        drawn = draw(y.shape)
        found = drop_entries(y, drawn, threshold, y if relu else None)
        ctx.save_for_backward(drawn, *([found] if relu else []))
        ctx.threshold = threshold
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        drawn, *found = ctx.saved_tensors
        return drop_entries(gradient, drawn, ctx.threshold, *found), None, None


class ResidualDropoutFunction(torch.autograd.Function):
    """x + y · kept / (1 - p) in one pass less; y may be of lower precision than the stream x."""

    @staticmethod
    def forward(ctx, x, y, threshold):  # type: ignore[no-untyped-def]
        drawn = draw(y.shape)
        ctx.save_for_backward(drawn)
        ctx.threshold, ctx.type = threshold, y.dtype
        scale = scale_of(threshold)
        if takes(x) and takes(y) and x.dtype == torch.float32 and x.shape == y.shape:
            from regard.system.kernels import _native

            total = torch.empty_like(x)
            stream, drawn_X = x.view(-1).detach().numpy(), drawn.view(-1).numpy()
            _native.add_dropout(_line(y), drawn_X, stream, total.view(-1).numpy(), threshold, scale)
            return total
        return torch.add(x, y * (drawn >= threshold).view(torch.int8), alpha=scale)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (drawn,) = ctx.saved_tensors
        return gradient, drop_entries(gradient, drawn, ctx.threshold).to(ctx.type), None


def takes(x: Tensor) -> bool:
    """Whether the kernel takes these entries: it goes through them as they lie."""
    return has_kernel(x) and x.is_contiguous()


def _line(x: Tensor) -> NDArray[np.float32] | NDArray[np.uint16]:
    return array(x.view(-1))
