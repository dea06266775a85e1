"""Batches from any position on, for ever: a plan, and what makes a batch of the sentences it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.data.batch import Batch, Position
from regard.data.plan import Plan
from regard.data.prefetch import ahead

Made = TypeVar("Made", bound=Batch)
Make = Callable[[Position, NDArray[np.int64]], Made]
"""A pure function of a position and the sentences that stand there."""


class Feed(Generic[Made]):
    """The batch at any position is a pure function of the prepared data, the recipe and the position.

    Args:
        plan: which sentences stand in which batch.
        make: gathers and packs them.
        fingerprint: changes when the data, or the plan, does.
        tokens: of an epoch, about; those that the plan packs by.
        prefetch: batches made in advance in the background; 0: none.
    """

    def __init__(self, plan: Plan, make: Make[Made], fingerprint: str, tokens: float, prefetch: int = 2) -> None:
        self.plan, self._make, self.fingerprint = plan, make, fingerprint
        self._tokens, self._prefetch = tokens, prefetch

    @property
    def batches_per_epoch(self) -> float:
        """About how many batches an epoch has: exact but for the gaps (under 1 %)."""
        return self._tokens / self.plan.capacity.target

    def iterate(self, position: Position | None = None) -> Iterator[tuple[Made, Position]]:
        """Batches from a position on, without end, each with the position of the one behind it."""
        made = self._made(position or Position())
        return ahead(made, self._prefetch) if self._prefetch else made

    def _made(self, position: Position) -> Iterator[tuple[Made, Position]]:
        for place, sentences_B in self.plan.batches(position):
            yield self._make(place, sentences_B), self.plan.after(place)
