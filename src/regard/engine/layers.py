"""Attention, and sub-layers joined by residual connections and norms, as calls [Vaswani17 §3.1, §3.2, Figure 1]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from regard.engine.parts import NOTHING, Linear, Norm, Recording, Room


class SubLayer(Protocol):
    """A sub-layer: attention or a feed-forward network."""

    def record(self, recording: Recording, x: Room) -> Room:
        """Its output for what is in a room, in another."""
        ...


@dataclass(frozen=True)
class Heads:
    """Sizes of attention: d_k and d_v are of one head; ``scale`` multiplies the scores."""

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

    @property
    def sizes(self) -> tuple[int, int, int, float]:
        """As kernels take them."""
        return self.heads, self.d_k, self.d_v, self.scale


@dataclass(frozen=True)
class SelfAttention:
    """Every token attends to its sentence [Vaswani17 §3.2.2].

    Args:
        project: query, key and value side by side.
        biased: positions act on the scores.
        rotary: positions turn queries and keys.
    """

    heads: Heads
    project: Linear
    output: Linear
    biased: bool
    rotary: bool

    def record(self, recording: Recording, x: Room) -> Room:
        """The sub-layer's output."""
        projected = self.project.record(recording, x, "projected")
        if self.rotary:
            recording.program.rotate(projected, 2 * self.heads.heads, self.heads.d_k)
        context = recording.room("context", self.heads.values)
        self.attend(recording, projected, context)
        return self.output.record(recording, context, "output")

    def attend(self, recording: Recording, projected: Room, context: Room) -> None:
        """From query, key and value to the context."""
        recording.program.attend(projected, context, *self.heads.sizes, self.biased)


@dataclass(frozen=True)
class CachedAttention(SelfAttention):
    """A row's new token attends to the row's tokens: their keys and values stay where they were written.

    Args:
        layer: of the decoder.
    """

    layer: int

    def attend(self, recording: Recording, projected: Room, context: Room) -> None:
        """From query, key and value to the context; key and value are written."""
        recording.program.attend_past(projected, context, *self.heads.sizes, self.biased, self.layer)


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
        recording.program.attend_memory(query, context, *self.heads.sizes, self.layer)
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
