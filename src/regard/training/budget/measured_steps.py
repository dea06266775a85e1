"""Training steps made while measuring, kept so that the run can reuse them: updates, weights and moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from regard.config import Recipe
from regard.data.batches.batch import Batch, Position
from regard.training.build import schedule
from regard.training.optim import FlatOptimiser
from regard.training.update import Update, Updates

Tensors = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class MeasuredStep:
    """A completed step.

    Args:
        update: what it was.
        tokens, room: of its batches, real and at most.
        position: of the next batch.
        seconds: its duration.
    """

    update: Update
    tokens: int
    room: int
    position: Position
    seconds: float


def make(
    updates: Updates, step: int, micro: Sequence[tuple[Batch, Position]], began: float, clock: Callable[[], float]
) -> MeasuredStep:
    """Make a step of these micro-batches, each with the position of the next one; its time counts from ``began``."""
    batches = [batch for batch, _ in micro]
    update = updates.make(step, batches)
    tokens, room = sum(batch.tokens for batch in batches), sum(batch.room for batch in batches)
    return MeasuredStep(update, tokens, room, micro[-1][1], clock() - began)


class MeasuredSteps:
    """The first steps of a run, made while measuring.

    Args:
        made: the steps, from the first on.
        optimiser: that made them; its tensors are held until they are given on.
    """

    def __init__(self, made: list[MeasuredStep], optimiser: FlatOptimiser) -> None:
        self.made = made
        self._tensors: list[Tensors] = [
            optimiser.weights_by_name(),
            optimiser.moments_by_name(),
            optimiser.averages_by_name(),
        ]

    def exact(self, recipe: Recipe) -> bool:
        """Whether a run of this recipe makes these very steps: its rates are theirs, bit for bit."""
        rate = schedule(recipe.training, recipe.model.d_model)
        return all(rate(step) == made.update.rate for step, made in enumerate(self.made, 1))

    def give(self, optimiser: FlatOptimiser) -> None:
        """Hand the state to a run, once; it is not held afterwards."""
        optimiser.restore(*self._tensors)
        self._tensors.clear()
