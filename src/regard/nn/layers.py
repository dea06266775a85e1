"""The layers of encoder and decoder [Vaswani17 §3.1, Figure 1]."""

from __future__ import annotations

from torch import Tensor, nn

from regard.nn.arena import Arena
from regard.nn.attention import MultiHeadAttention
from regard.nn.feedforward import FeedForward
from regard.nn.layout import Layout
from regard.nn.residual import Residual


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
        """The stream behind this layer."""
        h_TD = self.attention_residual.enter(x_TD)
        x_TD = self.attention_residual.leave(x_TD, self.attention(h_TD, h_TD, layout, causal=causal))
        h_TD = self.feedforward_residual.enter(x_TD)
        return self.feedforward_residual.leave(x_TD, self.feedforward(h_TD))


class DecoderLayer(nn.Module):
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

    def forward(self, x_TD: Tensor, memory_SD: Tensor, layout: Layout, cross_layout: Layout) -> Tensor:
        """The stream behind this layer, all positions at once (teacher forcing)."""
        h_TD = self.attention_residual.enter(x_TD)
        x_TD = self.attention_residual.leave(x_TD, self.attention(h_TD, h_TD, layout, causal=True))
        h_TD = self.cross_residual.enter(x_TD)
        x_TD = self.cross_residual.leave(x_TD, self.cross(h_TD, memory_SD, cross_layout, causal=False))
        h_TD = self.feedforward_residual.enter(x_TD)
        return self.feedforward_residual.leave(x_TD, self.feedforward(h_TD))

    def step(
        self, x_ND: Tensor, past: Arena, memory: Arena, places_N: Tensor, layout: Layout, cross_layout: Layout
    ) -> Tensor:
        """The stream behind this layer for one new token a row; its key and value go to ``places_N`` of the past."""
        h_ND = self.attention_residual.enter(x_ND)
        past.write(places_N, *self.attention.remember(h_ND))
        x_ND = self.attention_residual.leave(x_ND, self.attention.recall(h_ND, past, layout))
        h_ND = self.cross_residual.enter(x_ND)
        x_ND = self.cross_residual.leave(x_ND, self.cross.recall(h_ND, memory, cross_layout))
        h_ND = self.feedforward_residual.enter(x_ND)
        return self.feedforward_residual.leave(x_ND, self.feedforward(h_ND))
