"""Attention backends; all equal the reference, forward and gradient (ARCHITECTURE idea 2).

Each backend states which arguments it supports; :func:`regard.nn.attention.multi_head.attend` takes the first to do so.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from regard.nn.attention.padded_groups import grid
from regard.nn.autograd.attention import PaddedAttentionFunction
from regard.nn.autograd.native import KernelAttentionFunction, KernelLayout, has_kernel
from regard.nn.dropout import drop
from regard.nn.hooks import Point
from regard.nn.layout import Layout, Sequences


class Bias(Protocol):
    """A small value that a backend evaluates from positions (a relative table, linear slopes); never a T×S matrix."""

    def __call__(self, query_positions_L: Tensor, key_positions_M: Tensor) -> Tensor:
        """The bias added to the scores of one sequence, ``bias_HLM``."""


@dataclass(frozen=True)
class AttentionArgs:
    """All arguments of attention except query, key and value."""

    layout: Layout
    causal: bool
    scale: float
    bias: Bias | None = None
    dropout: float = 0.0


class Backend(Protocol):
    """An attention backend."""

    name: str

    def supports(self, query_THK: Tensor, value_SHU: Tensor, args: AttentionArgs) -> bool:
        """Whether it can compute this on these tensors."""

    def __call__(self, query_THK: Tensor, key_SHK: Tensor, value_SHU: Tensor, args: AttentionArgs) -> Tensor:
        """``context_THU``."""


def unchanged(_: str, value: Tensor) -> Tensor:
    """The point where nothing is captured or replaced."""
    return value


class Reference:
    """The equation, sentence by sentence; can everything, and shows its scores [Vaswani17 §3.2.1, eq. 1]."""

    name = "reference"

    def supports(self, query_THK: Tensor, value_SHU: Tensor, args: AttentionArgs) -> bool:
        """Everything, everywhere."""
        return True

    def __call__(
        self, query_THK: Tensor, key_SHK: Tensor, value_SHU: Tensor, args: AttentionArgs, point: Point = unchanged
    ) -> Tensor:
        """softmax(Q Kᵀ / √d_k) V for each sequence; ``point`` is the hook on each intermediate value."""
        layout = args.layout
        context_THU = query_THK.new_zeros(*query_THK.shape[:2], value_SHU.shape[2])
        pieces = []
        for b in range(layout.queries.count):
            here, there = places(layout.queries, b), places(layout.keys, b)
            if args.causal:  # the first queries have no keys if there are fewer keys
                here = here[max(0, len(here) - len(there)) :]
            if len(here) and len(there):
                pieces.append((here, self._sequence(query_THK[here], key_SHK[there], value_SHU[there], args, point)))
        if pieces:
            places_R = torch.cat([here for here, _ in pieces])
            context_THU = context_THU.index_copy(0, places_R, torch.cat([context for _, context in pieces]))
        return context_THU

    def _sequence(
        self, query_LHK: Tensor, key_MHK: Tensor, value_MHU: Tensor, args: AttentionArgs, point: Point
    ) -> Tensor:
        query_HLK, key_HMK = point("query", query_LHK.transpose(0, 1)), point("key", key_MHK.transpose(0, 1))
        value_HMU = point("value", value_MHU.transpose(0, 1))
        score_HLM = point("score", torch.einsum("hlk,hmk->hlm", query_HLK, key_HMK)) * args.scale
        places_M = torch.arange(len(key_MHK), device=score_HLM.device)  # the last query aligns with the last key
        places_L = torch.arange(len(query_LHK), device=score_HLM.device) + len(key_MHK) - len(query_LHK)
        if args.bias is not None:
            score_HLM = score_HLM + point("bias", args.bias(places_L, places_M))
        if args.causal:
            ahead_LM = point("mask", places_M > places_L[:, None])
            score_HLM = score_HLM.masked_fill(ahead_LM, -math.inf)
        weight_HLM = point("weight", score_HLM.softmax(-1))
        if args.dropout:
            weight_HLM = drop(weight_HLM, args.dropout)
        context_HLU = point("context", torch.einsum("hlm,hmu->hlu", weight_HLM, value_HMU))
        return context_HLU.transpose(0, 1)


def places(sequences: Sequences, b: int) -> Tensor:
    """Where the tokens of sequence ``b`` lie on the axis."""
    start, length = int(sequences.starts_B[b]), int(sequences.lengths_B[b])
    return torch.arange(start, start + length, device=sequences.starts_B.device)


class Native:
    """The kernels of ``native/``, without padding: training on CPU, by one thread.

    For sentences they take 0.3 to 0.9 of the time of torch's products on padded grids (AMD EPYC, family 25, model 1),
    so that they are faster than those with two threads too. Where every query sees more than :attr:`LONGEST` keys,
    torch's large products are faster.
    """

    name = "native"
    LONGEST = 384

    def supports(self, query_THK: Tensor, value_SHU: Tensor, args: AttentionArgs) -> bool:
        """The kernels were compiled, numbers are fp32 or narrower, queries have keys, no weight is dropped."""
        layout = args.layout
        return (
            query_THK.requires_grad
            and has_kernel(query_THK)
            and not args.dropout
            and (args.bias is None or layout.queries is layout.keys)
            and layout.queries.stride is None
            and layout.keys.stride is None
            and layout.queries.longest > 0
            and (args.causal or layout.keys.longest <= self.LONGEST)
            and layout.every_query_has_keys(args.causal)
        )

    def __call__(self, query_THK: Tensor, key_SHK: Tensor, value_SHU: Tensor, args: AttentionArgs) -> Tensor:
        """Sequence by sequence."""
        layout = args.layout
        made = layout.once("native", lambda: KernelLayout.of(layout))
        bias_HLM = None if args.bias is None else _bias_and_mask(args.bias, layout, None)
        context_THU: Tensor = KernelAttentionFunction.apply(
            query_THK, key_SHK, value_SHU, bias_HLM, made, args.causal, args.scale
        )
        return context_THU


class PaddedSDPA:
    """Scaled dot-product attention on padded grids: any device. The only place where padding exists.

    torch's own kernel computes it, but for training on CPU: there sequences of similar length are grouped and the few
    products are written out, which is measured to be twice as fast.
    """

    name = "sdpa"

    def supports(self, query_THK: Tensor, value_SHU: Tensor, args: AttentionArgs) -> bool:
        """Every query has keys (torch would give NaN)."""
        layout = args.layout
        return layout.queries.longest > 0 and layout.every_query_has_keys(args.causal)

    def __call__(self, query_THK: Tensor, key_SHK: Tensor, value_SHU: Tensor, args: AttentionArgs) -> Tensor:
        """Gather to grids, attend, gather back."""
        layout, heads = args.layout, query_THK.shape[1]
        simple = not args.dropout and (args.bias is None or layout.queries is layout.keys)
        if query_THK.requires_grad and query_THK.device.type == "cpu" and simple:
            made = layout.once((heads, args.causal), lambda: grid(layout, heads, args.causal, whole_vectors=True))
            bias_HLM = None if args.bias is None else _bias_and_mask(args.bias, layout, None)
            context_THU: Tensor = PaddedAttentionFunction.apply(
                query_THK, key_SHK, value_SHU, bias_HLM, made, args.scale
            )
            return context_THU
        return _torch_sdpa(query_THK, key_SHK, value_SHU, args)


def _torch_sdpa(query_THK: Tensor, key_SHK: Tensor, value_SHU: Tensor, args: AttentionArgs) -> Tensor:
    layout = args.layout
    square = args.causal and layout.queries is layout.keys and args.bias is None
    mask: Tensor | None = None
    if not square and (args.causal or not layout.keys.full):
        mask = layout.allowed_BLM(args.causal)[:, None]
    if args.bias is not None:
        mask = _bias_and_mask(args.bias, layout, mask).to(query_THK.dtype)
    on_cpu = query_THK.device.type == "cpu"  # measured: torch's flash kernel is several times slower there
    with sdpa_kernel(SDPBackend.MATH) if on_cpu else nullcontext():
        context_BHLU = F.scaled_dot_product_attention(
            _pad(query_THK, layout.queries),
            _pad(key_SHK, layout.keys),
            _pad(value_SHU, layout.keys),
            attn_mask=mask,
            is_causal=square,
            dropout_p=args.dropout,
            scale=args.scale,
        )
    return _pack(context_BHLU.transpose(1, 2), layout.queries)


def _bias_and_mask(bias: Bias, layout: Layout, allowed_BHLM: Tensor | None) -> Tensor:
    """The bias of a padded grid's scores: positional bias, and -inf for masked keys.

    Where queries and keys are the same tokens, one (H, L, M) serves all sequences.
    """
    queries, keys = layout.queries, layout.keys
    places_M = torch.arange(keys.longest, device=keys.lengths_B.device)
    added = bias(places_M, places_M)
    if queries is not keys:  # the last query aligns with the last key
        first_B = (keys.lengths_B - queries.lengths_B)[: queries.count]
        places_BL = first_B[:, None] + torch.arange(queries.longest, device=first_B.device)
        added = added[:, places_BL.clamp(0, keys.longest - 1)].transpose(0, 1)
    return added if allowed_BHLM is None else torch.where(allowed_BHLM, added, -math.inf)


def _pad(x_THK: Tensor, sequences: Sequences) -> Tensor:
    """``x_BHLK``: a view if the sequences are rows of an arena, else a gather."""
    if sequences.stride is not None:
        rows = x_THK[: sequences.size].unflatten(0, (sequences.count, sequences.stride))
        return rows[:, : sequences.longest].transpose(1, 2)
    return x_THK[sequences.grid_BL].transpose(1, 2)


def _pack(x_BLHU: Tensor, sequences: Sequences) -> Tensor:
    """Back to tokens end to end; those of no sequence get zeros."""
    if sequences.stride == 1:
        return x_BLHU.flatten(0, 1)
    x_THU = x_BLHU.flatten(0, 1)[sequences.cells_T]
    return x_THU if sequences.covers_all_tokens else x_THU * sequences.inside_T[:, None, None]


class Varlen:
    """torch's variable-length attention on packed tokens (CUDA): no padding, no bias, no dropout on weights.

    It can what torch's flash kernel can: Ampere (compute capability 8.0) and later, half precision, one size of query,
    key and value that is a multiple of 8 up to 256, a block of the grid for each sequence. Some GPUs lack the memory
    for the gradient of sizes in :attr:`ROOMY`, which torch leaves to other kernels there, and this way everywhere.
    """

    name = "varlen"
    SIZES, ROOMY, SEQUENCES = range(8, 257, 8), range(193, 225), range(65_535)

    def supports(self, query_THK: Tensor, value_SHU: Tensor, args: AttentionArgs) -> bool:
        """Ampere or later, bf16 or fp16, equal sizes that fit, contiguous sequences, no bias, no dropout."""
        layout, size = args.layout, query_THK.shape[2]
        return (
            query_THK.is_cuda
            and query_THK.dtype in (torch.bfloat16, torch.float16)
            and args.bias is None
            and not args.dropout
            and value_SHU.shape[2] == size
            and size in self.SIZES
            and not (size in self.ROOMY and query_THK.requires_grad)
            and layout.queries.stride is None
            and layout.keys.stride is None
            and layout.queries.count in self.SEQUENCES
            and min(layout.queries.longest, layout.keys.longest) > 0
            and torch.cuda.get_device_capability(query_THK.device) >= (8, 0)
        )

    def __call__(self, query_THK: Tensor, key_SHK: Tensor, value_SHU: Tensor, args: AttentionArgs) -> Tensor:
        """One call for the whole batch."""
        from torch.nn.attention.varlen import varlen_attn

        queries, keys = args.layout.queries, args.layout.keys
        context_THU = varlen_attn(
            query_THK,
            key_SHK,
            value_SHU,
            queries.once("offsets", partial(_offsets_B1, queries)),
            keys.once("offsets", partial(_offsets_B1, keys)),
            queries.once("longest", partial(_longest, queries)),
            keys.once("longest", partial(_longest, keys)),
            scale=args.scale,
            window_size=(-1, 0) if args.causal else (-1, -1),
        )
        assert isinstance(context_THU, Tensor)  # a pair only if asked for more
        return context_THU if queries.covers_all_tokens else context_THU * queries.inside_T[:, None, None]


def _offsets_B1(sequences: Sequences) -> Tensor:
    """Where each sequence begins; the tokens after the last one form one more, whose context is zeroed afterwards."""
    offsets_B1 = F.pad(sequences.lengths_B[: sequences.count].cumsum(0), (1, 1))
    offsets_B1[-1] = sequences.size
    return offsets_B1.int()


def _longest(sequences: Sequences) -> int:
    return max(sequences.longest, sequences.size - int(sequences.lengths_B.sum()))


BACKENDS: tuple[Backend, ...] = (Varlen(), Native(), PaddedSDPA(), Reference())
"""In order of preference."""
