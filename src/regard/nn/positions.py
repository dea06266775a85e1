"""Positions: where in its sentence a token stands, told to the model by one door, which attention never asks for.

``embed`` adds something to the embedding (sinusoidal, learned). Later kinds open a door of their own: ``rotate`` will
turn queries and keys, ``bias`` be added to the scores (``attend`` takes one already).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn


class Positions(nn.Module, ABC):
    """What every kind of positions offers."""

    @abstractmethod
    def embed(self, x_TD: Tensor, positions_T: Tensor, longest: int) -> Tensor:
        """``x_TD`` with each token's position told; ``positions_T`` count from 0, all below ``longest``."""


class NoPositions(Positions):
    """No door is open: without positions the encoder commutes with any permutation of its tokens."""

    def embed(self, x_TD: Tensor, positions_T: Tensor, longest: int) -> Tensor:
        """``x_TD`` as it is."""
        return x_TD


class Sinusoidal(Positions):
    """``PE(pos, 2i) = sin(pos / 10000^(2i / d_model))``, ``PE(pos, 2i+1) = cos(…)``, added [Vaswani17 §3.5].

    Sine and cosine are interleaved as in the paper. The table grows when a longer sequence comes.
    """

    table_SD: Tensor

    def __init__(self, d_model: int, length: int = 512) -> None:
        super().__init__()
        self.d_model = d_model
        self.register_buffer("table_SD", sinusoids(length, d_model), persistent=False)

    def embed(self, x_TD: Tensor, positions_T: Tensor, longest: int) -> Tensor:
        """``x_TD`` plus each position's sinusoids; ``positions_T`` from 0, all below ``longest``."""
        if longest > len(self.table_SD):
            self.table_SD = sinusoids(2 * longest, self.d_model).to(self.table_SD)
        return x_TD + self.table_SD[positions_T].to(x_TD.dtype)


def sinusoids(length: int, d_model: int) -> Tensor:
    """The table ``PE_SD`` of the first ``length`` positions, computed in float64 on the host [Vaswani17 §3.5].

    On the host also for an outline: a range without memory would load torch's compiler, a second for nothing.
    """
    position = torch.arange(length, dtype=torch.float64, device="cpu")[:, None]
    dimension = torch.arange(0, d_model, 2, dtype=torch.float64, device="cpu")
    angle = position / 10000 ** (dimension / d_model)
    interleaved = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
    return interleaved[:, :d_model].to(torch.get_default_device(), torch.get_default_dtype())


class Learned(Positions):
    """One learned vector a position, added: row E of the paper's Table 3 [Vaswani17 §3.5]."""

    def __init__(self, d_model: int, length: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(length, d_model))

    def embed(self, x_TD: Tensor, positions_T: Tensor, longest: int) -> Tensor:
        """``x_TD`` plus each position's vector.

        Raises:
            ValueError: a sequence is longer than the table.
        """
        if longest > len(self.weight):
            raise ValueError(f"a sequence of {longest} tokens is longer than the {len(self.weight)} learned positions")
        return x_TD + self.weight[positions_T]
