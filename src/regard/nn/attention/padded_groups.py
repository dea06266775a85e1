"""Padded groups of sequences of similar length, used inside one attention backend only."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.nn.layout import Layout, Sequences

SMALLEST_GROUP = 32
"""Sequences a grid has at least before the batch is split into several."""
HALF_VECTOR, VECTOR = 8, 16
"""A row of more keys than half of a vector of fp32 and fewer than a whole one (of AVX-512) takes two to four times as
long as one of a whole vector, in softmax and products alike."""


@dataclass(frozen=True)
class Side:
    """How one axis (queries or keys) goes into the grid of one group, ``shape`` = (sequences, heads, longest).

    ``cells_X`` names for each (sequence, head, place) a row of the axis laid out as (token, head); where ``real_X`` is
    False there is no token and the row is somebody else's, to be masked.
    """

    shape: tuple[int, int, int]
    cells_X: Tensor
    real_X: Tensor | None

    def take(self, rows_YK: Tensor) -> Tensor:
        """Rows of the axis into the grid: (sequences · heads, longest, K)."""
        sequences, heads, longest = self.shape
        return rows_YK.index_select(0, self.cells_X).view(sequences * heads, longest, -1)

    def take_real(self, rows_YK: Tensor) -> Tensor:
        """The same with zeros for padding."""
        taken = self.take(rows_YK)
        return taken if self.real_X is None else taken.mul_(self.real_X.view(*taken.shape[:2], 1))


@dataclass(frozen=True)
class Group:
    """Some sequences padded to the longest among them; ``bias`` is 0 where a query may attend, else -inf."""

    queries: Side
    keys: Side
    bias: Tensor | None


@dataclass(frozen=True)
class PaddedGroups:
    """A layout as groups, made once and used by every layer.

    ``query_homes_Y`` and ``key_homes_Z`` name for each (token, head) of an axis its cell among those of all groups; a
    token of no sequence has none, and gets the cell after the last.
    """

    groups: list[Group]
    query_homes_Y: Tensor
    key_homes_Z: Tensor


def grid(layout: Layout, heads: int, causal: bool, most: int = 4, whole_vectors: bool = False) -> PaddedGroups:
    """The layout in at most ``most`` groups of similar length.

    Padding random sentences to the longest of the batch would cost several times their own squares.

    Args:
        layout, heads, causal: of the attention.
        most: groups.
        whole_vectors: pad groups of sentences that almost fill a vector to a whole one, if the batch has longer ones.
    """
    count = layout.queries.count
    lengths_B = layout.queries.lengths_B[:count] + layout.keys.lengths_B[:count]
    order_R = lengths_B.argsort(stable=True)
    order_R = order_R[layout.queries.lengths_B[order_R] > 0]
    parts = max(1, min(most, len(order_R) // SMALLEST_GROUP))
    chosen = order_R.tensor_split(parts)
    queries = [_side(layout.queries, chosen_R, heads, whole_vectors) for chosen_R in chosen]
    same = layout.keys is layout.queries
    keys = queries if same else [_side(layout.keys, chosen_R, heads, whole_vectors) for chosen_R in chosen]
    groups = [
        Group(query, key, _bias(layout, chosen_R, causal, query, key))
        for chosen_R, query, key in zip(chosen, queries, keys, strict=True)
    ]
    query_homes_Y = _homes(layout.queries, queries, heads)
    return PaddedGroups(groups, query_homes_Y, query_homes_Y if same else _homes(layout.keys, keys, heads))


def _side(sequences: Sequences, chosen_R: Tensor, heads: int, whole_vectors: bool) -> Side:
    starts_R, lengths_R = sequences.starts_B[chosen_R], sequences.lengths_B[chosen_R]
    longest = int(lengths_R.max())
    if whole_vectors and HALF_VECTOR < longest < VECTOR:
        longest = min(VECTOR, sequences.longest)
    places_L = torch.arange(longest, device=starts_R.device)
    tokens_RL = (starts_R[:, None] + places_L).clamp_(max=sequences.size - 1)
    heads_H = torch.arange(heads, device=starts_R.device)
    cells_X = (tokens_RL[:, None, :] * heads + heads_H[:, None]).flatten()
    real_RL = places_L < lengths_R[:, None]
    real = None if bool(real_RL.all()) else real_RL[:, None].expand(-1, heads, -1).flatten()
    return Side((len(chosen_R), heads, longest), cells_X, real)


def _homes(sequences: Sequences, sides: list[Side], heads: int) -> Tensor:
    cells = sum(len(side.cells_X) for side in sides)
    homes_Y = torch.full((sequences.size * heads,), cells, device=sequences.starts_B.device)
    start = 0
    for side in sides:
        cells_X = torch.arange(start, start + len(side.cells_X), device=homes_Y.device)
        real = slice(None) if side.real_X is None else side.real_X
        homes_Y[side.cells_X[real]] = cells_X[real]
        start += len(side.cells_X)
    return homes_Y


def _bias(layout: Layout, chosen_R: Tensor, causal: bool, queries: Side, keys: Side) -> Tensor | None:
    """The bias of the scores, broadcast over sequences if it is the same for all."""
    sequences, heads, longest = queries.shape
    if causal and layout.keys is layout.queries:  # padding comes last and is masked
        seen = torch.ones(longest, longest, dtype=torch.bool, device=chosen_R.device).tril()
    elif not causal and keys.real_X is None:
        return None
    else:
        allowed = layout.allowed_BLM(causal)[chosen_R][:, :longest, : keys.shape[2]]
        seen = allowed[:, None].expand(-1, heads, -1, -1).reshape(sequences * heads, longest, keys.shape[2])
    return torch.zeros(seen.shape, device=seen.device).masked_fill_(~seen, -torch.inf)
