"""One update of the weights: a pure function of weights, optimiser state, batches and step number.

Updates made while measuring are kept, so that the run can begin with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from regard.config import Recipe
from regard.data.batches.batch import Batch, Position
from regard.system.keys import key
from regard.training.objective import Objective
from regard.training.optim import FlatOptimiser, Schedule, schedule

_NORMS_EVERY = 50


@dataclass(frozen=True)
class Update:
    """Result of one update; loss and nll are means over the units of all its micro-batches."""

    loss: float
    nll: float
    rate: float
    norm: float
    applied: bool
    """False where the loss, the gradient or a buffer was not finite: weights and buffers are then as before."""
    norms: dict[str, float] | None


@dataclass
class Updates:
    """Makes updates; stateless, so nothing needs saving."""

    objective: Objective
    optimiser: FlatOptimiser
    recipe: Recipe
    rate: Schedule
    reseed: Callable[[int], None]

    def make(self, step: int, batches: Sequence[Batch]) -> Update:
        """Gradient of all micro-batches over the count of the whole step, clipped, applied if finite."""
        buffers = self.optimiser.copy_buffers()
        loss, nll, count, norm = self._gradient(step, batches)
        norm, loss, nll = norm / count, loss / count, nll / count
        norms = None
        if step % _NORMS_EVERY == 0:
            norms = {layer: value / count for layer, value in self.optimiser.norms().items()}
        applied = math.isfinite(norm) and math.isfinite(loss) and self.optimiser.buffers_finite()
        if applied:
            clip = self.recipe.training.clip
            clipping = clip / norm if clip and norm > clip else 1.0
            self.optimiser.update(self.rate(step), clipping / count)
        else:
            self.optimiser.restore_buffers(buffers)
        return Update(loss, nll, self.rate(step), norm, applied, norms)

    def _gradient(self, step: int, batches: Sequence[Batch]) -> list[float]:
        """Accumulate the gradient; the sums of loss, negative log-likelihood and counts, and the gradient's norm."""
        self.optimiser.zero_gradients()
        sums = torch.zeros(3, dtype=torch.float64, device=self.optimiser.weights.device)
        for micro, batch in enumerate(batches):
            self.reseed(key(self.recipe.seed, "dropout", step, micro))
            loss = self.objective.loss(batch)
            loss.total.backward()
            sums += torch.stack([loss.total.detach(), loss.nll.detach(), loss.total.new_tensor(loss.count)])
        total, nll, count, norm = torch.cat([sums, self.optimiser.norm().double().reshape(1)]).tolist()
        return [total, nll, max(count, 1.0), norm]


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
        self._tensors = [optimiser.weights_by_name(), optimiser.moments_by_name(), optimiser.averages_by_name()]

    def exact(self, recipe: Recipe) -> bool:
        """Whether a run of this recipe makes these very steps: its rates are theirs, bit for bit."""
        rate = schedule(recipe.training, recipe.model.d_model)
        return all(rate(step) == made.update.rate for step, made in enumerate(self.made, 1))

    def give(self, optimiser: FlatOptimiser) -> None:
        """Hand the state to a run, once; it is not held afterwards."""
        optimiser.restore(*self._tensors)
        self._tensors.clear()
