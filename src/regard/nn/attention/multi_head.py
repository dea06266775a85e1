"""Multi-head attention: softmax of scaled query-key scores, weighted sum of values [Vaswani17 §3.2]; its KV cache."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from torch import Tensor, nn

from regard.nn import hooks
from regard.nn.attention.backends import BACKENDS, AttentionArgs, Bias, Reference
from regard.nn.hooks import Point
from regard.nn.init import refuse_probabilities, refuse_sizes, watch
from regard.nn.layout import Layout, Sequences
from regard.nn.ops import Linear, project
from regard.nn.positions import Positions

_LOG = logging.getLogger(__name__)
_REFERENCE = Reference()
_seen: set[str] = set()


def attend(
    query_THK: Tensor,
    key_SHK: Tensor,
    value_SHU: Tensor,
    layout: Layout,
    *,
    causal: bool,
    bias: Bias | None = None,
    scale: float | None = None,
    dropout: float | None = None,
    point: Point | None = None,
) -> Tensor:
    """``Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V`` for every sequence of the layout [Vaswani17 §3.2.1, eq. 1].

    A query whose sequence has no keys, or that belongs to no sequence, gets a zero context and no gradient.

    Args:
        causal: a query sees keys up to its own place only; the last query aligns with the last key [Vaswani17 §3.2.3].
        bias: added to the scores, evaluated from positions.
        scale: default ``1 / √d_k``.
        dropout: probability of dropping a weight; default none, as in the paper.
        point: the hook on each intermediate value, which only the reference backend has.

    Returns:
        ``context_THU``.
    """
    args = AttentionArgs(layout, causal, scale or query_THK.shape[-1] ** -0.5, bias, dropout or 0.0)
    if point is not None:
        return _REFERENCE(query_THK, key_SHK, value_SHU, args, point)
    backend = next(one for one in BACKENDS if one.supports(query_THK, value_SHU, args))
    if backend.name not in _seen:
        _seen.add(backend.name)
        _LOG.info("attention is computed the %s way", backend.name)
    return backend(query_THK, key_SHK, value_SHU, args)


@dataclass(frozen=True)
class Scoring:
    """Options of multi-head attention beyond the paper's form.

    Args:
        scaled: scores are divided by √d_k, as in the paper; else the queries' weights begin that much smaller
            [Raffel20].
        biases: the projections have biases.
        positions: a kind of positions that acts in attention, shared by the layers of a stack.
    """

    scaled: bool = True
    biases: bool = True
    positions: Positions | None = None


PAPER = Scoring()
"""As in the paper."""


@dataclass
class KVCache:
    """Row *n* holds a sequence's keys and values from ``n * stride`` on. The arena handed in is consumed by every call.

    ``key_SHK`` and ``value_SHU`` have ``rows * stride`` entries. The rows in use are the first ones, without gaps, so
    that a padded view of them is a plain slice.
    """

    key_SHK: Tensor
    value_SHU: Tensor
    stride: int

    @classmethod
    def empty(cls, like: tuple[Tensor, Tensor], rows: int, stride: int) -> KVCache:
        """An arena for tensors like ``(key_SHK, value_SHU)``."""
        key, value = (x.new_zeros(rows * stride, *x.shape[1:]) for x in like)
        return cls(key, value, stride)

    @property
    def rows(self) -> int:
        """Rows there is room for."""
        return len(self.key_SHK) // self.stride

    def write(self, places_R: Tensor, key_RHK: Tensor, value_RHU: Tensor) -> None:
        """Put entries at the given places of the axis."""
        self.key_SHK.index_copy_(0, places_R, key_RHK)
        self.value_SHU.index_copy_(0, places_R, value_RHU)

    def select(self, rows_R: Tensor, longest: int) -> KVCache:
        """Row *i* becomes a copy of the first ``longest`` entries of row ``rows_R[i]``; grows for more rows."""
        count = len(rows_R)
        room = self if count <= self.rows else self.grow(2 * count, self.stride)
        for old, new in ((self.key_SHK, room.key_SHK), (self.value_SHU, room.value_SHU)):
            kept = old.unflatten(0, (-1, self.stride))[:, :longest].index_select(0, rows_R)
            new.unflatten(0, (-1, self.stride))[:count, :longest] = kept
        return room

    def grow(self, rows: int, stride: int) -> KVCache:
        """The same rows with room for ``rows`` rows of ``stride`` entries (never less than now)."""
        rows, stride = max(rows, self.rows), max(stride, self.stride)
        if (rows, stride) == (self.rows, self.stride):
            return self
        larger = self.empty((self.key_SHK, self.value_SHU), rows, stride)
        for old, new in ((self.key_SHK, larger.key_SHK), (self.value_SHU, larger.value_SHU)):
            new.unflatten(0, (rows, stride))[: self.rows, : self.stride] = old.unflatten(0, (-1, self.stride))
        return larger


class MultiHeadAttention(nn.Module):
    """``Concat(head_1, …, head_h) W^O`` with ``head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)`` [Vaswani17 §3.2.2].

    The projections of all heads stand side by side in one matrix each: ``W^Q`` and ``W^K`` (d_model → h d_k), ``W^V``
    (d_model → h d_v), ``W^O`` (h d_v → d_model).

    Args:
        d_model: entries of a token's vector.
        heads: h.
        d_k, d_v: entries of a head's queries and keys, and of its values; they need not divide d_model.
        dropout: probability of dropping a weight; the paper drops none.
        scoring: options beyond the paper's form.

    Raises:
        UsageError: a size is below 1 or no whole number, or the dropout no probability below 1.
    """

    def __init__(
        self, d_model: int, heads: int, d_k: int, d_v: int, dropout: float = 0.0, scoring: Scoring = PAPER
    ) -> None:
        super().__init__()
        refuse_sizes(self, d_model=d_model, heads=heads, d_k=d_k, d_v=d_v)
        refuse_probabilities(self, dropout=dropout)
        self.scale = d_k**-0.5 if scoring.scaled else 1.0
        self.query = Linear(d_model, heads * d_k, bias=scoring.biases, gain=1.0 if scoring.scaled else d_k**-0.5)
        self.key = Linear(d_model, heads * d_k, bias=scoring.biases)
        self.value = Linear(d_model, heads * d_v, bias=scoring.biases)
        self.output = Linear(heads * d_v, d_model, bias=scoring.biases)
        self.heads = heads
        self.dropout = dropout
        self.positions = scoring.positions
        self.path = ""
        watch(self)

    def forward(self, x_TD: Tensor, memory_SD: Tensor, layout: Layout, *, causal: bool) -> Tensor:
        """Every token of ``x_TD`` attends to its sequence's ``memory_SD``; self-attention if that is ``x_TD``."""
        if memory_SD is x_TD:
            return self._attend(*self._self_attention(x_TD, layout), layout, causal)
        query_THK = self._rotate(self.query(x_TD), layout.queries)
        return self._attend(query_THK, *self.keys_and_values(memory_SD, layout.keys), layout, causal)

    def prefill(self, x_TD: Tensor, cache: KVCache, places_T: Tensor, layout: Layout) -> Tensor:
        """Causal self-attention; the keys and values are also written to ``places_T`` of a cache."""
        query_THK, key_THK, value_THU = self._self_attention(x_TD, layout)
        cache.write(places_T, key_THK, value_THU)
        return self._attend(query_THK, key_THK, value_THU, layout, True)

    def keys_and_values(self, memory_SD: Tensor, sequences: Sequences) -> tuple[Tensor, Tensor]:
        """``key_SHK, value_SHU`` of the tokens of ``sequences``, for a cache."""
        key, value = project(memory_SD, [self.key, self.value])
        return self._rotate(key, sequences), self._split(value)

    def attend_cached(self, x_ND: Tensor, cache: KVCache, layout: Layout) -> Tensor:
        """Every row's new token attends to the keys and values of its row in a cache."""
        query_NHK = self._rotate(self.query(x_ND), layout.queries)
        return self._attend(query_NHK, cache.key_SHK, cache.value_SHU, layout, False)

    def _self_attention(self, x_TD: Tensor, layout: Layout) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = project(x_TD, [self.query, self.key, self.value])
        return self._rotate(query, layout.queries), self._rotate(key, layout.keys), self._split(value)

    def _rotate(self, x_TX: Tensor, sequences: Sequences) -> Tensor:
        """Queries or keys by heads, as their positions turn them."""
        x_THK = self._split(x_TX)
        if self.positions is None or not self.positions.turns:
            return x_THK
        places_T = hooks.hook_point(f"{self.path}.places", sequences.positions_T)
        if places_T is not sequences.positions_T:
            sequences = sequences.moved_to(places_T)
        return self.positions.rotate(x_THK, sequences)

    def _split(self, x_TX: Tensor) -> Tensor:
        return x_TX.unflatten(-1, (self.heads, -1))

    def _attend(self, query_THK: Tensor, key_SHK: Tensor, value_SHU: Tensor, layout: Layout, causal: bool) -> Tensor:
        context_THU = attend(
            query_THK,
            key_SHK,
            value_SHU,
            layout,
            causal=causal,
            bias=None if self.positions is None else self.positions.bias(),
            scale=self.scale,
            dropout=self.dropout if self.training else 0.0,
            point=hooks.point_inside(self.path),
        )
        output_TD: Tensor = self.output(context_THU.flatten(1))
        return hooks.hook_point(f"{self.path}.output", output_TD)
