"""Batches of given pairs."""

from collections.abc import Sequence

import numpy as np

from regard.data.batches.batch import Capacity, Ids, PairBatch, make_pair_batch


def pack(sources: Sequence[Ids], targets: Sequence[Ids], start: int, capacity: Capacity | None = None) -> PairBatch:
    """A batch of sentence pairs, each side's ids ending with ``</s>``; by default just large enough."""
    nothing = np.zeros(0, np.int64)
    sides = [(np.concatenate([nothing, *ids]), np.array([*map(len, ids)], np.int64)) for ids in (sources, targets)]
    capacity = capacity or Capacity(len(sides[0][0]), len(sides[1][0]), len(sources))
    return make_pair_batch(sides[0], sides[1], start, capacity, np.arange(len(sources)))
