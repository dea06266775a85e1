"""Attention of recurrent decoders over encoder states [Bahdanau15, Luong15].

A score compares a decoder state with an encoder state; its softmax weighs the encoder states into a
context. Dot, scaled dot, general and cosine are transforms of query and key before one and the same dot product, so
all backends of :mod:`regard.nn.attention.multi_head` serve them; the additive score is its own function.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn import hooks
from regard.nn.attention.backends import AttentionArgs, Point, Reference, home, places, unchanged
from regard.nn.attention.multi_head import attend
from regard.nn.attention.padded_groups import PaddedGroups, grid
from regard.nn.init import draw_rows
from regard.nn.layout import Layout
from regard.nn.ops import Linear

_REFERENCE = Reference()
CHUNK = 2**18
"""Entries of tanh(W h + U m) that exist at once: they stay near the processor; one pair of sentences may have more."""
GROUPS = 16
"""Groups of sentences of similar length that a batch is split into at most, so that little is padding."""


class DotScore(nn.Module, ABC):
    """Scores that are a dot product of query and key; its kinds differ in what becomes query and key."""

    scale = 1.0

    @abstractmethod
    def query(self, hidden_TD: Tensor) -> Tensor:
        """``query_TD`` of the decoder's states."""

    @abstractmethod
    def key(self, memory_SD: Tensor) -> Tensor:
        """``key_SD`` of the encoder's states; computed once for a sentence."""

    def attend(self, query_TD: Tensor, key_SD: Tensor, memory_SD: Tensor, layout: Layout) -> Tensor:
        """``context_TD``: encoder states weighed by the softmax of their scores; zeros if there are none."""
        one_head = (query_TD[:, None], key_SD[:, None], memory_SD[:, None])
        return attend(*one_head, layout, causal=False, scale=self.scale)[:, 0]

    def attend_with_hook(
        self, query_TD: Tensor, key_SD: Tensor, memory_SD: Tensor, layout: Layout, point: Point
    ) -> Tensor:
        """The same sentence by sentence; ``point`` is the hook on intermediate values, as of one head."""
        question = AttentionArgs(layout, False, self.scale)
        return _REFERENCE(query_TD[:, None], key_SD[:, None], memory_SD[:, None], question, point)[:, 0]


class Dot(DotScore):
    """``score(h, m) = hᵀ m`` [Luong15 §3.1, eq. 8], times ``scale``."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale

    def query(self, hidden_TD: Tensor) -> Tensor:
        """The decoder's states themselves."""
        return hidden_TD

    def key(self, memory_SD: Tensor) -> Tensor:
        """The encoder's states themselves."""
        return memory_SD


class ScaledDot(Dot):
    """``score(h, m) = hᵀ m / √d_model``, as in the Transformer [Vaswani17 §3.2.1, eq. 1]."""

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model**-0.5)


class General(DotScore):
    """``score(h, m) = (W h + b)ᵀ m`` [Luong15 §3.1, eq. 8]; the matrix stands on the decoder's side, so that the
    encoder's states are their own keys.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.weight = Linear(d_model, d_model)

    def query(self, hidden_TD: Tensor) -> Tensor:
        """``W h + b``."""
        query_TD: Tensor = self.weight(hidden_TD).to(hidden_TD.dtype)
        return query_TD

    def key(self, memory_SD: Tensor) -> Tensor:
        """The encoder's states themselves."""
        return memory_SD


class Cosine(DotScore):
    """``score(h, m) = s cos(h, m)``.

    A cosine is at most one, and a softmax of such scores nearly flat: the sharpness ``s`` is learned. It begins at
    √d_model, where vectors with entries of unit size score as in :class:`ScaledDot`.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.sharpness = nn.Parameter(torch.full((1,), d_model**0.5))

    def query(self, hidden_TD: Tensor) -> Tensor:
        """``s h / |h|``."""
        return self.sharpness * F.normalize(hidden_TD, dim=1)

    def key(self, memory_SD: Tensor) -> Tensor:
        """``m / |m|``."""
        return F.normalize(memory_SD, dim=1)


class AdditiveScore(nn.Module):
    """``score(q, m) = vᵀ tanh(q + U m)`` of queries that are there already [Bahdanau15 §A.1.2]."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.memory = Linear(d_model, d_model, bias=False)
        self.direction = nn.Parameter(torch.empty(d_model))
        self.initialise()

    def initialise(self, generator: torch.Generator | None = None) -> None:
        """The direction: standard deviation d_model^-0.5."""
        draw_rows(self, generator)

    def key(self, memory_SD: Tensor) -> Tensor:
        """``U m``; computed once for a sentence."""
        key_SD: Tensor = self.memory(memory_SD).to(memory_SD.dtype)
        return key_SD

    def attend(self, query_TD: Tensor, key_SD: Tensor, memory_SD: Tensor, layout: Layout) -> Tensor:
        """``context_TD``: encoder states weighed by the softmax of their scores; zeros if there are none."""
        if not layout.queries.longest or not layout.every_query_has_keys(False):
            return self.attend_with_hook(query_TD, key_SD, memory_SD, layout, unchanged)
        made = layout.once(("additive", GROUPS), lambda: grid(layout, 1, False, GROUPS))
        context_TD: Tensor = _Additive.apply(query_TD, key_SD, memory_SD, self.direction, made)
        return context_TD

    def attend_with_hook(
        self, query_TD: Tensor, key_SD: Tensor, memory_SD: Tensor, layout: Layout, point: Point
    ) -> Tensor:
        """The same sentence by sentence; ``point`` is the hook on intermediate values, as of one head."""
        context_TD = memory_SD.new_zeros(len(query_TD), memory_SD.shape[1])
        for b in range(layout.queries.count):
            here, there = places(layout.queries, b), places(layout.keys, b)
            if not len(here) or not len(there):
                continue
            query_HLD, key_HMD = point("query", query_TD[here][None]), point("key", key_SD[there][None])
            value_HMD = point("value", memory_SD[there][None])
            sum_HLMD = query_HLD[:, :, None] + key_HMD[:, None]
            score_HLM = point("score", sum_HLMD.tanh() @ self.direction)
            context_HLD = point("context", point("weight", score_HLM.softmax(-1)) @ value_HMD)
            context_TD = context_TD.index_copy(0, here, context_HLD[0])
        return context_TD


class Additive(AdditiveScore):
    """``score(h, m) = vᵀ tanh(W h + U m + b)``: a query of every state of the decoder [Bahdanau15 §A.1.2]."""

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model)
        self.state = Linear(d_model, d_model)

    def query(self, hidden_TD: Tensor) -> Tensor:
        """``W h + b``."""
        query_TD: Tensor = self.state(hidden_TD).to(hidden_TD.dtype)
        return query_TD


class _Additive(torch.autograd.Function):
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


class Alignment(nn.Module):
    """A recurrent decoder's attention: from its states the attentional vectors [Luong15 §3, eq. 5].

    ``tanh(W_c [c; h] + b)`` of the context ``c`` and the decoder's state ``h``.
    """

    def __init__(self, score: DotScore | Additive, d_model: int) -> None:
        super().__init__()
        self.score = score
        self.output = Linear(2 * d_model, d_model)
        self.path = ""

    def remember(self, memory_SD: Tensor) -> Tensor:
        """``key_SD`` of a memory, computed once and kept while decoding."""
        return self.score.key(memory_SD)

    def forward(self, hidden_TD: Tensor, key_SD: Tensor, memory_SD: Tensor, layout: Layout) -> Tensor:
        """``attentional_TD``: every decoder state attends to its sentence's memory."""
        query_TD = self.score.query(hidden_TD)
        if hooks.inside(self.path):
            context_TD = self.score.attend_with_hook(
                query_TD, key_SD, memory_SD, layout, partial(hooks.passing_inside, self.path)
            )
        else:
            context_TD = self.score.attend(query_TD, key_SD, memory_SD, layout)
        joined = torch.cat([context_TD, hidden_TD], 1)
        attentional_TD = self.output(joined).to(hidden_TD.dtype).tanh()
        return hooks.hook_point(f"{self.path}.output", attentional_TD)


class NoAlignment(nn.Module):
    """No attention: the decoder's state is the output; it sees the source only through its first state."""

    def remember(self, memory_SD: Tensor) -> Tensor:
        """No scores are computed, so the memory itself serves as keys."""
        return memory_SD

    def forward(self, hidden_TD: Tensor, key_SD: Tensor, memory_SD: Tensor, layout: Layout) -> Tensor:
        """``hidden_TD`` as it is."""
        return hidden_TD
