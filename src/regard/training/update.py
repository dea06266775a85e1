"""One update of the weights: a pure function of weights, optimiser state, batches and step number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from regard.config import Recipe
from regard.data.batches.batch import Batch
from regard.system.keys import key
from regard.training import distributed
from regard.training.objective import Objective
from regard.training.optim import FlatOptimiser
from regard.training.schedule import Schedule

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


class Updates:
    """Makes updates; stateless, so nothing needs saving."""

    def __init__(
        self,
        objective: Objective,
        optimiser: FlatOptimiser,
        recipe: Recipe,
        rate: Schedule,
        reseed: Callable[[int], None],
    ) -> None:
        self.objective = objective
        self.optimiser = optimiser
        self.recipe = recipe
        self.rate = rate
        self.reseed = reseed

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
            if distributed.mine(micro):
                self.reseed(key(self.recipe.seed, "dropout", step, micro))
                loss = self.objective.loss(batch)
                loss.total.backward()
                sums += torch.stack([loss.total.detach(), loss.nll.detach(), loss.total.new_tensor(loss.count)])
        distributed.all_reduce_sum(sums)
        distributed.all_reduce_sum(self.optimiser.gradients)
        total, nll, count, norm = torch.cat([sums, self.optimiser.norm().double().reshape(1)]).tolist()
        return [total, nll, max(count, 1.0), norm]
