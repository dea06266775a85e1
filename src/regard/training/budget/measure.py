"""Measures the cost in seconds of a run's first steps, one validation and one save."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import torch

from regard.config import Recipe
from regard.data.batches.batch import Position
from regard.models import store
from regard.training.budget.budget import Costs
from regard.training.budget.measured_steps import MeasuredStep, MeasuredSteps, make
from regard.training.build import schedule
from regard.training.checkpoints import checkpoint
from regard.training.checkpoints.files import Files
from regard.training.objective import BatchSource, Objective
from regard.training.optim import FlatOptimiser
from regard.training.progress import divergence_error
from regard.training.run import Hooks
from regard.training.update import Updates

MOST = 30
"""Steps that are timed, unless the time for it is used up before."""
_FEWEST = 2
_COLD = 5
"""Of these the first are not counted, of few the first half: caches fill and kernels are chosen."""
_STEPS, _LOSS, _TEXT = 0.5, 0.7, 0.9
"""Shares of the time after which steps, validation and generated text end, the last two at a part."""
_TIMES = 2.0
"""Times a validation of the loss that text takes, where nothing is known of it."""
_OPEN = 10**9
"""Steps, while it is not known how many: the schedule is still in its warm-up, or where it has no end."""
_PLACE = "measured"
"""The folder of the discarded save, below ``training/``."""


def measure(
    objective: Objective, feed: BatchSource, recipe: Recipe, folder: Path, hooks: Hooks, limit: float, most: int = MOST
) -> tuple[Costs, MeasuredSteps]:
    """Time the first steps, a validation and a save; the steps train the model and are returned.

    Args:
        objective: a separate task with a fresh model.
        feed: batches from any position on.
        recipe: of the run; its steps may be open still.
        folder: the private ``training/`` folder of the run.
        hooks: clock and files.
        limit: time limit in seconds; a step in progress may exceed it.
        most: steps.
    """
    _sweep(folder, hooks.files)
    began = hooks.clock()

    def is_over(share: float) -> bool:
        return hooks.clock() - began >= share * limit

    optimiser = FlatOptimiser(objective.model, recipe.training)
    made = _steps(_updates(objective, optimiser, recipe, hooks), feed, recipe.training.accumulate, most, hooks, is_over)
    if not optimiser.finite():
        raise divergence_error("the weights are not finite", len(made))
    text = loss = _Trial(is_over, _LOSS, hooks.clock).seconds(objective, False)
    if recipe.training.select != "loss" or recipe.training.minutes is not None:  # the final scores may need it
        text += _Trial(is_over, _TEXT, hooks.clock).seconds(objective, True, _TIMES * loss)
    save = seconds_of(lambda: _discarded_save(optimiser, folder, hooks), hooks)
    seconds = [step.seconds for step in made]
    counted = seconds[min(_COLD, len(made) // 2) :]
    return Costs(sum(counted) / len(counted), loss, text, save, hooks.clock() - began), MeasuredSteps(made, optimiser)


def seconds_of(work: Callable[[], object], hooks: Hooks) -> float:
    """Seconds ``work`` takes."""
    began = hooks.clock()
    work()
    return hooks.clock() - began


def _updates(objective: Objective, optimiser: FlatOptimiser, recipe: Recipe, hooks: Hooks) -> Updates:
    section = recipe.training
    known = section if section.steps is not None else section.model_copy(update={"steps": _OPEN})
    return Updates(objective, optimiser, recipe, schedule(known, recipe.model.d_model), hooks.reseed)


def _steps(
    updates: Updates, feed: BatchSource, accumulate: int, most: int, hooks: Hooks, spent: Callable[[float], bool]
) -> list[MeasuredStep]:
    """The first steps, two at least."""
    updates.objective.model.train()
    batches, made = feed.iterate(Position()), list[MeasuredStep]()
    while len(made) < _FEWEST or (len(made) < most and not spent(_STEPS)):
        began = hooks.clock()
        micro = list(islice(batches, accumulate))
        made.append(make(updates, len(made) + 1, micro, began, hooks.clock))
    return made


class _Enough(Exception):
    """A trial has gone on long enough to know how long all of it takes, or there is no time to begin it."""


class _Trial:
    """Times a part of a validation and ends it when its time is used up, after at least two pieces.

    Args:
        spent: whether a share of the whole time is used up.
        share: after which the part is to end.
        clock: the time in seconds.
    """

    def __init__(self, spent: Callable[[float], bool], share: float, clock: Callable[[], float]) -> None:
        self.spent, self.share, self.clock = spent, share, clock
        self.points: list[tuple[float, float]] = []

    def seconds(self, objective: Objective, generate: bool, otherwise: float = 0.0) -> float:
        """How long all of it takes: none where there is nothing to do, ``otherwise`` where there is no time at all."""
        began = self.clock()
        objective.model.eval()
        try:
            with torch.no_grad():
                objective.trial(generate, lambda share: self._record_share(share, generate))
        except _Enough:
            return self._all(began) if self.points else otherwise
        finally:
            objective.model.train()
        return self.clock() - began if self.points else 0.0

    def _record_share(self, share: float, generate: bool) -> None:
        if not share:
            if self.spent(1.0):
                raise _Enough
            return
        self.points.append((self.clock(), share))
        written = generate and share >= 1  # longer output of an untrained model does not count
        if written or (len(self.points) > 1 and self.spent(self.share)):
            raise _Enough

    def _all(self, began: float) -> float:
        """Extrapolate from the shares after the first, which includes start-up."""
        (first, share), (last, done) = self.points[0], self.points[-1]
        if done == share:
            return (last - began) / done
        return first - began + (1 - share) * (last - first) / (done - share)


def _discarded_save(optimiser: FlatOptimiser, folder: Path, hooks: Hooks) -> None:
    contents = {
        "weights.safetensors": store.chunks(optimiser.weights_by_name()),
        "optimiser.safetensors": store.chunks(optimiser.moments_by_name()),
    }
    try:
        checkpoint.write_folder(folder / _PLACE, contents, hooks.files)
    finally:
        _sweep(folder, hooks.files)


def _sweep(folder: Path, files: Files) -> None:
    """Remove the discarded save, whole or in parts: a start that was killed while measuring leaves one."""
    for remains in sorted(folder.glob(f"{_PLACE}*")):
        files.remove(remains)
