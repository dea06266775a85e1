"""Pooling of a sequence into one vector: first token, mean, maximum, or attention."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from regard.nn import hooks
from regard.nn.alignment import AdditiveScore
from regard.nn.layout import Layout, Sequences

Pool = Callable[[Tensor, Sequences], Tensor]
"""``(hidden_TD, sequences) → pooled_BD``."""


def first(hidden_TD: Tensor, sequences: Sequences) -> Tensor:
    """The first token of every sequence [Devlin19 §3]."""
    return hidden_TD[sequences.starts_B[: sequences.count]]


def mean(hidden_TD: Tensor, sequences: Sequences) -> Tensor:
    """The mean over every sequence's tokens."""
    lengths_B = sequences.lengths_B[: sequences.count]
    sums_BD = hidden_TD.new_zeros(sequences.count, hidden_TD.shape[1])
    sums_BD = sums_BD.index_add(0, sequences.rows_T, hidden_TD[sequences.inside_T])
    return sums_BD / lengths_B[:, None].clamp(min=1).to(hidden_TD.dtype)


def largest(hidden_TD: Tensor, sequences: Sequences) -> Tensor:
    """The largest of every entry over every sequence's tokens."""
    low_BD = hidden_TD.new_full((sequences.count, hidden_TD.shape[1]), -torch.inf)
    index = sequences.rows_T[:, None].expand(-1, hidden_TD.shape[1])
    return low_BD.scatter_reduce(0, index, hidden_TD[sequences.inside_T], "amax")


class Attention(nn.Module):
    """A mean of every sequence's tokens, weighed by attention [Lin17 §2.1, Yang16 §2.2].

    One query, which is learned and the same for all texts, is compared with every token by the additive score.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(d_model))
        self.score = AdditiveScore(d_model)
        self.path = ""

    def forward(self, hidden_TD: Tensor, sequences: Sequences) -> Tensor:
        """``context_BD``; zeros for an empty sequence."""
        lengths_B = sequences.lengths_B[: sequences.count]
        layout = Layout(Sequences.rows(torch.ones_like(lengths_B), 1, 1), sequences)
        query_BD = self.query.to(hidden_TD.dtype).expand(sequences.count, -1)
        given = query_BD, self.score.key(hidden_TD), hidden_TD, layout
        if hooks.inside(self.path):
            context_BD = self.score.attend_with_hook(*given, partial(hooks.passing_inside, self.path))
        else:
            context_BD = self.score.attend(*given)
        return hooks.hook_point(f"{self.path}.output", context_BD)
