"""Packed batches: sentences end to end without padding, at a fixed capacity (ARCHITECTURE idea 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Batch(Protocol):
    """The sizes that training needs of any batch."""

    @property
    def tokens(self) -> int:
        """Real tokens, the unit of speed: target tokens where there is a target."""
        ...

    @property
    def room(self) -> int:
        """Tokens there is room for."""
        ...


@dataclass(frozen=True)
class Packed:
    """One side of a batch. ``starts_B[b], lengths_B[b]`` say where sentence *b* lies in ``ids_T``.

    ``ids_T`` has the fixed capacity of the plan. Tokens after the last sentence belong to none of them: they attend
    to nothing and nothing attends to them (their id is 0). Spare sentences have length 0. ``count`` sentences are real;
    they come first.
    """

    ids_T: NDArray[np.int64]
    starts_B: NDArray[np.int64]
    lengths_B: NDArray[np.int64]
    count: int


@dataclass(frozen=True)
class PairBatch:
    """Sentence pairs for teacher forcing [Vaswani17 §3.1]: the decoder reads ``target`` and must predict ``labels_T``.

    ``source`` ends each sentence with ``</s>``; ``target`` begins each with the start symbol; ``labels_T`` is the
    target shifted left, ending with ``</s>``; ``weight_T`` is 1.0 at real positions, 0.0 after the last sentence.
    """

    source: Packed
    target: Packed
    labels_T: NDArray[np.int64]
    weight_T: NDArray[np.float32]
    sentences: NDArray[np.int64]
    """Sentence numbers in the corpus, in order."""

    @property
    def tokens(self) -> int:
        """Real target tokens."""
        return int(self.target.lengths_B.sum())

    @property
    def room(self) -> int:
        """Target tokens there is room for."""
        return len(self.target.ids_T)


@dataclass(frozen=True, order=True)
class Position:
    """Position of a batch in the plan: three integers, all the data state that a checkpoint saves."""

    epoch: int = 0
    block: int = 0
    batch: int = 0


@dataclass(frozen=True)
class Capacity:
    """The fixed shape of every batch: tokens on each side, and slots for sentences."""

    source: int
    target: int
    sentences: int


def capacity_for(tokens: int, source_tokens: int, target_tokens: int, pairs: int, longest: int) -> Capacity:
    """The shape for ``tokens`` target tokens of a corpus with these totals.

    The source side has the corpus's share, rounded up to 64, at least the longest sentence. Half as many slots again as
    an average batch needs: short sentences seldom run out of them.
    """
    ratio = source_tokens / max(1, target_tokens)
    source = 64 * math.ceil(max(tokens * ratio, min(longest, tokens)) / 64)
    slots = 8 * math.ceil(1.5 * tokens * pairs / max(1, target_tokens) / 8)
    return Capacity(source, tokens, max(8, min(tokens, slots)))
