"""Layout of a packed batch: sequence boundaries, for attention and positions (ARCHITECTURE idea 1)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import torch
from torch import Tensor

Made = TypeVar("Made")


@dataclass(frozen=True)
class ByTime:
    """Sequences seen by a recurrence: the first token of each, then the second of each, and so on; longest first.

    Args:
        order_N: the sequences that have tokens, longest first.
        live_L: how many of them have a token at each time; on the host, where the recurrence's loop is.
        tokens_R: the axis's index of every token of a sequence, in this order.
        homes_T: for each token of the axis its place in this order; the place after the last if it is of no sequence.
    """

    order_N: Tensor
    live_L: Tensor
    tokens_R: Tensor
    homes_T: Tensor

    def gather(self, x_TD: Tensor) -> Tensor:
        """``x_RD``: the sequences' tokens, time-major."""
        return x_TD.index_select(0, self.tokens_R)

    def back(self, x_RD: Tensor) -> Tensor:
        """``x_TD``: every token in its place again; those of no sequence hold zeros."""
        if len(self.tokens_R) < len(self.homes_T):
            x_RD = torch.cat([x_RD, x_RD.new_zeros(1, x_RD.shape[1])])
        return x_RD.index_select(0, self.homes_T)


class _Once:
    """What parts derive from a batch's layout is computed at the first layer and reused by the others."""

    @cached_property
    def _cache(self) -> dict[Hashable, Any]:
        return {}

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The value of ``key``: made now, or as it was made before."""
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]


@dataclass(frozen=True)
class Sequences(_Once):
    """Sequence *b* is the ``lengths_B[b]`` tokens from ``starts_B[b]`` of an axis of ``size`` tokens.

    Args:
        starts_B, lengths_B: int64, on the device of the tokens. Of fixed capacity; spare sequences have length 0 and
            come last.
        count: real sequences; they come first.
        longest: the longest length (a host number, so that nothing waits for the device).
        size: tokens of the whole axis; those outside of every sequence attend to nothing and are not attended to.
        stride: set if sequence *b* starts at ``b * stride`` and ``longest <= stride``: the rows of a KV cache.
        first_B: position of each sequence's first token, if not 0: in decoding a new token continues a cached text.
    """

    starts_B: Tensor
    lengths_B: Tensor
    count: int
    longest: int
    size: int
    stride: int | None = None
    first_B: Tensor | None = None

    @classmethod
    def end_to_end(cls, lengths: list[int], device: torch.device | str = "cpu") -> Sequences:
        """Sequences that follow each other without gaps, as in training."""
        lengths_B = torch.tensor(lengths, dtype=torch.int64, device=device)
        return cls(lengths_B.cumsum(0) - lengths_B, lengths_B, len(lengths), max(lengths, default=0), sum(lengths))

    @classmethod
    def rows(cls, lengths_B: Tensor, longest: int, stride: int) -> Sequences:
        """Sequences in the rows of a KV cache, row *b* from ``b * stride``; as in decoding."""
        count = len(lengths_B)
        starts_B = torch.arange(count, device=lengths_B.device) * stride
        return cls(starts_B, lengths_B, count, longest, count * stride, stride)

    @classmethod
    def new_tokens(cls, positions_N: Tensor) -> Sequences:
        """One token for each row, at its position in the row's text; as in a step of decoding."""
        count = len(positions_N)
        rows_N = torch.arange(count, device=positions_N.device)
        return cls(rows_N, torch.ones_like(positions_N), count, 1, count, 1, positions_N)

    def moved_to(self, positions_T: Tensor) -> Sequences:
        """The same sequences, their tokens at other positions."""
        moved = replace(self)
        vars(moved)["positions_T"] = positions_T  # where a cached property keeps its value
        return moved

    @cached_property
    def grid_BL(self) -> Tensor:
        """For each real sequence and place in it, the token's index on the axis; any index where there is none."""
        places_L = torch.arange(self.longest, device=self.starts_B.device)
        grid_BL = self.starts_B[: self.count, None] + places_L
        return grid_BL.clamp(max=max(self.size - 1, 0))

    @cached_property
    def real_BL(self) -> Tensor:
        """True where :attr:`grid_BL` names a token of the sequence."""
        places_L = torch.arange(self.longest, device=self.lengths_B.device)
        return places_L < self.lengths_B[: self.count, None]

    @cached_property
    def full(self) -> bool:
        """Whether every real sequence is as long as the longest (then a padded view has no padding)."""
        return bool(self.real_BL.all())

    @cached_property
    def cells_T(self) -> Tensor:
        """For each token its cell in the flattened :attr:`grid_BL`; 0 for a token outside of every sequence."""
        cells_T = torch.zeros(self.size, dtype=torch.int64, device=self.starts_B.device)
        cells = torch.arange(self.count * self.longest, device=cells_T.device).view(self.count, self.longest)
        cells_T[self.grid_BL[self.real_BL]] = cells[self.real_BL]
        return cells_T

    @cached_property
    def rows_T(self) -> Tensor:
        """For each token of a sequence, in order of the axis, the sequence's number; those outside are left out."""
        return torch.repeat_interleave(
            torch.arange(self.count, device=self.starts_B.device), self.lengths_B[: self.count]
        )

    @cached_property
    def inside_T(self) -> Tensor:
        """True for tokens that belong to a sequence."""
        inside_T = torch.zeros(self.size, dtype=torch.bool, device=self.starts_B.device)
        inside_T[self.grid_BL[self.real_BL]] = True
        return inside_T

    @cached_property
    def covers_all_tokens(self) -> bool:
        """Whether every token belongs to a sequence."""
        return bool(self.inside_T.all())

    @cached_property
    def positions_T(self) -> Tensor:
        """Each token's place in its text, from 0; 0 outside."""
        places_BL = torch.arange(self.longest, device=self.starts_B.device).expand(self.count, self.longest)
        if self.first_B is not None:
            places_BL = self.first_B[: self.count, None] + places_BL
        positions_T = torch.zeros(self.size, dtype=torch.int64, device=self.starts_B.device)
        positions_T[self.grid_BL[self.real_BL]] = places_BL[self.real_BL]
        return positions_T

    def runs(self, number_T: Tensor) -> tuple[Sequences, Sequences]:
        """``tokens, runs``: the tokens of each run of equal numbers in a sequence, and the runs of each, end to end.

        A token of number 0 is a run by itself. Sequences stand on the axis in order.
        """
        inside_T = self.inside_T
        same_T = torch.zeros_like(inside_T)
        same_T[1:] = (number_T[1:] == number_T[:-1]) & (number_T[1:] > 0)
        first_T = inside_T & ~(same_T & (self.positions_T > 0))
        starts_R = first_T.nonzero()[:, 0]
        run_X = first_T[inside_T].cumsum(0) - 1
        lengths_R = torch.zeros_like(starts_R).index_add(0, run_X, torch.ones_like(run_X))
        counts_B = starts_R.new_zeros(self.count).index_add(0, self.rows_T, first_T[inside_T].long())
        longest = int(lengths_R.max()) if len(lengths_R) else 0
        runs = Sequences.end_to_end(counts_B.tolist(), number_T.device)
        return Sequences(starts_R, lengths_R, len(starts_R), longest, self.size), runs

    @cached_property
    def by_time(self) -> ByTime:
        """The time-major view that a recurrence needs: one gather in, one out."""
        lengths_B = self.lengths_B[: self.count]
        order = lengths_B.argsort(descending=True, stable=True)
        order_N = order[lengths_B[order] > 0]
        places_L = torch.arange(self.longest, device=order.device)
        real_LN = places_L[:, None] < lengths_B[order_N]
        tokens_R = (self.starts_B[order_N] + places_L[:, None])[real_LN]
        homes_T = torch.full((self.size,), len(tokens_R), device=order.device)
        homes_T[tokens_R] = torch.arange(len(tokens_R), device=order.device)
        return ByTime(order_N, real_LN.sum(1).cpu(), tokens_R, homes_T)


@dataclass(frozen=True)
class Layout(_Once):
    """Which queries attend to which keys: sequence *b* of the queries to sequence *b* of the keys, and to nothing else.

    Encoder self-attention: source, source. Decoder self-attention: target, target. Encoder-decoder attention: target,
    source. While decoding a row's single query attends to the row's keys in an arena.
    """

    queries: Sequences
    keys: Sequences

    def __post_init__(self) -> None:
        if self.queries.count != self.keys.count:
            raise ValueError(f"{self.queries.count} sequences of queries but {self.keys.count} of keys")

    def every_query_has_keys(self, causal: bool) -> bool:
        """Whether no query would attend to nothing: to no key at all, or under ``causal`` to later ones only."""
        return self.once(("every query has keys", causal), lambda: not bool(self._alone_B(causal).any()))

    def _alone_B(self, causal: bool) -> Tensor:
        queries_B, keys_B = (side.lengths_B[: side.count] for side in (self.queries, self.keys))
        return (queries_B > keys_B) if causal else (queries_B > 0) & (keys_B == 0)

    def allowed_BLM(self, causal: bool) -> Tensor:
        """True where query *l* of sequence *b* may attend to key *m*.

        Under ``causal`` the last query aligns with the last key, so a query sees the keys up to its own place
        [Vaswani17 §3.2.3]; one query of a decoding step thus sees all keys of its row.
        """
        real_BM = self.keys.real_BL
        allowed_BLM = real_BM[:, None, :].expand(-1, self.queries.longest, -1)
        if causal:
            count = self.queries.count
            first_B = (self.keys.lengths_B - self.queries.lengths_B)[:count]
            places_L = torch.arange(self.queries.longest, device=real_BM.device)
            places_M = torch.arange(self.keys.longest, device=real_BM.device)
            allowed_BLM = allowed_BLM & (places_M <= (first_B[:, None] + places_L)[:, :, None])
        return allowed_BLM
