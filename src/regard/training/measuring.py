"""What the parts of a run cost here, in seconds: timed once over its first steps, a validation and a save."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import torch

from regard.config import Recipe
from regard.data.batch import Position
from regard.models import store
from regard.training import checkpoint
from regard.training.budget import Costs
from regard.training.build import schedule
from regard.training.files import Files
from regard.training.kept import Kept, Made, make
from regard.training.objective import Feed, Objective
from regard.training.optim import FlatOptimiser
from regard.training.progress import diverged
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
    objective: Objective, feed: Feed, recipe: Recipe, folder: Path, hooks: Hooks, limit: float, most: int = MOST
) -> tuple[Costs, Kept]:
    """Time some first steps, a validation and a save; the model is trained by that, and what was made is returned.

    Args:
        objective: a task of its own, whose model is fresh.
        feed: batches from any position on.
        recipe: of the run; its steps may be open still.
        folder: the private ``training/`` folder of the run.
        hooks: clock and files.
        limit: seconds it may take, but for a step that takes longer.
        most: steps.
    """
    _sweep(folder, hooks.files)
    began = hooks.clock()

    def spent(share: float) -> bool:
        return hooks.clock() - began >= share * limit

    optimiser = FlatOptimiser(objective.model, recipe.training)
    made = _steps(_updates(objective, optimiser, recipe, hooks), feed, recipe.training.accumulate, most, hooks, spent)
    if not optimiser.finite():
        raise diverged("the weights are not finite any more", len(made))
    text = loss = _Trial(spent, _LOSS, hooks.clock).seconds(objective, False)
    if recipe.training.select != "loss" or recipe.training.minutes is not None:  # the final scores may need it
        text += _Trial(spent, _TEXT, hooks.clock).seconds(objective, True, _TIMES * loss)
    save = timed(lambda: _discarded_save(optimiser, folder, hooks), hooks)
    seconds = [step.seconds for step in made]
    counted = seconds[min(_COLD, len(made) // 2) :]
    return Costs(sum(counted) / len(counted), loss, text, save, hooks.clock() - began), Kept(made, optimiser)


def timed(work: Callable[[], object], hooks: Hooks) -> float:
    """Seconds ``work`` takes."""
    began = hooks.clock()
    work()
    return hooks.clock() - began


def _updates(objective: Objective, optimiser: FlatOptimiser, recipe: Recipe, hooks: Hooks) -> Updates:
    section = recipe.training
    known = section if section.steps is not None else section.model_copy(update={"steps": _OPEN})
    return Updates(objective, optimiser, recipe, schedule(known, recipe.model.d_model), hooks.reseed)


def _steps(
    updates: Updates, feed: Feed, accumulate: int, most: int, hooks: Hooks, spent: Callable[[float], bool]
) -> list[Made]:
    """The first steps, two at least."""
    updates.objective.model.train()
    batches, made = feed.iterate(Position()), list[Made]()
    while len(made) < _FEWEST or (len(made) < most and not spent(_STEPS)):
        began = hooks.clock()
        micro = list(islice(batches, accumulate))
        made.append(make(updates, len(made) + 1, micro, began, hooks.clock))
    return made


class _Enough(Exception):
    """A trial has gone on long enough to know how long all of it takes, or there is no time to begin it."""


class _Trial:
    """Watches a part of a validation, and ends it when the time for it is used up; two pieces of it at least are done.

    Args:
        spent: whether so many shares of all the time are.
        share: after which the part is to end.
        clock: says the seconds.
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
                objective.trial(generate, lambda share: self._done(share, generate))
        except _Enough:
            return self._all(began) if self.points else otherwise
        finally:
            objective.model.train()
        return self.clock() - began if self.points else 0.0

    def _done(self, share: float, generate: bool) -> None:
        if not share:
            if self.spent(1.0):
                raise _Enough
            return
        self.points.append((self.clock(), share))
        written = generate and share >= 1  # what an unlearned model writes beyond that does not count
        if written or (len(self.points) > 1 and self.spent(self.share)):
            raise _Enough

    def _all(self, began: float) -> float:
        """The rest takes as long, share by share, as what lies behind the first: that has the beginning in it."""
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
