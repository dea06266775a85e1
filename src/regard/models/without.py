"""Parts from which one idea of the paper is taken out, for models that show what it is for (``model.without``)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard import nn as parts
from regard.nn import hooks


class NoResidual(parts.Dropout):
    """What a sub-layer gives takes the place of the residual stream [Vaswani17 §3.1 without the connection]."""

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """``Dropout(y)``."""
        replaced: Tensor = self(y).to(x.dtype)
        return replaced


class NoFeedForward(parts.FeedForward):
    """A sub-layer that adds nothing."""

    def __init__(self) -> None:
        nn.Module.__init__(self)
        self.path = ""

    def inside(self, x_TD: Tensor) -> Tensor:
        """Zeros."""
        return torch.zeros_like(x_TD)

    def forward(self, x_TD: Tensor) -> Tensor:
        """Zeros."""
        return hooks.hook_point(f"{self.path}.output", self.inside(x_TD))


class NoMaskDecoderLayer(parts.DecoderLayer):
    """Where all target tokens are known, as in training, each also sees what comes after it."""

    def read_own(self, x_TD: Tensor, layout: parts.Layout) -> Tensor:
        """Self-attention over the whole target; in search later tokens do not exist."""
        h_TD = self.attention_residual.enter(x_TD)
        return self.attention_residual.leave(x_TD, self.attention(h_TD, h_TD, layout, causal=False))


class MeanAttention(parts.MultiHeadAttention):
    """Every query is zero: all scores are equal, and each head gives the plain mean of the values it may see."""

    def _attend(
        self, query_THK: Tensor, key_SHK: Tensor, value_SHU: Tensor, layout: parts.Layout, causal: bool
    ) -> Tensor:
        return super()._attend(0 * query_THK, key_SHK, value_SHU, layout, causal)
