"""What is chosen once, at the first start, by measuring or by what the machine is: steps, batch, paths, threads."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path

import torch

from regard.config import Recipe
from regard.data.batch import Position
from regard.nn import ops
from regard.tasks.teaching import Teaching
from regard.training import budget, measuring, memory, resolved
from regard.training.run import Hooks, validation_interval

Teach = Callable[[Recipe, ops.Path], Teaching]
"""Makes the objective of a recipe, its weights fresh."""
LENGTH = tuple(f"chosen.{name}" for name in ("steps", "validate_every", "costs", "planned", "reviewed"))
"""How long a run is, which follows from what a person asks for; that is what a run is held to."""


@dataclass(frozen=True)
class Chosen:
    """Fixed in ``resolved.toml`` at the first start and reused ever after.

    Args:
        steps: updates; None where the schedule has no end.
        validate_every: steps between validations.
        tokens, accumulate: target tokens of a batch and batches of an update, fitted to memory.
        product, exact: how products are computed while training, and while validating; see ``nn/ops.py``.
        threads: processor threads; sums depend on them in the last bits.
        costs: of a run of so many minutes, what its steps were planned by: the fields of ``budget.Costs``.
        planned, reviewed: once they are planned anew midway, how many they were, and the step behind which.
    """

    steps: int | None
    validate_every: int
    tokens: int
    accumulate: int
    product: ops.Path
    exact: ops.Path
    threads: int
    costs: tuple[float, ...] | None = None
    planned: int | None = None
    reviewed: int | None = None

    def asked(self, recipe: Recipe, threads: int | None) -> Chosen:
        """With what a person says now in the place of what was chosen: only :data:`resolved.ALLOWED` can differ."""
        section = recipe.training
        every, threads = section.validate_every or self.validate_every, threads or self.threads
        found = replace(self, validate_every=every, threads=threads)
        if section.steps is None:
            return found
        return replace(found, steps=section.steps, costs=None, planned=None, reviewed=None)

    def applied(self, recipe: Recipe) -> Recipe:
        """The recipe that ``fit`` follows."""
        fixed = {name: getattr(self, name) for name in ("steps", "validate_every", "tokens", "accumulate")}
        return recipe.model_copy(update={"training": recipe.training.model_copy(update=fixed)})

    @property
    def review(self) -> budget.Review | None:
        """What came of planning anew, if it was done."""
        if self.reviewed is None or self.planned is None or self.steps is None:
            return None
        return budget.Review(self.reviewed, self.planned, self.steps)

    def fields(self) -> dict[str, resolved.Plain]:
        """As they stand in ``resolved.toml``."""
        return {f"chosen.{name}": value for name, value in asdict(self).items()}


def remembered(training: Path, device: torch.device) -> Chosen | None:
    """What an earlier start chose, if there was one."""
    if not (training / resolved.NAME).exists():
        return None
    found = {"chosen.exact": ops.full(str(device)), **resolved.read(training)}  # the first runs did not write it
    return Chosen(**{name: found.get(f"chosen.{name}") for name in Chosen.__dataclass_fields__})  # type: ignore[arg-type]


def fingerprints(teaching: Teaching, device: torch.device) -> dict[str, resolved.Plain]:
    """What a run rests on beside its recipe."""
    return {
        "fingerprint.data": teaching.prepared.fingerprint,
        "fingerprint.tokenizer": teaching.task.assets.sha256,
        "fingerprint.torch": torch.__version__,
        "fingerprint.processor": processor(device),
    }


def processor(device: torch.device) -> str:
    """The name of what computes: another one may give other bits."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def choose(recipe: Recipe, teach: Teach, training: Path, hooks: Hooks, device: torch.device) -> Chosen:
    """Measure and choose; nothing of what is trained meanwhile is kept."""
    product, exact = ops.choose(recipe.training.precision, str(device)), ops.full(str(device))
    tokens, accumulate = _fitted(recipe, teach, product, device)
    fitting = recipe.training.model_copy(update={"tokens": tokens, "accumulate": accumulate})
    teaching = teach(recipe.model_copy(update={"training": fitting}), product)
    steps, every, costs = _length(teaching, training, hooks)
    return Chosen(steps, every, tokens, accumulate, product, exact, torch.get_num_threads(), costs)


def _fitted(recipe: Recipe, teach: Teach, product: ops.Path, device: torch.device) -> tuple[int, int]:
    """Tokens of a batch and batches of an update that fit into memory."""
    section = recipe.training

    def needed(tokens: int) -> int | None:
        smaller = recipe.model_copy(update={"training": section.model_copy(update={"tokens": tokens})})
        teaching = teach(smaller, product)
        batch = next(iter(teaching.batches.iterate(Position())))[0]
        return memory.peak_memory(lambda: teaching.loss(batch).total.backward(), device)

    free = memory.free_memory(device)
    return memory.fitted(section.tokens, section.accumulate, recipe.data.max_tokens, needed, free)


def _length(teaching: Teaching, training: Path, hooks: Hooks) -> tuple[int | None, int, tuple[float, ...] | None]:
    """Steps and steps between validations: as the recipe says, open, from the table by size, or from its minutes.

    The last with what they were planned by.
    """
    recipe = teaching.task.recipe
    section = recipe.training
    if section.steps is not None:
        return section.steps, section.validate_every or validation_interval(section.steps), None
    if section.minutes is None and section.patience is not None:
        return None, section.validate_every or validation_interval(None), None
    hooks.reporter.on_event("measuring how fast this machine is")
    costs = measuring.measure(teaching, teaching.batches, recipe, training, hooks)
    if section.minutes is not None:
        length = budget.length(section.minutes, costs, section)
        return length.steps, length.validate_every, astuple(costs)
    epochs = teaching.epochs
    steps = max(1, round(epochs * teaching.batches.batches_per_epoch / section.accumulate))
    every = section.validate_every or validation_interval(steps)
    expected = steps * costs.step + steps / every * (costs.loss + costs.text) / 2
    hooks.reporter.on_event(f"{steps:,} steps ({epochs} passes over the data) will take about {_readable(expected)}")
    return steps, every, None


def _readable(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
