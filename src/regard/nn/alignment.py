"""Attention of recurrent decoders over encoder states [Bahdanau15, Luong15].

A score compares a decoder state with an encoder state; its softmax weighs the encoder states into a
context. Dot, scaled dot, general and cosine are transforms of query and key before one and the same dot product, so
all backends of :mod:`regard.nn.attention.multi_head` serve them; the additive score is its own function.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn import hooks
from regard.nn.attention.backends import places, unchanged
from regard.nn.attention.multi_head import attend
from regard.nn.attention.padded_groups import grid
from regard.nn.autograd.attention import AdditiveAttentionFunction
from regard.nn.hooks import Point
from regard.nn.init import Vectors, draw
from regard.nn.layout import Layout
from regard.nn.ops import Linear

GROUPS = 16
"""Groups of sentences of similar length that a batch is split into at most, so that little is padding."""


class DotScore(nn.Module):
    """Scores that are a dot product of query and key; its kinds differ in what becomes query and key."""

    scale = 1.0

    def query(self, hidden_TD: Tensor) -> Tensor:
        """``query_TD``: the decoder's states themselves, unless a kind says otherwise."""
        return hidden_TD

    def key(self, memory_SD: Tensor) -> Tensor:
        """``key_SD``, computed once for a sentence: the encoder's states themselves, unless a kind says otherwise."""
        return memory_SD

    def attend(
        self, query_TD: Tensor, key_SD: Tensor, memory_SD: Tensor, layout: Layout, point: Point | None = None
    ) -> Tensor:
        """``context_TD``: encoder states weighed by the softmax of their scores; zeros if there are none.

        With ``point``, the hook on intermediate values, as of one head, sentence by sentence.
        """
        one_head = (query_TD[:, None], key_SD[:, None], memory_SD[:, None])
        return attend(*one_head, layout, causal=False, scale=self.scale, point=point)[:, 0]


class Dot(DotScore):
    """``score(h, m) = hᵀ m`` [Luong15 §3.1, eq. 8], times ``scale``."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale


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


class AdditiveScore(Vectors, nn.Module):
    """``score(q, m) = vᵀ tanh(q + U m)`` of queries that are there already [Bahdanau15 §A.1.2]."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.memory = Linear(d_model, d_model, bias=False)
        self.direction = nn.Parameter(torch.empty(d_model))
        draw(self)

    def key(self, memory_SD: Tensor) -> Tensor:
        """``U m``; computed once for a sentence."""
        key_SD: Tensor = self.memory(memory_SD).to(memory_SD.dtype)
        return key_SD

    def attend(
        self, query_TD: Tensor, key_SD: Tensor, memory_SD: Tensor, layout: Layout, point: Point | None = None
    ) -> Tensor:
        """As :meth:`DotScore.attend`."""
        if point is not None or not layout.queries.longest or not layout.every_query_has_keys(False):
            return self._by_sentence(query_TD, key_SD, memory_SD, layout, point or unchanged)
        made = layout.once(("additive", GROUPS), lambda: grid(layout, 1, False, GROUPS))
        context_TD: Tensor = AdditiveAttentionFunction.apply(query_TD, key_SD, memory_SD, self.direction, made)
        return context_TD

    def _by_sentence(self, query_TD: Tensor, key_SD: Tensor, memory_SD: Tensor, layout: Layout, point: Point) -> Tensor:
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
    """``score(h, m) = vᵀ tanh(W h + U m + b)``: a query of every state of the decoder [Bahdanau15 §A.1.2].

    It is the *concat* score of [Luong15 §3.1].
    """

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model)
        self.state = Linear(d_model, d_model)

    def query(self, hidden_TD: Tensor) -> Tensor:
        """``W h + b``."""
        query_TD: Tensor = self.state(hidden_TD).to(hidden_TD.dtype)
        return query_TD


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
        query_TD, point = self.score.query(hidden_TD), hooks.point_inside(self.path)
        context_TD = self.score.attend(query_TD, key_SD, memory_SD, layout, point)
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
