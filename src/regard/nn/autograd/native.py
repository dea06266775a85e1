"""What the kernels of ``native/`` compute of training on CPU, and when: attention, without padding.

The kernels of dropout and of the softmax stand beside what torch computes in their place (``dropout``, ``loss``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.nn.layout import Layout
from regard.system import kernels

Longs = NDArray[np.int64]
THREADS = 2
"""Threads of torch up to which one thread of the kernels takes less time than all of them."""


def has_kernel(x: Tensor) -> bool:
    """Whether kernels compute on this tensor: fp32 or bf16 in the processor's memory, and few threads."""
    return (
        x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.bfloat16)
        and torch.get_num_threads() <= THREADS
        and kernels.available()
    )


def array(x: Tensor) -> NDArray[np.float32] | NDArray[np.uint16]:
    """The same memory as an array; bf16 by its bits, as uint16."""
    return (x.view(torch.uint16) if x.dtype == torch.bfloat16 else x).detach().numpy()


@dataclass(frozen=True)
class KernelLayout:
    """A layout as the kernels take it, made once and used by every layer.

    Args:
        sequences: where the queries of each sequence begin, how many there are, and the same of the keys.
        weights: attention weights of one head, rows rounded up as the kernels keep them.
    """

    sequences: tuple[Longs, Longs, Longs, Longs]
    weights: int

    @classmethod
    def of(cls, layout: Layout) -> KernelLayout:
        """Of a layout."""
        from regard.system.kernels import _native

        queries, keys = layout.queries, layout.keys
        places = (queries.starts_B, queries.lengths_B, keys.starts_B, keys.lengths_B)
        parts = (each[: queries.count].contiguous().numpy() for each in places)
        query_start, query_length, key_start, key_length = parts
        rounded = -(-key_length // _native.KEPT) * _native.KEPT
        return cls((query_start, query_length, key_start, key_length), int((query_length * rounded).sum()))


class KernelAttentionFunction(torch.autograd.Function):
    """softmax(Q Kᵀ / √d_k) V sequence by sequence, and its gradient, in fp32 [Vaswani17 §3.2.1, eq. 1]."""

    @staticmethod
    def forward(ctx, query_THK, key_SHK, value_SHU, bias_HLM, layout, causal, scale):  # type: ignore[no-untyped-def]
        from regard.system.kernels import _native

        heads, size = query_THK.shape[1], value_SHU.shape[2]
        query, key, value = (_rows(each) for each in (query_THK, key_SHK, value_SHU))
        bias_HLL = None if bias_HLM is None else bias_HLM.detach().float().contiguous().numpy()
        context_TX = query.new_zeros(len(query_THK), heads * size)
        weights = context_TX.new_empty(heads * layout.weights)
        settings = (heads, scale, causal, *layout.sequences)
        arrays = query.numpy(), key.numpy(), value.numpy(), context_TX.numpy()
        given = (*arrays, *settings, bias_HLL, weights.numpy())
        _native.training_attention(*given)
        ctx.settings = (*settings, bias_HLL if ctx.needs_input_grad[3] else None)  # otherwise the weights say it all
        ctx.save_for_backward(query, key, value, weights)
        ctx.types = query_THK.dtype, None if bias_HLM is None else bias_HLM.dtype
        return context_TX.view(len(query_THK), heads, size).to(query_THK.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient_THU):  # type: ignore[no-untyped-def]
        from regard.system.kernels import _native

        *given, weights = ctx.saved_tensors
        found = [each.new_zeros(each.shape) for each in given]
        bias_HLM = weights.new_zeros(ctx.settings[-1].shape) if ctx.needs_input_grad[3] else None
        arrays = [each.numpy() for each in (*given, _rows(gradient_THU), *found)]
        of_bias = None if bias_HLM is None else bias_HLM.numpy()
        _native.attention_gradient(*(*arrays, *ctx.settings, weights.numpy(), of_bias))
        type_of_inputs, type_of_bias = ctx.types
        gradients = [each.unflatten(1, (ctx.settings[0], -1)).to(type_of_inputs) for each in found]
        return *gradients, None if bias_HLM is None else bias_HLM.to(type_of_bias), None, None, None


def _rows(x_THK: Tensor) -> Tensor:
    """The heads of a token side by side in fp32: a view where they lie so, as after a wide projection."""
    x_TX = x_THK.detach().float().flatten(1)
    is_row = x_TX.stride(1) == 1 and x_TX.stride(0) >= x_TX.shape[1]
    return x_TX if is_row else x_TX.contiguous()
