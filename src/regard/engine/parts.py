"""What layers are made of: products, norms and feed-forward networks, each as the calls of kernels that it records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.kernels import ACTIVATIONS, NORMS, _native
from regard.kernels.packing import FP32, Packer

Floats = NDArray[np.float32]
Room = int
"""A row of numbers for each token, by its number in the program."""
NOTHING: Room = -1


class Recording:
    """A pass through a stack, as it is recorded; rooms are found by name, so that layers use the same ones."""

    def __init__(self) -> None:
        self.program = _native.Program()
        self._rooms: dict[tuple[str, int], Room] = {}

    def room(self, name: str, width: int) -> Room:
        """The room of this name and width."""
        if (name, width) not in self._rooms:
            self._rooms[name, width] = self.program.room(width)
        return self._rooms[name, width]


class Linear:
    """``x W + b``, or several of the same x side by side; with an activation."""

    def __init__(
        self,
        weights: Sequence[Floats],
        biases: Sequence[Floats | None],
        activation: str = "none",
        pack: Packer = FP32,
    ) -> None:
        self.packed = pack(weights, biases)
        self.columns = sum(len(weight) for weight in weights)
        self.activation = ACTIVATIONS[activation]

    def record(self, recording: Recording, x: Room, name: str) -> Room:
        """The product, in a room of this name."""
        out = recording.room(name, self.columns)
        recording.program.product(x, self.packed, out, self.activation)
        return out

    def __call__(self, x_TD: Floats, out_TN: Floats) -> Floats:
        """The product at once, written to ``out_TN``."""
        _native.product(x_TD, self.packed, out_TN, self.activation)
        return out_TN

    def rows(self, x_TD: Floats) -> Floats:
        """The product at once."""
        return self(x_TD, np.empty((len(x_TD), self.columns), np.float32))


@dataclass(frozen=True)
class Norm:
    """A normalisation layer; ``gain_D`` and ``bias_D`` of batch norm hold its running averages.

    Args:
        kind: a word of :data:`regard.kernels.NORMS`.
        groups: parts of a row, each normalised on its own.
    """

    kind: str
    gain_D: Floats
    bias_D: Floats | None
    epsilon: float
    groups: int = 1

    def record(self, recording: Recording, x: Room, y: Room, sum: Room, out: Room) -> None:
        """``sum = x + y``, ``out = norm(sum)``; without y of x alone, without sum it is not kept."""
        kind = NORMS[self.kind]
        recording.program.norm(x, y, sum, out, self.gain_D, self.bias_D, kind, self.groups, self.epsilon)

    def rows(self, x_TD: Floats) -> Floats:
        """The norm of rows at once."""
        out_TD, kind = np.empty_like(x_TD), NORMS[self.kind]
        _native.norm(x_TD, None, None, out_TD, self.gain_D, self.bias_D, kind, self.groups, self.epsilon)
        return out_TD


class FeedForward:
    """``FFN(x) = f(x W_1 + b_1) W_2 + b_2`` [Vaswani17 §3.3, eq. 2]."""

    def __init__(self, inner: Linear, outer: Linear) -> None:
        self.inner = inner
        self.outer = outer

    def record(self, recording: Recording, x: Room) -> Room:
        """Every token on its own."""
        return self.outer.record(recording, self.inside(recording, x), "output")

    def inside(self, recording: Recording, x: Room) -> Room:
        """``f(x W_1 + b_1)``."""
        return self.inner.record(recording, x, "inner")


class GatedFeedForward(FeedForward):
    """``FFN(x) = (f(x W_1) ⊗ x W_g) W_2`` [Shazeer20]; ``inner`` holds W_1 and W_g side by side."""

    def __init__(self, inner: Linear, outer: Linear, activation: str) -> None:
        super().__init__(inner, outer)
        self.activation = ACTIVATIONS[activation]

    def inside(self, recording: Recording, x: Room) -> Room:
        """``f(x W_1) ⊗ x W_g``."""
        both = super().inside(recording, x)
        gated = recording.room("gated", self.inner.columns // 2)
        recording.program.gate(both, gated, self.activation)
        return gated
