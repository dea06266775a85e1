"""Steps that were made before their run had a plan: what each was, and the weights and moments behind the last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from regard.config import Recipe
from regard.data.batch import Batch, Position
from regard.training.build import schedule
from regard.training.optim import FlatOptimiser
from regard.training.update import Update, Updates

Tensors = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Made:
    """A step that is made.

    Args:
        update: what it was.
        tokens, room: of its batches, real and at most.
        position: of the next batch.
        seconds: that it took.
    """

    update: Update
    tokens: int
    room: int
    position: Position
    seconds: float


def make(
    updates: Updates, step: int, micro: Sequence[tuple[Batch, Position]], began: float, clock: Callable[[], float]
) -> Made:
    """Make a step of these micro-batches, each with the position of the next one; its time counts from ``began``."""
    batches = [batch for batch, _ in micro]
    update = updates.make(step, batches)
    tokens, room = sum(batch.tokens for batch in batches), sum(batch.room for batch in batches)
    return Made(update, tokens, room, micro[-1][1], clock() - began)


class Kept:
    """The first steps of a run, made while it was measured.

    Args:
        made: the steps, from the first on.
        optimiser: that made them; its tensors are held until they are given on.
    """

    def __init__(self, made: list[Made], optimiser: FlatOptimiser) -> None:
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
        """Let a run go on from here, once; what is given is held no longer."""
        optimiser.restore(*self._tensors)
        self._tensors.clear()
