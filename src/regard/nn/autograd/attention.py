"""Attention and additive attention on CPU in training, group by group of sentences of similar length."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.nn.attention.padded_groups import Group, PaddedGroups, Side

CHUNK = 2**18
"""Entries of tanh(W h + U m) that exist at once: they stay near the processor; one pair of sentences may have more."""


class PaddedAttentionFunction(torch.autograd.Function):
    """softmax(Q Kᵀ / √d_k) V group by group, and its gradient [Vaswani17 §3.2.1, eq. 1].

    Always in fp32 at least. Groups differ in shape from batch to batch, and torch's bf16 products compile a kernel for
    every new shape: half a millisecond and half a megabyte each time, far more than these small products take.
    """

    @staticmethod
    def forward(ctx, query_THK, key_SHK, value_SHU, bias_HLM, grid, scale):  # type: ignore[no-untyped-def]
        query_YK, key_ZK, value_ZU = _wide(query_THK), _wide(key_SHK), _wide(value_SHU)
        contexts, saved = Cells([group.queries for group in grid.groups], value_ZU, value_ZU.shape[1]), []
        for i, group in enumerate(grid.groups):
            query, key, value = group.queries.take(query_YK), group.keys.take(key_ZK), group.keys.take(value_ZU)
            if group.bias is None:
                score = torch.bmm(query, key.transpose(1, 2)).mul_(scale)
            else:
                score = torch.baddbmm(group.bias.to(query.dtype), query, key.transpose(1, 2), alpha=scale)
            if bias_HLM is not None:
                _by_head(score, group).add_(_cut(bias_HLM, group).to(score.dtype))
            weight = score.softmax(-1)
            torch.bmm(weight, value, out=contexts.of(i))
            saved += [query, key, value, weight]
        ctx.save_for_backward(*saved)
        ctx.grid, ctx.scale = grid, scale
        ctx.bias = bias_HLM if ctx.needs_input_grad[3] else None
        return _tokens(contexts.home(grid.query_homes_Y), query_THK)

    @staticmethod
    def backward(ctx, gradient_THU):  # type: ignore[no-untyped-def]
        gradient_YU, grid = _wide(gradient_THU), ctx.grid
        width_K, width_U = ctx.saved_tensors[0].shape[-1], gradient_YU.shape[1]
        key_sides = [group.keys for group in grid.groups]
        queries = Cells([group.queries for group in grid.groups], gradient_YU, width_K)
        keys, values = Cells(key_sides, gradient_YU, width_K), Cells(key_sides, gradient_YU, width_U)
        bias_gradient_HLM = None if ctx.bias is None else torch.zeros_like(ctx.bias)
        for i, group in enumerate(grid.groups):
            query, key, value, weight = ctx.saved_tensors[4 * i : 4 * i + 4]
            gradient = group.queries.take_real(gradient_YU)
            torch.bmm(weight.transpose(1, 2), gradient, out=values.of(i))
            weight_gradient = torch.bmm(gradient, value.transpose(1, 2))
            score_gradient = torch._softmax_backward_data(weight_gradient, weight, -1, weight.dtype)
            if bias_gradient_HLM is not None:
                _cut(bias_gradient_HLM, group).add_(_by_head(score_gradient, group).sum(0))
            score_gradient.mul_(ctx.scale)
            torch.bmm(score_gradient, key, out=queries.of(i))
            torch.bmm(score_gradient.transpose(1, 2), query, out=keys.of(i))
        return (
            _tokens(queries.home(grid.query_homes_Y), gradient_THU),
            _tokens(keys.home(grid.key_homes_Z), gradient_THU),
            _tokens(values.home(grid.key_homes_Z), gradient_THU),
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
    """(token, head) as rows, in fp32 if it was less, copied once."""
    wide = torch.promote_types(x_THK.dtype, torch.float32)
    return x_THK.to(wide, memory_format=torch.contiguous_format).flatten(0, 1)


def home(cells: list[Tensor], homes_Y: Tensor) -> Tensor:
    """Cells of all groups back to rows end to end; tokens of no sequence take the zeros after the last cell."""
    return torch.cat([*cells, cells[0].new_zeros(1, cells[0].shape[1])]).index_select(0, homes_Y)


class Cells:
    """Rows for the cells of all groups end to end, which products write into, and a row of zeros after the last.

    Args:
        sides: of the groups.
        like: a tensor of the same type and device.
        width: numbers in a row.
    """

    def __init__(self, sides: Sequence[Side], like: Tensor, width: int) -> None:
        self.shapes = [(sequences * heads, longest) for sequences, heads, longest in (side.shape for side in sides)]
        self.sizes = [count * longest for count, longest in self.shapes]
        self.rows_XU = like.new_empty(sum(self.sizes) + 1, width)
        self.rows_XU[-1] = 0

    def of(self, group: int) -> Tensor:
        """Those of one group: (sequences · heads, longest, U)."""
        start = sum(self.sizes[:group])
        return self.rows_XU[start : start + self.sizes[group]].view(*self.shapes[group], -1)

    def home(self, homes_Y: Tensor) -> Tensor:
        """Back to rows end to end; tokens of no sequence take the zeros."""
        return self.rows_XU.index_select(0, homes_Y)


def _tokens(rows_YU: Tensor, like: Tensor) -> Tensor:
    """The heads of a token apart, in the precision of ``like``."""
    return rows_YU.unflatten(0, (-1, like.shape[1])).to(like.dtype)


class AdditiveAttentionFunction(torch.autograd.Function):
    """softmax(vᵀ tanh(q + k)) m group by group, and its gradient.

    For every query and key there is a vector, tanh(q + k). Those of a few sentences at once are computed, used and
    freed, and recomputed in backward: to keep them would take d_model times the memory of the weights.

    They are made as tanh(x) = 2σ(2x) - 1, for torch's σ is measured to be ten times as fast as its tanh on CPU. The
    "- 1" adds the same to all scores of a query, which the softmax does not see.
    """

    @staticmethod
    def forward(ctx, query_TD, key_SD, memory_SD, direction_D, grid):  # type: ignore[no-untyped-def]
        contexts, weights = [], []
        for group in grid.groups:
            query, key = group.queries.take(query_TD), group.keys.take(key_SD)
            score = torch.cat([_sigmoid(q, k) @ (2 * direction_D) for q, k in _chunks(query, key)])
            if group.bias is not None:
                score += group.bias
            weights.append(score.softmax(-1))
            contexts.append(torch.bmm(weights[-1], group.keys.take(memory_SD)).flatten(0, 1))
        ctx.save_for_backward(query_TD, key_SD, memory_SD, direction_D, *weights)
        ctx.grid = grid
        return home(contexts, grid.query_homes_Y)

    @staticmethod
    def backward(ctx, gradient_TD):  # type: ignore[no-untyped-def]
        query_TD, key_SD, memory_SD, direction_D, *weights = ctx.saved_tensors
        direction_gradient_D = torch.zeros_like(direction_D)
        queries, keys, memories = [], [], []
        for group, weight in zip(ctx.grid.groups, weights, strict=True):
            gradient = group.queries.take_real(gradient_TD)
            memories.append(torch.bmm(weight.transpose(1, 2), gradient).flatten(0, 1))
            weight_gradient = torch.bmm(gradient, group.keys.take(memory_SD).transpose(1, 2))
            score_gradient = torch._softmax_backward_data(weight_gradient, weight, -1, weight.dtype)
            query, key = group.queries.take(query_TD), group.keys.take(key_SD)
            for q, k, score in _chunks(query, key, score_gradient):
                sigmoid = _sigmoid(q, k)
                direction_gradient_D += score.flatten() @ sigmoid.flatten(0, 2)
                sum_gradient = torch.ops.aten.sigmoid_backward(score[..., None].expand_as(sigmoid), sigmoid)
                queries.append(sum_gradient.sum(2).flatten(0, 1))
                keys.append(sum_gradient.sum(1).flatten(0, 1))
        grid: PaddedGroups = ctx.grid
        return (
            home(queries, grid.query_homes_Y).mul_(4 * direction_D),  # tanh' = 4 σ' of twice the argument
            home(keys, grid.key_homes_Z).mul_(4 * direction_D),
            home(memories, grid.key_homes_Z),
            2 * direction_gradient_D,
            None,
        )


def _sigmoid(query: Tensor, key: Tensor) -> Tensor:
    """σ(2(q + k)) for all pairs of a query and a key of the same sentence: (sentences, L, M, D)."""
    return (2 * query[:, :, None] + 2 * key[:, None]).sigmoid_()


def _chunks(query: Tensor, key: Tensor, *others: Tensor):  # type: ignore[no-untyped-def]
    """A few sentences of a group at a time."""
    cells = query.shape[1] * key.shape[1] * query.shape[2]
    sentences = max(1, CHUNK // cells)
    return zip(*(x.split(sentences) for x in (query, key, *others)), strict=True)
