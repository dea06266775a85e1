"""Attention and the stacks of sub-layers, over the kernels [Vaswani17 §3.1, §3.2, Figure 1]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.fast.parts import Floats, Linear, Norm, Scratch
from regard.fast.positions import Rotary, Table
from regard.kernels import _native

Ints = NDArray[np.int32]
SubLayer = Callable[[Floats, Any], Floats]
"""Of the residual stream and what the pass knows of its rows."""
NOWHERE = np.zeros(0, np.int32)


@dataclass(frozen=True)
class Sentences:
    """Tokens end to end: of each, where its sentence begins, how long that is, and its own place in it."""

    first_T: Ints
    length_T: Ints
    place_T: Ints
    longest: int


@dataclass(frozen=True)
class Hypotheses:
    """One new token of each row of a search.

    Args:
        place_N: its place: the tokens that the row had before.
        length_N: the same and the new one.
        longest: the largest length.
        slots_N: where its keys and values are to be written.
        ancestors_NS: where those of the row's tokens are, the new one's too.
        past_LXE: keys and values of tokens, by layer.
        memory_LSE: keys and values of sentences, by layer.
        memory_first_N, memory_length_N: which of them each row attends to.
    """

    place_N: Ints
    length_N: Ints
    longest: int
    slots_N: Ints
    ancestors_NS: Ints
    past_LXE: Floats
    memory_LSE: Floats
    memory_first_N: Ints
    memory_length_N: Ints


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


class SelfAttention:
    """Every token attends to its sentence [Vaswani17 §3.2.2]; ``project`` makes query, key and value side by side.

    Args:
        bias: by distance, for positions that act on scores.
        rotary: for positions that turn.
    """

    def __init__(
        self,
        heads: Heads,
        project: Linear,
        output: Linear,
        scratch: Scratch,
        bias: Table | None = None,
        rotary: Rotary | None = None,
    ) -> None:
        self.heads = heads
        self.project = project
        self.output = output
        self.scratch = scratch
        self.bias = bias
        self.rotary = rotary

    def __call__(self, x_TD: Floats, given: Sentences) -> Floats:
        """The sub-layer's output."""
        h = self.heads
        projected_TX = self._project(x_TD, given.place_T, given.longest)
        context_TX = self.scratch.rows("context", len(x_TD), h.values)
        _native.attention(
            projected_TX[:, : h.keys],
            projected_TX[:, h.keys : 2 * h.keys],
            projected_TX[:, 2 * h.keys :],
            context_TX,
            h.heads,
            h.scale,
            given.length_T,
            given.first_T,
            None,
            self._bias(given.longest),
            given.place_T,
        )
        return self._output(context_TX)

    def _project(self, x_TD: Floats, place_T: Ints, longest: int) -> Floats:
        h = self.heads
        projected_TX = self.project(x_TD, self.scratch.rows("projected", len(x_TD), 2 * h.keys + h.values))
        if self.rotary is not None:
            self.rotary.turn(projected_TX[:, : 2 * h.keys], 2 * h.heads, place_T, longest)
        return projected_TX

    def _bias(self, longest: int) -> Floats | None:
        return None if self.bias is None else self.bias(longest)

    def _output(self, context_TX: Floats) -> Floats:
        return self.output(context_TX, self.scratch.rows("output", len(context_TX), self.output.columns))


class CachedAttention(SelfAttention):
    """A row's new token attends to the row's tokens: their keys and values stay where they were written."""

    def __init__(self, layer: int, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        self.layer = layer

    def __call__(self, x_TD: Floats, given: Hypotheses) -> Floats:  # type: ignore[override]
        """The sub-layer's output; the tokens' keys and values are written."""
        h = self.heads
        projected_TX = self._project(x_TD, given.place_N, given.longest)
        past_XE = given.past_LXE[self.layer]
        past_XE[given.slots_N] = projected_TX[:, h.keys :]
        context_TX = self.scratch.rows("context", len(x_TD), h.values)
        _native.attention(
            projected_TX[:, : h.keys],
            past_XE[:, : h.keys],
            past_XE[:, h.keys :],
            context_TX,
            h.heads,
            h.scale,
            given.length_N,
            NOWHERE,
            given.ancestors_NS,
            self._bias(given.longest),
            given.place_N,
        )
        return self._output(context_TX)


class CrossAttention:
    """A row's new token attends to its sentence, whose keys and values all rows of it share."""

    def __init__(self, layer: int, heads: Heads, query: Linear, output: Linear, scratch: Scratch) -> None:
        self.layer = layer
        self.heads = heads
        self.query = query
        self.output = output
        self.scratch = scratch

    def __call__(self, x_TD: Floats, given: Hypotheses) -> Floats:
        """The sub-layer's output."""
        h, rows = self.heads, len(x_TD)
        query_TX = self.query(x_TD, self.scratch.rows("query", rows, h.keys))
        context_TX = self.scratch.rows("context", rows, h.values)
        memory_SE = given.memory_LSE[self.layer]
        key_SX, value_SX = memory_SE[:, : h.keys], memory_SE[:, h.keys :]
        first_N, length_N = given.memory_first_N, given.memory_length_N
        _native.attention(query_TX, key_SX, value_SX, context_TX, h.heads, h.scale, length_N, first_N, None, None, None)
        return self.output(context_TX, self.scratch.rows("output", rows, self.output.columns))


class Stack(Protocol):
    """Sub-layers with their residual connections and norms."""

    def __call__(self, x_TD: Floats, given: Any) -> Floats:
        """The stack's output; the residual stream is overwritten."""
        ...


class PostNorm:
    """``norm(x + sublayer(x))`` around each sub-layer: the paper [Vaswani17 §3.1]."""

    def __init__(self, sublayers: Sequence[SubLayer], norms: Sequence[Norm]) -> None:
        self.pairs = list(zip(sublayers, norms, strict=True))

    def __call__(self, x_TD: Floats, given: Any) -> Floats:
        """The last sum, normalised."""
        for sublayer, norm in self.pairs:
            norm.join(x_TD, sublayer(x_TD, given))
        return x_TD


class PreNorm:
    """``x + sublayer(norm(x))`` around each sub-layer, and a norm at the end [Xiong20].

    A sub-layer's sum and the norm before the next one are computed together; so there is one norm more.
    """

    def __init__(self, sublayers: Sequence[SubLayer], norms: Sequence[Norm], scratch: Scratch) -> None:
        self.first, *rest = norms
        self.pairs = list(zip(sublayers, rest, strict=True))
        self.scratch = scratch

    def __call__(self, x_TD: Floats, given: Any) -> Floats:
        """The last sum, normalised."""
        entered_TD = self.scratch.rows("entered", *x_TD.shape)
        self.first(x_TD, entered_TD)
        for sublayer, norm in self.pairs:
            norm.join_and_enter(x_TD, sublayer(entered_TD, given), entered_TD)
        return entered_TD
