"""What layers are made of, over the kernels: products, norms, feed-forward networks, and rooms for results."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.kernels import ACTIVATIONS, NORMS, _native
from regard.kernels.packing import aligned, pack

Floats = NDArray[np.float32]


class Scratch(threading.local):
    """Rooms for results inside a step, by name, each thread its own; they are used again at the next step, and grow."""

    def __init__(self) -> None:
        self._rooms: dict[tuple[str, int], Floats] = {}

    def rows(self, name: str, count: int, size: int) -> Floats:
        """Room for ``count`` rows; what is in it is not defined."""
        room = self._rooms.get((name, size))
        if room is None or len(room) < count:
            room = self._rooms[name, size] = aligned((max(count, 8), size))
        return room[:count]


class Linear:
    """``x W + b``, or several of the same x side by side; with an activation."""

    def __init__(self, weights: Sequence[Floats], biases: Sequence[Floats | None], activation: str = "none") -> None:
        with_bias = [bias for bias in biases if bias is not None]
        self.packed_PKW = pack(np.concatenate(weights), np.concatenate(with_bias) if with_bias else None)
        self.columns = sum(len(weight) for weight in weights)
        self.activation = ACTIVATIONS[activation]

    def __call__(self, x_TD: Floats, out_TN: Floats) -> Floats:
        """The product, written to ``out_TN``."""
        _native.product(x_TD, self.packed_PKW, out_TN, self.activation)
        return out_TN


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

    def __call__(self, x_TD: Floats, out_TD: Floats) -> None:
        """``out_TD = norm(x_TD)``."""
        self._norm(x_TD, None, None, out_TD)

    def join(self, x_TD: Floats, y_TD: Floats) -> None:
        """``x_TD = norm(x_TD + y_TD)``."""
        self._norm(x_TD, y_TD, None, x_TD)

    def join_and_enter(self, x_TD: Floats, y_TD: Floats, out_TD: Floats) -> None:
        """``x_TD = x_TD + y_TD``, ``out_TD = norm(x_TD)``."""
        self._norm(x_TD, y_TD, x_TD, out_TD)

    def _norm(self, x_TD: Floats, y_TD: Floats | None, sum_TD: Floats | None, out_TD: Floats) -> None:
        kind = NORMS[self.kind]
        _native.norm(x_TD, y_TD, sum_TD, out_TD, self.gain_D, self.bias_D, kind, self.groups, self.epsilon)


class FeedForward:
    """``FFN(x) = f(x W_1 + b_1) W_2 + b_2`` [Vaswani17 §3.3, eq. 2]."""

    def __init__(self, inner: Linear, outer: Linear, scratch: Scratch) -> None:
        self.inner = inner
        self.outer = outer
        self.scratch = scratch

    def __call__(self, x_TD: Floats, _: object) -> Floats:
        """Every token on its own."""
        return self.outer(self.inside(x_TD), self.scratch.rows("output", len(x_TD), self.outer.columns))

    def inside(self, x_TD: Floats) -> Floats:
        """``f(x W_1 + b_1)``."""
        return self.inner(x_TD, self.scratch.rows("inner", len(x_TD), self.inner.columns))


class GatedFeedForward(FeedForward):
    """``FFN(x) = (f(x W_1) ⊗ x W_g) W_2`` [Shazeer20]; ``inner`` holds W_1 and W_g side by side."""

    def __init__(self, inner: Linear, outer: Linear, scratch: Scratch, activation: str) -> None:
        super().__init__(inner, outer, scratch)
        self.activation = ACTIVATIONS[activation]

    def inside(self, x_TD: Floats) -> Floats:
        """``f(x W_1) ⊗ x W_g``."""
        both_TF = super().inside(x_TD)
        gated_TF = self.scratch.rows("gated", len(x_TD), self.inner.columns // 2)
        _native.gate(both_TF, gated_TF, self.activation)
        return gated_TF
