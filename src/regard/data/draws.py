"""Which sentences an epoch holds, in which order: a pure function of (seed, epoch)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.errors import UsageError
from regard.keys import generator


class Draws:
    """Every sentence once an epoch; or, of weighted corpora, a fixed number of draws.

    A weighted corpus gives its share of each epoch from shuffled passes over it: no sentence comes a third time before
    every other of its corpus came a second time.

    Args:
        sizes: sentences of each corpus; their numbers follow each other.
        seed: of the shuffling.
        weights: one for each corpus; empty: by size.
        epoch: draws of an epoch; 0: as many as there are sentences.
    """

    def __init__(self, sizes: Sequence[int], seed: int, weights: Sequence[float] = (), epoch: int = 0) -> None:
        refuse_weights(weights, len(sizes))
        self.sizes, self.seed = tuple(sizes), seed
        self.epoch = epoch or sum(sizes)
        self._whole = not weights and self.epoch == sum(sizes)
        present = [weight if size else 0 for weight, size in zip(weights or sizes, sizes, strict=True)]
        if not sum(present):
            raise UsageError("no corpus with a weight above zero holds a sentence", "data.weights")
        self._shares = _shares(self.epoch, present)

    def of(self, epoch: int) -> NDArray[np.int64]:
        """The sentences of an epoch, shuffled."""
        shuffle = generator(self.seed, "shuffle", epoch)
        if self._whole:
            return shuffle.permutation(sum(self.sizes))
        first, parts = 0, []
        for number, (size, share) in enumerate(zip(self.sizes, self._shares, strict=True)):
            if share:
                parts.append(first + self._passes(number, size, epoch * share, share))
            first += size
        return shuffle.permutation(np.concatenate(parts))

    def _passes(self, corpus: int, size: int, begin: int, count: int) -> NDArray[np.int64]:
        """``count`` sentences from draw ``begin`` on of the endless row of shuffled passes over one corpus."""
        first, last = begin // size, (begin + count - 1) // size
        passes = [generator(self.seed, "pass", corpus, turn).permutation(size) for turn in range(first, last + 1)]
        return np.concatenate(passes)[begin - first * size :][:count]


def refuse_weights(weights: Sequence[float], corpora: int) -> None:
    """Raise a UsageError unless there is one weight for each corpus, or none at all, and something to draw from."""
    if weights and len(weights) != corpora:
        raise UsageError(f"{len(weights)} weights for {corpora} corpora; give one for each", "data.weights")
    if weights and (min(weights) < 0 or sum(weights) <= 0):
        raise UsageError("weights must not be negative, nor all be zero", "data.weights")


def _shares(total: int, weights: Sequence[float]) -> list[int]:
    """``total`` shared out by weight in whole numbers, the largest remainders rounded up."""
    exact = np.array(weights, dtype=np.float64) / sum(weights) * total
    shares = np.floor(exact).astype(np.int64)
    shares[np.argsort(shares - exact, kind="stable")[: total - int(shares.sum())]] += 1
    return [int(share) for share in shares]
