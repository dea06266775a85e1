"""The layers of encoder and decoder, and their feed-forward network [Vaswani17 §3.1, §3.3, Figure 1]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

from torch import Tensor, nn

from regard.nn import hooks
from regard.nn.attention.multi_head import KVCache, MultiHeadAttention
from regard.nn.dropout import Dropout
from regard.nn.init import watch
from regard.nn.layout import Layout
from regard.nn.ops import Linear, project
from regard.nn.recurrent import SSRU


class FeedForward(nn.Module, ABC):
    """``FFN(x) = inner(x) W_2 + b_2``, the same for every position; its kinds differ in what is inside.

    The activation is a part: ReLU in the paper, GELU [Hendrycks16] in its relatives.
    """

    def __init__(
        self, d_model: int, d_ff: int, activation: nn.Module, dropout: float = 0.0, biases: bool = True
    ) -> None:
        super().__init__()
        self.inner = Linear(d_model, d_ff, bias=biases)
        self.activation = activation
        self.dropout = Dropout(dropout)
        self.outer = Linear(d_ff, d_model, bias=biases)
        self.path = ""
        watch(self)

    @abstractmethod
    def inside(self, x_TD: Tensor) -> Tensor:
        """``inner_TF``: what the second projection reads, after dropout."""

    def forward(self, x_TD: Tensor) -> Tensor:
        """Every token on its own."""
        return hooks.hook_point(f"{self.path}.output", self.outer(self.inside(x_TD)))


class PlainFeedForward(FeedForward):
    """``FFN(x) = max(0, x W_1 + b_1) W_2 + b_2``, or with another activation [Vaswani17 §3.3, eq. 2]."""

    def inside(self, x_TD: Tensor) -> Tensor:
        """``max(0, x W_1 + b_1)``."""
        return self.dropout.after(self.activation, self.inner(x_TD))


class GatedFeedForward(FeedForward):
    """``FFN(x) = (g(x W_1) ⊗ x W_g) W_2``: GEGLU by GELU, SwiGLU by swish [Shazeer20]."""

    def __init__(
        self, d_model: int, d_ff: int, activation: nn.Module, dropout: float = 0.0, biases: bool = True
    ) -> None:
        super().__init__(d_model, d_ff, activation, dropout, biases)
        self.gate = Linear(d_model, d_ff, bias=biases)

    def inside(self, x_TD: Tensor) -> Tensor:
        """``g(x W_1) ⊗ x W_g``."""
        inner_TF, gate_TF = project(x_TD, [self.inner, self.gate])
        gated_TF: Tensor = self.activation(inner_TF) * gate_TF
        return self.dropout(gated_TF)


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, a residual connection around each [Vaswani17 §3.1, Figure 1 left].

    Under ``causal`` it is the layer of a decoder-only model.
    """

    def __init__(self, attention: MultiHeadAttention, feedforward: FeedForward, residuals: list[Residual]) -> None:
        super().__init__()
        self.attention = attention
        self.feedforward = feedforward
        self.attention_residual, self.feedforward_residual = residuals

    def forward(self, x_TD: Tensor, layout: Layout, *, causal: bool = False) -> Tensor:
        """This layer's output."""
        h_TD = self.attention_residual.enter(x_TD)
        x_TD = self.attention_residual.leave(x_TD, self.attention(h_TD, h_TD, layout, causal=causal))
        return self._feed_forward(x_TD)

    def prefill(self, x_TD: Tensor, past: KVCache, places_T: Tensor, layout: Layout) -> Tensor:
        """This layer's output for prompts; their keys and values go to ``places_T`` of the cache."""
        h_TD = self.attention_residual.enter(x_TD)
        x_TD = self.attention_residual.leave(x_TD, self.attention.prefill(h_TD, past, places_T, layout))
        return self._feed_forward(x_TD)

    def step(self, x_ND: Tensor, past: KVCache, places_N: Tensor, layout: Layout) -> Tensor:
        """This layer's output for one new token per row; its key and value go to ``places_N`` of the cache."""
        h_ND = self.attention_residual.enter(x_ND)
        past.write(places_N, *self.attention.keys_and_values(h_ND, layout.queries))
        x_ND = self.attention_residual.leave(x_ND, self.attention.attend_cached(h_ND, past, layout))
        return self._feed_forward(x_ND)

    def _feed_forward(self, x_TD: Tensor) -> Tensor:
        h_TD = self.feedforward_residual.enter(x_TD)
        return self.feedforward_residual.leave(x_TD, self.feedforward(h_TD))


class BaseDecoderLayer(nn.Module, ABC):
    """What layers of a decoder share: they end with encoder-decoder attention and feed-forward."""

    cross: MultiHeadAttention
    feedforward: FeedForward
    cross_residual: Residual
    feedforward_residual: Residual

    @abstractmethod
    def cache(self, memory: KVCache, rows: int, stride: int) -> KVCache:
        """An empty cache of the rows' own tokens, of the type of a memory's."""

    @abstractmethod
    def read_own(self, x_TD: Tensor, layout: Layout) -> Tensor:
        """The residual stream after the first sub-layer, which sees the target's own tokens, all at once."""

    @abstractmethod
    def read_new(self, x_ND: Tensor, past: KVCache, places_N: Tensor, layout: Layout) -> Tensor:
        """The same for one new token per row."""

    def forward(self, x_TD: Tensor, memory_SD: Tensor, layout: Layout, cross_layout: Layout) -> Tensor:
        """This layer's output, all positions at once (teacher forcing)."""
        x_TD = self.read_own(x_TD, layout)
        h_TD = self.cross_residual.enter(x_TD)
        return self._feed_forward(x_TD, self.cross(h_TD, memory_SD, cross_layout, causal=False))

    def step(
        self, x_ND: Tensor, past: KVCache, memory: KVCache, places_N: Tensor, layout: Layout, cross_layout: Layout
    ) -> Tensor:
        """This layer's output for one new token per row; what later ones need of it goes to the cache."""
        x_ND = self.read_new(x_ND, past, places_N, layout)
        h_ND = self.cross_residual.enter(x_ND)
        return self._feed_forward(x_ND, self.cross.attend_cached(h_ND, memory, cross_layout))

    def _feed_forward(self, x_TD: Tensor, output_TD: Tensor) -> Tensor:
        x_TD = self.cross_residual.leave(x_TD, output_TD)
        h_TD = self.feedforward_residual.enter(x_TD)
        return self.feedforward_residual.leave(x_TD, self.feedforward(h_TD))


class DecoderLayer(BaseDecoderLayer):
    """Causal self-attention, encoder-decoder attention, feed-forward [Vaswani17 §3.1, Figure 1 right]."""

    def __init__(
        self,
        attention: MultiHeadAttention,
        cross: MultiHeadAttention,
        feedforward: FeedForward,
        residuals: list[Residual],
    ) -> None:
        super().__init__()
        self.attention = attention
        self.cross = cross
        self.feedforward = feedforward
        self.attention_residual, self.cross_residual, self.feedforward_residual = residuals

    def cache(self, memory: KVCache, rows: int, stride: int) -> KVCache:
        """Keys and values."""
        return KVCache.empty((memory.key_SHK, memory.value_SHU), rows, stride)

    def read_own(self, x_TD: Tensor, layout: Layout) -> Tensor:
        """Self-attention."""
        h_TD = self.attention_residual.enter(x_TD)
        return self.attention_residual.leave(x_TD, self.attention(h_TD, h_TD, layout, causal=True))

    def read_new(self, x_ND: Tensor, past: KVCache, places_N: Tensor, layout: Layout) -> Tensor:
        """Self-attention."""
        h_ND = self.attention_residual.enter(x_ND)
        past.write(places_N, *self.attention.keys_and_values(h_ND, layout.queries))
        return self.attention_residual.leave(x_ND, self.attention.attend_cached(h_ND, past, layout))


class RowState(KVCache):
    """States in place of keys, without values: one for each row, however many tokens it has read."""

    def grow(self, rows: int, stride: int) -> KVCache:
        """The same rows with room for ``rows``."""
        return super().grow(rows, 1)


class RecurrentDecoderLayer(BaseDecoderLayer):
    """The same with a recurrence in place of self-attention [Kim19]."""

    def __init__(
        self, recurrence: SSRU, cross: MultiHeadAttention, feedforward: FeedForward, residuals: list[Residual]
    ) -> None:
        super().__init__()
        self.recurrence = recurrence
        self.cross = cross
        self.feedforward = feedforward
        self.recurrence_residual, self.cross_residual, self.feedforward_residual = residuals

    def cache(self, memory: KVCache, rows: int, stride: int) -> KVCache:
        """States, zero before the first token."""
        like = memory.key_SHK.new_empty(0, 1, self.recurrence.size)
        return RowState.empty((like, like[..., :0]), rows, 1)

    def read_own(self, x_TD: Tensor, layout: Layout) -> Tensor:
        """The recurrence."""
        h_TD = self.recurrence_residual.enter(x_TD)
        return self.recurrence_residual.leave(x_TD, self.recurrence(h_TD, layout.queries))

    def read_new(self, x_ND: Tensor, past: KVCache, places_N: Tensor, layout: Layout) -> Tensor:
        """The recurrence; the row's state stands for all its tokens."""
        h_ND, count = self.recurrence_residual.enter(x_ND), len(x_ND)
        output_ND, past.key_SHK[:count, 0] = self.recurrence.step(h_ND, past.key_SHK[:count, 0])
        return self.recurrence_residual.leave(x_ND, output_ND)


class Residual(nn.Module, ABC):
    """``x + Dropout(Sublayer(x))``, the connection around a sub-layer, with a norm at one of two places."""

    def __init__(self, norm: nn.Module, dropout: Dropout) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = dropout
        self.path = ""

    @abstractmethod
    def enter(self, x_TD: Tensor) -> Tensor:
        """Input of the sub-layer."""

    @abstractmethod
    def join(self, x_TD: Tensor, output_TD: Tensor) -> Tensor:
        """The residual stream and the sub-layer's output, joined."""

    @final
    def leave(self, x_TD: Tensor, output_TD: Tensor) -> Tensor:
        """The residual stream after the sub-layer."""
        return hooks.hook_point(f"{self.path}.residual", self.join(x_TD, output_TD))


class PostNorm(Residual):
    """``LayerNorm(x + Dropout(Sublayer(x)))``: the paper [Vaswani17 §3.1, §5.4]."""

    def enter(self, x_TD: Tensor) -> Tensor:
        """The residual stream itself."""
        return x_TD

    def join(self, x_TD: Tensor, output_TD: Tensor) -> Tensor:
        """The sum, normalised."""
        joined_TD: Tensor = self.norm(self.dropout.add(x_TD, output_TD))
        return joined_TD


class PreNorm(Residual):
    """``x + Dropout(Sublayer(LayerNorm(x)))``: trains without a long warm-up; the stack ends with a norm [Xiong20]."""

    def enter(self, x_TD: Tensor) -> Tensor:
        """The residual stream, normalised."""
        entered_TD: Tensor = self.norm(x_TD)
        return entered_TD

    def join(self, x_TD: Tensor, output_TD: Tensor) -> Tensor:
        """The sum."""
        return self.dropout.add(x_TD, output_TD)
