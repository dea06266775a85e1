"""Dropout from keyed random bytes: a pure function of the key last given to :func:`reseed` (ARCHITECTURE idea 5).

One byte decides each entry, so the probability is rounded to 1/256 and the scale is exact for the rounded one. This is
several times faster than drawing a float per entry, and the mask is a quarter of the size. On a GPU torch's own kernel
draws, drops and scales at once.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.autograd.dropout import DropoutFunction, RandomGenerator, ResidualDropoutFunction, takes
from regard.nn.init import refuse_probabilities


def reseed(key: int) -> None:
    """Start every random source of the parts from ``key`` (64 bits): the same key gives the same masks.

    torch's own generators are seeded too: masks on other devices, and weights dropped inside torch's kernels, draw
    from them.
    """
    RandomGenerator.bits = np.random.SFC64(key)
    torch.manual_seed(key & 0x7FFF_FFFF_FFFF_FFFF)


def threshold_of(probability: float) -> int:
    """Random bytes below it drop an entry; at most 255, since some entries must stay."""
    return min(round(probability * 256), 255)


def drop(y: Tensor, probability: float) -> Tensor:
    """Zero each entry with ``probability`` (rounded to 1/256) and scale the others so that the mean stays."""
    threshold = threshold_of(probability)
    if y.device.type != "cpu":
        return F.dropout(y, threshold / 256) if threshold else y
    return DropoutFunction.apply(y, threshold) if threshold else y


class Dropout(nn.Module):
    """Residual dropout [Vaswani17 §5.4]: on while training, the identity otherwise.

    Raises:
        UsageError: the probability is not in 0 … 1, or 1 itself.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        refuse_probabilities(self, probability=probability)
        self.probability = probability

    def forward(self, y: Tensor) -> Tensor:
        """``Dropout(y)``, any shape."""
        return drop(y, self.probability) if self.training else y

    def after(self, activation: nn.Module, x: Tensor) -> Tensor:
        """``Dropout(activation(x))``; of ReLU in one pass where the kernel computes it."""
        threshold = threshold_of(self.probability) if self.training else 0
        if threshold and type(activation) is nn.ReLU and takes(x):
            return DropoutFunction.apply(x, threshold, True)
        return self(activation(x))

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """``x + Dropout(y)``: a sub-layer's output joins the residual stream."""
        threshold = threshold_of(self.probability) if self.training else 0
        if y.device.type != "cpu":
            return x + self(y)
        return ResidualDropoutFunction.apply(x, y, threshold) if threshold else x + y

    def extra_repr(self) -> str:
        """The probability, for printing."""
        return f"{self.probability}"
