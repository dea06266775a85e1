"""Sequences whose tags tell them backwards: to see whether a reader learns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from regard.system.keys import generator

PIECES = 14


def drawn(count: int, *numbers: int, longest: int = 6) -> list[np.ndarray]:
    """Sequences of distinct words."""
    random = generator(1, "reverse", *numbers)
    return [random.permutation(np.arange(2, PIECES))[: random.integers(2, longest + 1)] for _ in range(count)]


def right(score_TC: torch.Tensor, read: Sequence[np.ndarray]) -> float:
    """The share of sequences whose tags are all right."""
    parts = np.split(score_TC.argmax(1).numpy(), np.cumsum([len(ids) for ids in read])[:-1])
    return float(np.mean([np.array_equal(part, ids[::-1]) for part, ids in zip(parts, read, strict=True)]))
