"""The residual connection around a sub-layer, in two doors: what enters the sub-layer, and how its output leaves.

x_TD = residual.leave(x_TD, sublayer(residual.enter(x_TD)))
"""

from __future__ import annotations

from torch import Tensor, nn

from regard.nn import probe
from regard.nn.dropout import Dropout


class PostNorm(nn.Module):
    """``LayerNorm(x + Dropout(Sublayer(x)))``: the paper [Vaswani17 §3.1, §5.4]."""

    def __init__(self, norm: nn.Module, dropout: Dropout) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = dropout
        self.path = ""

    def enter(self, x_TD: Tensor) -> Tensor:
        """What the sub-layer reads: the stream itself."""
        return x_TD

    def leave(self, x_TD: Tensor, output_TD: Tensor) -> Tensor:
        """The stream behind the sub-layer."""
        return probe.passing(f"{self.path}.residual", self.norm(self.dropout.add(x_TD, output_TD)))


class PreNorm(nn.Module):
    """``x + Dropout(Sublayer(LayerNorm(x)))``: trains without a long warm-up; the stack ends with a norm [Xiong20]."""

    def __init__(self, norm: nn.Module, dropout: Dropout) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = dropout
        self.path = ""

    def enter(self, x_TD: Tensor) -> Tensor:
        """What the sub-layer reads: the stream, normalised."""
        entered_TD: Tensor = self.norm(x_TD)
        return entered_TD

    def leave(self, x_TD: Tensor, output_TD: Tensor) -> Tensor:
        """The stream behind the sub-layer."""
        return probe.passing(f"{self.path}.residual", self.dropout.add(x_TD, output_TD))


Residual = PostNorm | PreNorm
