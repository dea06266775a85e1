"""Attention of recurrent decoders [Bahdanau15, Luong15]: each score as a dot product, for one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from regard.fast.parts import Floats, Linear
from regard.kernels import _native

Ints = NDArray[np.int32]
ROWS = 16
"""Rows whose keys the additive score makes at a time, so that they stay in the cache."""


@dataclass(frozen=True)
class Seen:
    """What rows attend to: keys and states of all sentences, and where those of each row's sentence lie."""

    key_SD: Floats
    memory_SD: Floats
    first_N: Ints
    length_N: Ints

    def context(self, query_ND: Floats, scale: float = 1.0) -> Floats:
        """``softmax(scale query key^T) memory``; zeros for a sentence without tokens."""
        context_ND = np.empty((len(query_ND), self.memory_SD.shape[1]), np.float32)
        arrays = (query_ND, self.key_SD, self.memory_SD, context_ND)
        _native.attention(*arrays, 1, scale, self.length_N, self.first_N, None, None, None)
        return context_ND


@dataclass(frozen=True)
class Dot:
    """``score(h, m) = hᵀ m``, times ``scale``; or ``(W h + b)ᵀ m``, which is called general [Luong15 §3.1, eq. 8]."""

    keyed: ClassVar[bool] = False
    """Whether keys are kept beside the encoder's states, or these are their own."""
    scale: float = 1.0
    weight: Linear | None = None

    def key(self, memory_SD: Floats) -> Floats:
        """``key_SD`` of the encoder's states, computed once for a sentence."""
        return memory_SD

    def context(self, hidden_ND: Floats, seen: Seen) -> Floats:
        """``context_ND``: the encoder's states, weighed for the decoder's."""
        return seen.context(hidden_ND if self.weight is None else self.weight.rows(hidden_ND), self.scale)


class Cosine(Dot):
    """``score(h, m) = s cos(h, m)``; the sharpness ``s`` is the scale."""

    keyed = True

    def key(self, memory_SD: Floats) -> Floats:
        """``m / |m|``."""
        return _of_length_one(memory_SD)

    def context(self, hidden_ND: Floats, seen: Seen) -> Floats:
        """``context_ND``: the encoder's states, weighed for the decoder's."""
        return super().context(_of_length_one(hidden_ND), seen)


@dataclass(frozen=True)
class Additive:
    """``score(h, m) = vᵀ tanh(W h + U m + b)``: for each row keys of its own, to which ``v`` is the query.

    Args:
        state, memory: ``W h + b``, ``U m``; ``direction_D``: ``v`` [Bahdanau15 §A.1.2].
    """

    keyed: ClassVar[bool] = True
    state: Linear
    memory: Linear
    direction_D: Floats

    def key(self, memory_SD: Floats) -> Floats:
        """``U m``."""
        return self.memory.rows(memory_SD)

    def context(self, hidden_ND: Floats, seen: Seen) -> Floats:
        """``context_ND``: the encoder's states, weighed for the decoder's."""
        state_ND, context_ND = self.state.rows(hidden_ND), np.empty_like(hidden_ND)
        for rows in (slice(begin, begin + ROWS) for begin in range(0, len(state_ND), ROWS)):
            length_N = seen.length_N[rows]
            first_N = (length_N.cumsum() - length_N).astype(np.int32)
            place_S = np.repeat(seen.first_N[rows] - first_N, length_N) + np.arange(int(length_N.sum()))
            key_SD = seen.key_SD[place_S] + np.repeat(state_ND[rows], length_N, axis=0)
            apart = Seen(np.tanh(key_SD), seen.memory_SD[place_S], first_N, length_N)
            context_ND[rows] = apart.context(np.tile(self.direction_D, (len(length_N), 1)))
        return context_ND


@dataclass(frozen=True)
class Alignment:
    """From the decoder's state and the context the attentional vector ``tanh(W_c [c; h] + b)`` [Luong15 §3, eq. 5]."""

    score: Dot | Additive
    output: Linear

    def remember(self, memory_SD: Floats, rooms: Sequence[Floats]) -> None:
        """Keep the encoder's states, and before them their keys where they have any."""
        rooms[-1][:] = memory_SD
        if self.score.keyed:
            rooms[0][:] = self.score.key(memory_SD)

    def __call__(self, hidden_ND: Floats, seen: Seen) -> Floats:
        """``attentional_ND``."""
        context_ND = self.score.context(hidden_ND, seen)
        return np.asarray(np.tanh(self.output.rows(np.concatenate([context_ND, hidden_ND], 1))))


def _of_length_one(x: Floats) -> Floats:
    return np.asarray(x / np.maximum(np.sqrt(np.square(x).sum(1, keepdims=True)), np.float32(1e-12)))
