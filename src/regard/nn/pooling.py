"""What stands for a whole sequence: its first token, the mean of its tokens, or the largest of each entry."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from regard.nn.layout import Sequences

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
