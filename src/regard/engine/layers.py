"""What stacks are made of, as the calls of kernels that each part records: products, norms, attention, residuals.

Parts first, then sub-layers, then what joins them [Vaswani17 §3.1, §3.2, Figure 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.system.kernels import ACTIVATIONS, NORMS, _native
from regard.system.kernels.packing import FP32, Packer

Floats = NDArray[np.float32]
Scores = NDArray[np.float64]
Ids = NDArray[np.int64]
Ints = NDArray[np.int32]
Room = int
"""A row of numbers for each token, by its number in the program."""
NOTHING: Room = -1


class Recording:
    """A pass through a stack, as it is recorded; rooms are found by name, so that layers use the same ones."""

    def __init__(self) -> None:
        self.program = _native.Program()
        self.bytes = 0
        """Of the matrices that a pass reads."""
        self._rooms: dict[tuple[str, int], Room] = {}

    def room(self, name: str, width: int) -> Room:
        """The room of this name and width."""
        if (name, width) not in self._rooms:
            self._rooms[name, width] = self.program.room(width)
        return self._rooms[name, width]


class Linear:
    """``x W + b``, or several of the same x side by side; with an activation."""

    def __init__(
        self, weights: Sequence[Floats], biases: Sequence[Floats | None], activation: str = "none", pack: Packer = FP32
    ) -> None:
        self.packed = pack(weights, biases)
        self.columns = sum(len(weight) for weight in weights)
        self.activation = ACTIVATIONS[activation]

    def record(self, recording: Recording, x: Room, name: str) -> Room:
        """The product, in a room of this name."""
        out = recording.room(name, self.columns)
        recording.program.product(x, self.packed, out, self.activation)
        recording.bytes += self.packed.nbytes
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
        kind: a word of :data:`regard.system.kernels.NORMS`.
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


class SubLayer(Protocol):
    """A sub-layer: attention or a feed-forward network."""

    def record(self, recording: Recording, x: Room) -> Room:
        """Its output for what is in a room, in another."""


@dataclass(frozen=True)
class FeedForward:
    """``FFN(x) = f(x W_1 + b_1) W_2 + b_2`` [Vaswani17 §3.3, eq. 2], or ``(f(x W_1) ⊗ x W_g) W_2`` [Shazeer20].

    Args:
        inner: W_1 with f; with a gate W_1 and W_g side by side, without f.
        gate: f, if there is a gate.
    """

    inner: Linear
    outer: Linear
    gate: str | None

    def record(self, recording: Recording, x: Room) -> Room:
        """Every token on its own."""
        inside = self.inner.record(recording, x, "inner")
        if self.gate is not None:
            both, inside = inside, recording.room("gated", self.inner.columns // 2)
            recording.program.gate(both, inside, ACTIVATIONS[self.gate])
        return self.outer.record(recording, inside, "output")


class Heads(NamedTuple):
    """Sizes of attention, as kernels take them: d_k and d_v are of one head; ``scale`` multiplies the scores."""

    heads: int
    d_k: int
    d_v: int
    scale: float

    @property
    def keys(self) -> int:
        """Entries of all heads' keys, and of their queries."""
        return self.heads * self.d_k

    @property
    def values(self) -> int:
        """Entries of all heads' values."""
        return self.heads * self.d_v


@dataclass(frozen=True)
class SelfAttention:
    """Every token attends to its sentence [Vaswani17 §3.2.2].

    Args:
        project: query, key and value side by side.
        biased: positions act on the scores.
        rotary: positions turn queries and keys.
        layer: of a decoder, where it is a row's new token that attends, to the row's tokens: their keys and values stay
            where they were written.
    """

    heads: Heads
    project: Linear
    output: Linear
    biased: bool
    rotary: bool
    layer: int | None = None

    def record(self, recording: Recording, x: Room) -> Room:
        """The sub-layer's output."""
        projected = self.project.record(recording, x, "projected")
        if self.rotary:
            recording.program.rotate(projected, 2 * self.heads.heads, self.heads.d_k)
        context = recording.room("context", self.heads.values)
        if self.layer is None:
            recording.program.attend(projected, context, *self.heads, self.biased)
        else:
            recording.program.attend_past(projected, context, *self.heads, self.biased, self.layer)
        return self.output.record(recording, context, "output")


@dataclass(frozen=True)
class SSRU:
    """What a row keeps of its tokens is one state, written where keys and values of its last one would be [Kim19].

    Args:
        project: value and forget gate side by side.
        layer: of the decoder.
    """

    project: Linear
    layer: int

    def record(self, recording: Recording, x: Room) -> Room:
        """The sub-layer's output."""
        projected = self.project.record(recording, x, "projected")
        out = recording.room("output", self.project.columns // 2)
        recording.program.recur(projected, out, self.layer)
        return out


@dataclass(frozen=True)
class CrossAttention:
    """A row's new token attends to its sentence, whose keys and values all rows of it share."""

    heads: Heads
    query: Linear
    output: Linear
    layer: int

    def record(self, recording: Recording, x: Room) -> Room:
        """The sub-layer's output."""
        query = self.query.record(recording, x, "query")
        context = recording.room("context", self.heads.values)
        recording.program.attend_memory(query, context, *self.heads, self.layer)
        return self.output.record(recording, context, "output")


@dataclass(frozen=True)
class NormFirst:
    """``layers(norm(x))``: the sum of the embeddings is normalised, as in BERT [Devlin19]."""

    norm: Norm
    layers: SubLayer

    def record(self, recording: Recording, x: Room) -> Room:
        """What the layers give."""
        self.norm.record(recording, x, NOTHING, NOTHING, x)
        return self.layers.record(recording, x)


@dataclass(frozen=True)
class PostNorm:
    """``norm(x + sublayer(x))`` around each sub-layer: the paper [Vaswani17 §3.1]."""

    sublayers: Sequence[SubLayer]
    norms: Sequence[Norm]

    def record(self, recording: Recording, x: Room) -> Room:
        """The last sum, normalised."""
        for sublayer, norm in zip(self.sublayers, self.norms, strict=True):
            norm.record(recording, x, sublayer.record(recording, x), NOTHING, x)
        return x


@dataclass(frozen=True)
class PreNorm:
    """``x + sublayer(norm(x))`` around each sub-layer, and a norm at the end [Xiong20].

    A sub-layer's sum and the norm before the next one are computed together; so there is one norm more.
    """

    sublayers: Sequence[SubLayer]
    norms: Sequence[Norm]
    width: int

    def record(self, recording: Recording, x: Room) -> Room:
        """The last sum, normalised."""
        entered = recording.room("entered", self.width)
        first, *rest = self.norms
        first.record(recording, x, NOTHING, NOTHING, entered)
        for sublayer, norm in zip(self.sublayers, rest, strict=True):
            norm.record(recording, x, sublayer.record(recording, entered), x, entered)
        return entered
