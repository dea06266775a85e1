"""What the parts of a run cost here, in seconds: timed once over discarded work."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import torch

from regard.config import Recipe, Training
from regard.data.batch import Position
from regard.models import store
from regard.training import checkpoint
from regard.training.budget import Costs
from regard.training.build import schedule
from regard.training.files import Files
from regard.training.objective import Feed, Objective
from regard.training.optim import FlatOptimiser
from regard.training.progress import diverged
from regard.training.run import Hooks
from regard.training.update import Updates

_DISCARDED = 30
_COLD = 5
"""Of these the first are not counted: caches fill and kernels are chosen."""
_PLACE = "measured"
"""The folder of the discarded save, below ``training/``."""


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
