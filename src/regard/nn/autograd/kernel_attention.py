"""Attention on CPU in training by the kernels of ``native/training/attention_training.cpp``: without padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.nn.layout import Layout, Sequences

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class KernelLayout:
    """A layout as the kernels take it, made once and used by every layer.

    Args:
        sequences: where the queries of each sequence begin, how many there are, and the same of the keys.
        weights: attention weights of one head, rows rounded up as the kernels keep them.
    """

    sequences: tuple[Array, Array, Array, Array]
    weights: int

    @classmethod
    def of(cls, layout: Layout) -> KernelLayout:
        """Of a layout."""
        from regard.kernels import _native

        queries, keys = layout.queries, layout.keys
        parts = (*_places(queries, layout.queries.count), *_places(keys, layout.queries.count))
        rounded = -(-parts[3] // _native.KEPT) * _native.KEPT
        return cls(parts, int((parts[1] * rounded).sum()))


def _places(sequences: Sequences, count: int) -> tuple[Array, Array]:
    starts_B, lengths_B = (each[:count].contiguous().numpy() for each in (sequences.starts_B, sequences.lengths_B))
    return starts_B, lengths_B


class KernelAttentionFunction(torch.autograd.Function):
    """softmax(Q Kᵀ / √d_k) V sequence by sequence, and its gradient, in fp32 [Vaswani17 §3.2.1, eq. 1]."""

    @staticmethod
    def forward(ctx, query_THK, key_SHK, value_SHU, bias_HLM, layout, causal, scale):  # type: ignore[no-untyped-def]
        from regard.kernels import _native

        heads, size = query_THK.shape[1], value_SHU.shape[2]
        given = tuple(_rows(each) for each in (query_THK, key_SHK, value_SHU))
        bias_HLL = None if bias_HLM is None else bias_HLM.detach().float().contiguous().numpy()
        context_TX = given[0].new_zeros(len(query_THK), heads * size)
        weights = context_TX.new_empty(heads * layout.weights)
        settings = (heads, scale, causal, *layout.sequences)
        compute: Any = _native.training_attention
        compute(*(each.numpy() for each in (*given, context_TX)), *settings, bias_HLL, weights.numpy())
        ctx.settings = (*settings, bias_HLL if ctx.needs_input_grad[3] else None)  # otherwise the weights say it all
        ctx.save_for_backward(*given, weights)
        ctx.types = query_THK.dtype, None if bias_HLM is None else bias_HLM.dtype
        return context_TX.view(len(query_THK), heads, size).to(query_THK.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient_THU):  # type: ignore[no-untyped-def]
        from regard.kernels import _native

        *given, weights = ctx.saved_tensors
        found = [each.new_zeros(each.shape) for each in given]
        bias_HLM = weights.new_zeros(ctx.settings[-1].shape) if ctx.needs_input_grad[3] else None
        compute: Any = _native.attention_gradient
        arrays = (each.numpy() for each in (*given, _rows(gradient_THU), *found))
        compute(*arrays, *ctx.settings, weights.numpy(), None if bias_HLM is None else bias_HLM.numpy())
        of_inputs, of_bias = ctx.types
        gradients = [each.unflatten(1, (ctx.settings[0], -1)).to(of_inputs) for each in found]
        return *gradients, None if bias_HLM is None else bias_HLM.to(of_bias), None, None, None


def _rows(x_THK: Tensor) -> Tensor:
    """The heads of a token side by side in fp32: a view where they lie so, as after a wide projection."""
    x_TX = x_THK.detach().float().flatten(1)
    is_row = x_TX.stride(1) == 1 and x_TX.stride(0) >= x_TX.shape[1]
    return x_TX if is_row else x_TX.contiguous()
