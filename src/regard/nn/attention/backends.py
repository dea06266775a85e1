"""Attention backends; all equal the reference, forward and gradient (ARCHITECTURE idea 2).

Each backend states which arguments it supports; :func:`regard.nn.attention.multi_head.attend` takes the first to do so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from regard.nn.attention.padded_groups import Group, grid
from regard.nn.dropout import drop
from regard.nn.layout import Layout, Sequences

Point = Callable[[str, Tensor], Tensor]


class Bias(Protocol):
    """A small value that a backend evaluates from positions (a relative table, linear slopes); never a T×S matrix."""

    def __call__(self, query_positions_L: Tensor, key_positions_M: Tensor) -> Tensor:
        """The bias added to the scores of one sequence, ``bias_HLM``."""
        ...


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
        ...

    def __call__(self, query_THK: Tensor, key_SHK: Tensor, value_SHU: Tensor, args: AttentionArgs) -> Tensor:
        """``context_THU``."""
        ...


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
            made = layout.once((heads, args.causal), lambda: grid(layout, heads, args.causal))
            bias_HLM = None if args.bias is None else _bias_and_mask(args.bias, layout, None)
            context_THU: Tensor = _Grouped.apply(query_THK, key_SHK, value_SHU, bias_HLM, made, args.scale)
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


class _Grouped(torch.autograd.Function):
    """softmax(Q Kᵀ / √d_k) V group by group, and its gradient [Vaswani17 §3.2.1, eq. 1].

    Always in fp32 at least. Groups differ in shape from batch to batch, and torch's bf16 products compile a kernel for
    every new shape: half a millisecond and half a megabyte each time, far more than these small products take.
    """

    @staticmethod
    def forward(ctx, query_THK, key_SHK, value_SHU, bias_HLM, grid, scale):  # type: ignore[no-untyped-def]
        query_YK, key_ZK, value_ZU = _wide(query_THK), _wide(key_SHK), _wide(value_SHU)
        contexts, saved = [], []
        for group in grid.groups:
            query, key, value = group.queries.take(query_YK), group.keys.take(key_ZK), group.keys.take(value_ZU)
            if group.bias is None:
                score = torch.bmm(query, key.transpose(1, 2)).mul_(scale)
            else:
                score = torch.baddbmm(group.bias.to(query.dtype), query, key.transpose(1, 2), alpha=scale)
            if bias_HLM is not None:
                _by_head(score, group).add_(_cut(bias_HLM, group).to(score.dtype))
            weight = score.softmax(-1)
            contexts.append(torch.bmm(weight, value).flatten(0, 1))
            saved += [query, key, value, weight]
        ctx.save_for_backward(*saved)
        ctx.grid, ctx.scale = grid, scale
        ctx.bias = bias_HLM if ctx.needs_input_grad[3] else None
        return _tokens(contexts, grid.query_homes_Y, query_THK)

    @staticmethod
    def backward(ctx, gradient_THU):  # type: ignore[no-untyped-def]
        gradient_YU = _wide(gradient_THU)
        queries, keys, values = [], [], []
        bias_gradient_HLM = None if ctx.bias is None else torch.zeros_like(ctx.bias)
        for i, group in enumerate(ctx.grid.groups):
            query, key, value, weight = ctx.saved_tensors[4 * i : 4 * i + 4]
            gradient = group.queries.take_real(gradient_YU)
            values.append(torch.bmm(weight.transpose(1, 2), gradient).flatten(0, 1))
            weight_gradient = torch.bmm(gradient, value.transpose(1, 2))
            score_gradient = torch._softmax_backward_data(weight_gradient, weight, -1, weight.dtype)
            if bias_gradient_HLM is not None:
                _cut(bias_gradient_HLM, group).add_(_by_head(score_gradient, group).sum(0))
            score_gradient.mul_(ctx.scale)
            queries.append(torch.bmm(score_gradient, key).flatten(0, 1))
            keys.append(torch.bmm(score_gradient.transpose(1, 2), query).flatten(0, 1))
        grid = ctx.grid
        return (
            _tokens(queries, grid.query_homes_Y, gradient_THU),
            _tokens(keys, grid.key_homes_Z, gradient_THU),
            _tokens(values, grid.key_homes_Z, gradient_THU),
            bias_gradient_HLM,
            None,
            None,
        )


def _by_head(score_XLM: Tensor, group: Group) -> Tensor:
    """The grid of one group with sequences and heads apart."""
    return score_XLM.unflatten(0, group.queries.shape[:2])


def _cut(bias_HLM: Tensor, group: Group) -> Tensor:
    """A bias as far as the longest sequence of a group goes."""
    return bias_HLM[:, : group.queries.shape[2], : group.keys.shape[2]]


def _wide(x_THK: Tensor) -> Tensor:
    """(token, head) as rows, in fp32 if it was less."""
    return x_THK.flatten(0, 1).to(torch.promote_types(x_THK.dtype, torch.float32))


def home(cells: list[Tensor], homes_Y: Tensor) -> Tensor:
    """Cells of all groups back to rows end to end; tokens of no sequence take the zeros after the last cell."""
    return torch.cat([*cells, cells[0].new_zeros(1, cells[0].shape[1])]).index_select(0, homes_Y)


def _tokens(cells: list[Tensor], homes_Y: Tensor, like: Tensor) -> Tensor:
    """The same, the heads of a token apart, in the precision of ``like``."""
    return home(cells, homes_Y).unflatten(0, (-1, like.shape[1])).to(like.dtype)


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
            _offsets_B1(queries),
            _offsets_B1(keys),
            _longest(queries),
            _longest(keys),
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


BACKENDS: tuple[Backend, ...] = (Varlen(), PaddedSDPA(), Reference())
"""In order of preference."""
