"""The fixed shape of every batch of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass


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
