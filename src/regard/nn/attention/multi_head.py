"""Multi-head attention: softmax of scaled query-key scores, weighted sum of values [Vaswani17 §3.2]."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial

from torch import Tensor, nn

from regard.nn import hooks
from regard.nn.attention.backends import BACKENDS, AttentionArgs, Bias, Reference
from regard.nn.attention.kv_cache import KVCache
from regard.nn.layout import Layout
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
) -> Tensor:
    """``Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V`` for every sequence of the layout [Vaswani17 §3.2.1, eq. 1].

    A query whose sequence has no keys, or that belongs to no sequence, gets a zero context and no gradient.

    Args:
        causal: a query sees keys up to its own place only; the last query aligns with the last key [Vaswani17 §3.2.3].
        bias: added to the scores, evaluated from positions.
        scale: default ``1 / √d_k``.
        dropout: probability of dropping a weight; default none, as in the paper.

    Returns:
        ``context_THU``.
    """
    args = AttentionArgs(layout, causal, scale or query_THK.shape[-1] ** -0.5, bias, dropout or 0.0)
    backend = next(one for one in BACKENDS if one.supports(query_THK, value_SHU, args))
    if backend.name not in _seen:
        _seen.add(backend.name)
        _LOG.info("attention is computed the %s way", backend.name)
    return backend(query_THK, key_SHK, value_SHU, args)


@dataclass(frozen=True)
class Scoring:
    """Options of multi-head attention beyond the paper's form.

    Args:
        scaled: scores are divided by √d_k, as in the paper; T5 folds that into its initial weights.
        biases: the projections have biases.
        positions: a kind of positions that adds to the scores, shared by the layers of a stack.
    """

    scaled: bool = True
    biases: bool = True
    positions: Positions | None = None


PAPER = Scoring()
"""As in the paper."""


class MultiHeadAttention(nn.Module):
    """``Concat(head_1, …, head_h) W^O`` with ``head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)`` [Vaswani17 §3.2.2].

    The projections of all heads stand side by side in one matrix each: ``W^Q`` and ``W^K`` (d_model → h d_k), ``W^V``
    (d_model → h d_v), ``W^O`` (h d_v → d_model).
    """

    def __init__(
        self, d_model: int, heads: int, d_k: int, d_v: int, dropout: float = 0.0, scoring: Scoring = PAPER
    ) -> None:
        super().__init__()
        self.query = Linear(d_model, heads * d_k, bias=scoring.biases)
        self.key = Linear(d_model, heads * d_k, bias=scoring.biases)
        self.value = Linear(d_model, heads * d_v, bias=scoring.biases)
        self.output = Linear(heads * d_v, d_model, bias=scoring.biases)
        self.heads = heads
        self.dropout = dropout
        self.d_k = d_k
        self.scoring = scoring
        self.positions = scoring.positions
        self.path = ""

    def forward(self, x_TD: Tensor, memory_SD: Tensor, layout: Layout, *, causal: bool) -> Tensor:
        """Every token of ``x_TD`` attends to its sequence's ``memory_SD``; self-attention if that is ``x_TD``."""
        if memory_SD is x_TD:
            query, key, value = project(x_TD, [self.query, self.key, self.value])
        else:
            query = self.query(x_TD)
            key, value = project(memory_SD, [self.key, self.value])
        return self._attend(self._split(query), self._split(key), self._split(value), layout, causal)

    def remember(self, memory_SD: Tensor) -> tuple[Tensor, Tensor]:
        """``key_SHK, value_SHU`` of a memory, computed once and kept while decoding."""
        key, value = project(memory_SD, [self.key, self.value])
        return self._split(key), self._split(value)

    def recall(self, x_ND: Tensor, arena: KVCache, layout: Layout) -> Tensor:
        """Every row's token attends to keys and values kept in an arena."""
        return self._attend(self._split(self.query(x_ND)), arena.key_SHK, arena.value_SHU, layout, False)

    def _split(self, x_TX: Tensor) -> Tensor:
        return x_TX.unflatten(-1, (self.heads, -1))

    def _attend(self, query_THK: Tensor, key_SHK: Tensor, value_SHU: Tensor, layout: Layout, causal: bool) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        bias = self.positions.bias() if self.positions is not None else None
        scale = self.d_k**-0.5 if self.scoring.scaled else 1.0
        if hooks.inside(self.path):
            args = AttentionArgs(layout, causal, scale, bias, dropout)
            context_THU = _REFERENCE(query_THK, key_SHK, value_SHU, args, partial(hooks.passing_inside, self.path))
        else:
            context_THU = attend(
                query_THK, key_SHK, value_SHU, layout, causal=causal, bias=bias, scale=scale, dropout=dropout
            )
        output_TD: Tensor = self.output(context_THU.flatten(1))
        return hooks.hook_point(f"{self.path}.output", output_TD)
