"""One update of the weights: a pure function of weights, optimiser state, batches and step number.

Updates made while measuring are kept, so that the run can begin with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch

from regard.config import Recipe
from regard.data.batches.batch import Batch, BatchRange, Position
from regard.nn.dropout import reseed
from regard.system.keys import key
from regard.training.objective import BatchSource, Objective
from regard.training.optim import FlatOptimiser, Schedule, Tensors, schedule
from regard.training.world import World, tree_sum

_NORMS_EVERY = 50
_SUMS = 6
"""Numbers that are summed over shards: loss, negative log-likelihood, count, tokens, room, requests to stop."""


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
    tokens: int
    room: int
    """Of its batches: tokens at most."""
    stop: bool = False
    """Whether a process was asked to stop while it was made."""


def never() -> bool:
    """The default of who asks to stop."""
    return False


@dataclass
class Updates:
    """Makes updates; stateless, so nothing needs saving."""

    objective: Objective
    optimiser: FlatOptimiser
    recipe: Recipe
    rate: Schedule
    should_stop: Callable[[], bool] = never
    """Asked in every step of several processes, so that all of them know of it."""

    def make(self, step: int, batches: Sequence[Batch]) -> Update:
        """Gradient of all batches over the count of the whole step, clipped, applied if finite.

        Args:
            step: its number, from 1.
            batches: those of the shards of this process, as many for each.
        """
        buffers = {name: tensor.clone() for name, tensor in self.optimiser.buffers.items()}
        loss, nll, units, tokens, room, stop, square = self._gradient(step, batches, buffers)
        count = max(units, 1.0)
        norm, loss, nll = math.sqrt(square) / count, loss / count, nll / count
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
        return Update(loss, nll, self.rate(step), norm, applied, norms, round(tokens), round(room), stop > 0)

    def _gradient(self, step: int, batches: Sequence[Batch], buffers: Tensors) -> list[float]:
        """Compute the gradients of the shards of this process, and exchange them and what is summed beside them.

        Returns:
            The sums of all shards, of loss, negative log-likelihood, counts, tokens, room and who asks to stop; and
            the square of the gradient's norm.
        """
        optimiser, world = self.optimiser, self.optimiser.world
        each = len(batches) // len(world.mine)
        sums, averages = [], []
        for number, shard in enumerate(world.mine):
            if number:
                optimiser.restore_buffers(buffers)
            optimiser.begin_shard(number)
            sums.append(self._shard(step, shard * each, batches[number * each : (number + 1) * each]))
            optimiser.end_shard(number)
            averages.append(optimiser.flat_buffers())
        squares = optimiser.exchange_gradients()
        rows = [torch.cat([*parts, one.reshape(1)]) for *parts, one in zip(sums, averages, squares, strict=True)]
        total = tree_sum(world.rows(torch.stack(rows)))
        if self.optimiser.buffers and world.shards > 1:
            optimiser.set_buffers(total[_SUMS:-1] / world.shards)
        return torch.cat([total[:_SUMS], total[-1:]]).tolist()

    def _shard(self, step: int, first: int, batches: Sequence[Batch]) -> torch.Tensor:
        """Accumulate the gradient of a shard; its sums of loss, negative log-likelihood, counts, tokens and room.

        Args:
            step: its number.
            first: the number of its first batch in the step.
            batches: of the shard.
        """
        sums = torch.zeros(3, dtype=torch.float64, device=self.optimiser.weights.device)
        for number, batch in enumerate(batches, first):
            reseed(key(self.recipe.seed, "dropout", step, number))
            loss = self.objective.loss(batch)
            loss.total.backward()
            sums += torch.stack([loss.total.detach(), loss.nll.detach(), loss.total.new_tensor(loss.count)])
        stop = self.optimiser.world.size > 1 and self.should_stop()
        more = [sum(batch.tokens for batch in batches), sum(batch.room for batch in batches), stop]
        return torch.cat([sums, sums.new_tensor(more)])


@dataclass(frozen=True)
class MeasuredStep:
    """A completed step.

    Args:
        update: what it was.
        position: of the next batch.
        seconds: its duration.
    """

    update: Update
    position: Position
    seconds: float


def make(
    updates: Updates, step: int, given: Sequence[tuple[Batch, Position]], began: float, clock: Callable[[], float]
) -> MeasuredStep:
    """Make a step of these batches, each with the position of the next step; its time counts from ``began``."""
    update = updates.make(step, [batch for batch, _ in given])
    return MeasuredStep(update, given[-1][1], clock() - began)


def first_batch(feed: BatchSource) -> Batch:
    """The batch that a run begins with."""
    batch, _ = next(iter(feed.iterate(Position())))
    return batch


def read_steps(
    feed: BatchSource, position: Position, world: World, accumulate: int
) -> Iterator[list[tuple[Batch, Position]]]:
    """What this process reads for each step from a position on: ``accumulate`` batches for each of its shards."""
    if world.shards == 1:
        batches = feed.iterate(position)
    else:
        mine = world.mine
        among = BatchRange(mine.start * accumulate, mine.stop * accumulate, world.shards * accumulate)
        batches = feed.iterate(position, among)
    while True:
        yield list(islice(batches, accumulate * len(world.mine)))


class MeasuredSteps:
    """The first steps of a run, made while measuring.

    Args:
        made: the steps, from the first on.
        optimiser: that made them; its tensors are held until they are given on.
    """

    def __init__(self, made: list[MeasuredStep], optimiser: FlatOptimiser) -> None:
        self.made = made
        self.weights, self.moments = optimiser.weights_by_name(), optimiser.moments_by_name()
        self.averages = optimiser.averages_by_name()

    def exact(self, recipe: Recipe) -> bool:
        """Whether a run of this recipe makes these very steps: its rates are theirs, bit for bit."""
        rate = schedule(recipe.training, recipe.model.d_model)
        return all(rate(step) == made.update.rate for step, made in enumerate(self.made, 1))

    def give(self, optimiser: FlatOptimiser) -> None:
        """Hand the state to a run, once; it is not held afterwards."""
        optimiser.restore(self.weights, self.moments, self.averages)
        self.weights, self.moments, self.averages = {}, {}, {}
