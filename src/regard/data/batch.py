"""A packed batch: sentences end to end, no padding, fixed capacity (ARCHITECTURE idea 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Batch(Protocol):
    """What training counts in a batch of any task."""

    @property
    def tokens(self) -> int:
        """Real tokens, by which speed is told: target tokens where there is a target."""
        ...

    @property
    def room(self) -> int:
        """Tokens there is room for."""
        ...


@dataclass(frozen=True)
class Packed:
    """One side of a batch. ``starts_B[b], lengths_B[b]`` say where sentence *b* lies in ``ids_T``.

    ``ids_T`` has the fixed capacity of the plan. Tokens behind the last sentence belong to none of them: they attend
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
    target shifted left, ending with ``</s>``; ``weight_T`` is 1.0 at real positions, 0.0 behind the last sentence.
    """

    source: Packed
    target: Packed
    labels_T: NDArray[np.int64]
    weight_T: NDArray[np.float32]
    sentences: NDArray[np.int64]
    """Which sentences of the corpus these are, in order."""

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
    """Where in the plan a batch stands: three integers, all that a checkpoint keeps of data."""

    epoch: int = 0
    block: int = 0
    batch: int = 0
