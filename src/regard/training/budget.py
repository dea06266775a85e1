"""How many steps fit into so many minutes: measured once over discarded work, then fixed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

from regard.config import Recipe, Training
from regard.data.batch import Position
from regard.errors import UsageError
from regard.models import store
from regard.training import checkpoint
from regard.training.build import schedule
from regard.training.files import Files
from regard.training.objective import Feed, Objective
from regard.training.optim import FlatOptimiser
from regard.training.progress import OWN_SCORE, diverged
from regard.training.run import Hooks
from regard.training.update import Updates

_DISCARDED = 30
_COLD = 5
"""Of these the first are not counted: caches fill and kernels are chosen."""
_SHARE = 0.9
"""Of the minutes: three runs of half an hour, planned for 0.95 of it, were 8 per cent slower than measured."""
_MOST, _LEAST = 20, 4
"""Validations, unless the recipe says how often: as many as take a fifth of the time."""
_APART = 50
"""Steps between them at least."""
_PLACE = "measured"
"""The folder of the discarded save, below ``training/``."""


@dataclass(frozen=True)
class Costs:
    """Seconds that the parts of a run take here."""

    step: float
    loss: float
    """A validation of the loss only."""
    text: float
    """A validation that also translates."""
    save: float
    spent: float
    """On measuring; it counts."""


@dataclass(frozen=True)
class Length:
    """What is fixed in ``resolved.toml``."""

    steps: int
    validate_every: int


def measure(objective: Objective, feed: Feed, recipe: Recipe, folder: Path, hooks: Hooks) -> Costs:
    """Time 30 steps, a validation and a save; afterwards the model is as before, bit for bit."""
    _sweep(folder, hooks.files)
    section = recipe.training.model_copy(update={"steps": 10 * _DISCARDED})
    began, optimiser = hooks.clock(), FlatOptimiser(objective.model, section)
    before = {name: tensor.clone() for name, tensor in optimiser.weights_by_name().items()}
    rate = schedule(section, recipe.model.d_model)
    updates = Updates(objective, optimiser, recipe, rate, hooks.reseed)
    batches = feed.iterate(Position())
    try:
        objective.model.train()
        seconds = [
            timed(lambda n=n: updates.make(n, [b for b, _ in islice(batches, section.accumulate)]), hooks)  # type: ignore[misc]
            for n in range(1, _DISCARDED + 1)
        ]
        if not optimiser.finite():
            raise diverged("the weights are not finite any more", _DISCARDED)
        loss, text = _validations(objective, section, hooks)
        save = timed(lambda: _discarded_save(optimiser, folder, hooks), hooks)
    finally:
        for name, tensor in optimiser.weights_by_name().items():
            tensor.copy_(before[name])
        optimiser.zero_gradients()
        objective.model.train()
    return Costs(sum(seconds[_COLD:]) / len(seconds[_COLD:]), loss, text, save, hooks.clock() - began)


def timed(work: Callable[[], object], hooks: Hooks) -> float:
    """Seconds ``work`` takes."""
    began = hooks.clock()
    work()
    return hooks.clock() - began


def _validations(objective: Objective, section: Training, hooks: Hooks) -> tuple[float, float]:
    """Seconds of a validation without and with text, the latter as if the model had learned when to stop."""
    objective.model.eval()
    with torch.no_grad():
        loss = timed(lambda: objective.validate(False), hooks)
        if section.select == "loss":
            return loss, loss
        began = hooks.clock()
        found = objective.validate(True)
        text = hooks.clock() - began
    if found.generated and found.expected and found.expected < found.generated:
        text = loss + max(0.0, text - loss) * found.expected / found.generated
    return loss, text


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


def length(minutes: float, costs: Costs, section: Training) -> Length:
    """The steps that fit into 0.9 of the minutes, with the validations and saves that belong to them.

    Raises:
        UsageError: not even one step fits.
    """
    seconds = _SHARE * 60 * minutes - costs.spent
    if section.validate_every is None:
        count = _MOST
        while count > _LEAST and _beside(count, costs, section) > seconds / 5:
            count -= 1
        steps = math.floor((seconds - _beside(count, costs, section)) / costs.step)
        every = max(1, math.ceil(steps / count), min(steps, _APART))
    else:
        every = section.validate_every
        steps = math.floor(seconds / costs.step)
        while steps > 0 and (cost := _whole(steps, every, costs, section)) > seconds:
            steps = min(steps - 1, math.floor(steps * max(0.0, seconds) / cost))
    if steps < 1:
        least = (costs.spent + _whole(1, every, costs, section)) / 60 / _SHARE
        sentence = f"{minutes:g} minutes are too few here: one step needs {least:.2g} minutes"
        raise UsageError(sentence, "training.minutes")
    return Length(steps, every)


def overrun(minutes: float | None, seconds: float) -> str | None:
    """What to say of a run that took a twentieth longer than its minutes, or more: it is reported, never cut."""
    if minutes is None or seconds < 63 * minutes:
        return None
    return f"training took {seconds / 60:.1f} minutes instead of {minutes:g}: steps were slower than those measured"


def _whole(steps: int, every: int, costs: Costs, section: Training) -> float:
    return steps * costs.step + _beside(math.ceil(steps / every), costs, section)


def _beside(validations: int, costs: Costs, section: Training) -> float:
    """Seconds of so many validations, each with a checkpoint and a model saved, and of the seven snapshots."""
    texts = validations
    if section.select in OWN_SCORE:
        texts = min(validations, validations // 2 + 1)
    elif section.select == "loss":
        texts = 0
    return texts * costs.text + (validations - texts) * costs.loss + (2 * validations + 7) * costs.save
