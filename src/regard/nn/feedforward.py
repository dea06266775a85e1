"""The position-wise feed-forward network [Vaswani17 §3.3], plain and gated."""

from __future__ import annotations

from torch import Tensor, nn

from regard.nn import hooks
from regard.nn.dropout import Dropout
from regard.nn.ops import Linear, project


class FeedForward(nn.Module):
    """``FFN(x) = max(0, x W_1 + b_1) W_2 + b_2``, the same for every position [Vaswani17 §3.3, eq. 2].

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

    def forward(self, x_TD: Tensor) -> Tensor:
        """Every token on its own."""
        inner_TF = self.dropout(self.activation(self.inner(x_TD)))
        return hooks.hook_point(f"{self.path}.output", self.outer(inner_TF))


class GatedFeedForward(FeedForward):
    """``FFN(x) = (g(x W_1) ⊗ x W_g) W_2``: gated by the activation [Shazeer20]."""

    def __init__(
        self, d_model: int, d_ff: int, activation: nn.Module, dropout: float = 0.0, biases: bool = True
    ) -> None:
        super().__init__(d_model, d_ff, activation, dropout, biases)
        self.gate = Linear(d_model, d_ff, bias=biases)

    def forward(self, x_TD: Tensor) -> Tensor:
        """Every token on its own."""
        inner_TF, gate_TF = project(x_TD, [self.inner, self.gate])
        return hooks.hook_point(f"{self.path}.output", self.outer(self.dropout(self.activation(inner_TF) * gate_TF)))
