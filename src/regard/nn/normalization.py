"""Normalisation of each token's vector, each kind a class."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LayerNorm(nn.LayerNorm):
    """``(x - mean) / √(variance + ε) · gain + bias`` over a token's entries [Ba16]; ε 1e-5."""

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model, eps=1e-5)


class RMSNorm(nn.Module):
    """``x / √(mean(x²) + ε) · gain`` over a token's entries [Zhang19]; ε 1e-5."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x_TD: Tensor) -> Tensor:
        """Each token normalised."""
        return F.rms_norm(x_TD, self.weight.shape, self.weight, 1e-5)
