"""Settings resolved once, at the first start, by measurement or from the machine: steps, batch, precision, threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field, PositiveInt, TypeAdapter, ValidationError
from torch import nn

from regard.config import Recipe, Training
from regard.models.store import named_tensors
from regard.nn import ops
from regard.runs.workers.group import WorkerGroup, plain
from regard.system import kernels
from regard.system.errors import Damaged, Option, RegardError, UsageError
from regard.system.keys import key
from regard.system.processor import kind as processor_kind
from regard.system.processor import usable_cores
from regard.tasks.training.base import PreparedData, ProductPaths, TrainingJob, TrainingTask
from regard.text.counts import counted
from regard.training import budget, measure
from regard.training.checkpoints import resolved
from regard.training.trainer import Hooks, snapshot_steps, validation_interval
from regard.training.update import MeasuredSteps, first_batch

Teach = Callable[[Recipe, ProductPaths, bool], TrainingTask]
"""Makes the objective of a recipe, its weights fresh; and whether there will be another one."""
LENGTH = tuple(f"chosen.{name}" for name in ("steps", "validate_every", "costs", "planned", "reviewed", "select"))
"""Fields of a run's length; they follow from the options, which are checked instead."""
_PATIENCE = 30.0
"""Most seconds of measuring without a minutes budget, where it only predicts the run's duration."""
_ENOUGH = 10
"""Steps to measure by; where they are the run's own, they can be kept."""


SHARD, SMALL_SHARD = 2048, 384
"""Target tokens that a shard has at least, where the recipe does not say how many shards there are.

One process then takes 1 to 9 % longer for a batch in shards than for a whole one, by processor; with fewer tokens more
(docs/scaling.md). Two shards may be smaller where there are two cores: two processes make such a step alone in 0.6 to
0.9 of the time of one, and beside other programs in no more.
"""
_MOST_TIMED = 2048
"""Target tokens at most of a step by which numbers of threads are timed."""
_WORTH_THREADS = 0.1
"""Share by which more threads must be faster than one to be taken."""


@dataclass(frozen=True)
class ResolvedSettings:
    """Fixed in ``resolved.toml`` at the first start and reused afterwards.

    Args:
        steps: updates; None if the schedule has no end.
        validate_every: steps between validations.
        tokens, accumulate: target tokens of a batch and batches of an update, fitted to memory.
        shards: parts of each batch, which processes divide.
        product, exact: how products are computed while training, and while validating; see ``nn/ops.py``.
        threads: processor threads; sums depend on them in the last bits.
        measured: seconds of a step by each path, from which these were chosen, and the processor.
        costs: of a ``--minutes`` run, the measured costs: the fields of ``budget.Costs``.
        planned, reviewed: after re-planning at half-time, the first number of steps, and the step of re-planning.
        select: selection metric, if the minutes leave no time for the recipe's own.
    """

    steps: PositiveInt | None
    validate_every: PositiveInt
    tokens: PositiveInt
    accumulate: PositiveInt
    product: ops.Path
    exact: ops.Path
    threads: PositiveInt
    shards: PositiveInt = 1
    measured: str | None = None
    costs: Annotated[tuple[float, ...], Field(min_length=5, max_length=6)] | None = None
    planned: PositiveInt | None = None
    reviewed: PositiveInt | None = None
    select: str | None = None

    @staticmethod
    def of(values: Mapping[str, object]) -> ResolvedSettings:
        """The settings of plain values.

        Raises:
            ValidationError: a value does not fit.
        """
        return TypeAdapter(ResolvedSettings).validate_python(values)

    def override(self, recipe: Recipe, threads: int | None) -> ResolvedSettings:
        """These settings overridden by the current options: only :data:`resolved.ALLOWED` can differ."""
        section = recipe.training
        every, threads = section.validate_every or self.validate_every, threads or self.threads
        product = self.product if section.product == "auto" else section.product  # another one is refused
        found = replace(self, validate_every=every, threads=threads, product=product)
        if section.steps is None:
            return found
        return replace(found, steps=section.steps, costs=None, planned=None, reviewed=None, select=None)

    def apply(self, recipe: Recipe) -> Recipe:
        """The recipe that ``fit`` follows."""
        names = "steps", "validate_every", "tokens", "accumulate", "shards"
        fixed = {name: getattr(self, name) for name in names}
        if self.select and recipe.training.select == "auto":
            fixed["select"] = self.select
        return with_training(recipe, **fixed)

    @property
    def paths(self) -> ProductPaths:
        """How products are computed."""
        return ProductPaths(self.product, self.exact)

    @property
    def parts(self) -> budget.Costs | None:
        """The measured costs by their names."""
        return budget.Costs(*self.costs) if self.costs else None

    @property
    def review(self) -> budget.Replanning | None:
        """The result of re-planning, if it was done."""
        if self.reviewed is None or self.planned is None or self.steps is None:
            return None
        return budget.Replanning(self.reviewed, self.planned, self.steps)

    def fields(self) -> dict[str, resolved.Plain]:
        """The fields as in ``resolved.toml``."""
        return {f"chosen.{name}": value for name, value in asdict(self).items()}


def with_training(recipe: Recipe, **fixed: object) -> Recipe:
    """The recipe with other values in its section ``training``."""
    return recipe.model_copy(update={"training": recipe.training.model_copy(update=fixed)})


def load_settings(training: Path, device: torch.device) -> ResolvedSettings | None:
    """The settings of an earlier start, if there was one."""
    if not (training / resolved.NAME).exists():
        return None
    # the first runs did not write how validations are computed, nor shards
    found = {"chosen.exact": ops.full(str(device)), "chosen.shards": 1, **resolved.read_fields(training)}
    values = {name: found.get(f"chosen.{name}") for name in ResolvedSettings.__dataclass_fields__}
    if "numpy" in (values["product"], values["exact"]):
        message = f"NumPy multiplied the matrices of this run; begin anew ({Option('resume', 'never')})"
        raise RegardError(message, str(training / resolved.NAME))
    try:
        return ResolvedSettings.of(values)
    except ValidationError as error:
        first = error.errors()[0]
        what = f"chosen.{first['loc'][0]}: {first['msg']}"
        raise Damaged(f"is damaged: {what:.80}", str(training / resolved.NAME)) from None


def fingerprints(teaching: TrainingTask, device: torch.device) -> dict[str, resolved.Plain]:
    """Fingerprints of what a run depends on besides its recipe."""
    return {
        "fingerprint.data": teaching.prepared.fingerprint,
        "fingerprint.tokenizer": teaching.task.assets.sha256,
        "fingerprint.torch": torch.__version__,
        "fingerprint.processor": processor(device),
        "fingerprint.kernels": kernels.in_use() if device.type == "cpu" else "none",
    }


def processor(device: torch.device) -> str:
    """The kind of what computes: another one may give other bits."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else processor_kind()


class Teacher:
    """Makes the training tasks of a job on its data, one after the other, each with the same fresh weights.

    They share one model: where the next one is made, the one before is of no use any more.

    Args:
        job: its weights are drawn from the seed, or a pretrained model's.
        prepared: the data.
        device: where the model is.
    """

    def __init__(self, job: TrainingJob, prepared: PreparedData, device: torch.device) -> None:
        self.job, self.prepared, self.device, self.assets = job, prepared, device, job.assets(prepared)
        self._model: nn.Module | None = None
        self._fresh: dict[str, torch.Tensor] = {}

    def __call__(self, recipe: Recipe, paths: ProductPaths, again: bool = False) -> TrainingTask:
        """The task of a recipe, its products computed by these paths.

        Args:
            recipe, paths: of the task.
            again: keep a copy of the weights for the next task; else that one's model is built anew, if there is one.
        """
        if self._model is None:
            model = self.job.task.build(recipe, self.assets.sizes, key(recipe.seed, "weights"))
            self.job.begin(model, self.assets)
            self.job.fit_fresh(self.job.task(recipe, self.assets, model), self.prepared)
            model = model.to(self.device)
            self._fresh = {name: one.detach().clone() for name, one in named_tensors(model).items()} if again else {}
        else:
            model = self._model.train()
            for name, one in named_tensors(model).items():
                one.data, one.grad = self._fresh[name].clone() if again else self._fresh.pop(name), None
        self._model = model if again else None
        return self.job.teach(self.job.task(recipe, self.assets, model), self.prepared, paths)


def shards_of(recipe: Recipe, device: torch.device, threads: int | None = None) -> int:
    """The shards of a step where the recipe leaves them open: a function of the recipe, not of what is free.

    As many as leave each :data:`SHARD` target tokens, so that one process computes them nearly as fast as one batch;
    two of :data:`SMALL_SHARD` where there are two cores, unless a number of threads is asked for.
    """
    section = recipe.training
    if section.shards or device.type != "cpu":
        return section.shards or 1
    alone = threads is not None or usable_cores() == 1
    least = {2: SHARD if alone else SMALL_SHARD}
    longest = recipe.data.max_tokens
    return max(n for n in (1, 2, 4, 8) if n == 1 or section.tokens >= n * max(least.get(n, SHARD), longest))


def choose(
    recipe: Recipe,
    teach: Teach,
    training: Path,
    hooks: Hooks,
    device: torch.device,
    group: WorkerGroup,
    most_threads: int = 1,
) -> tuple[ResolvedSettings, MeasuredSteps | None]:
    """Measure and choose settings; also returns the steps made while measuring if they equal the run's to the bit.

    Args:
        recipe: of the run, its shards set.
        teach: makes its training task.
        training: the private folder of the run.
        hooks: clock, files and reporter.
        device: where it trains.
        group: the processes that make the measured steps.
        most_threads: of this process; where it is more than one, it is measured whether they are worth it.
    """
    paths, measured = _choose_paths(recipe, teach, hooks, device)
    if most_threads > 1:
        torch.set_num_threads(_choose_threads(recipe, teach, paths, hooks, most_threads))
    tokens, accumulate = _fit_batch(recipe, teach, paths, device)
    teaching = teach(with_training(recipe, tokens=tokens, accumulate=accumulate), paths, False)
    plan = _plan(_Measuring(teaching, training, hooks, group))
    chosen = ResolvedSettings(
        steps=plan.steps,
        validate_every=plan.validate_every,
        tokens=tokens,
        accumulate=accumulate,
        product=paths.training,
        exact=paths.exact,
        threads=torch.get_num_threads(),
        shards=recipe.training.shards or 1,
        measured=measured,
        costs=astuple(plan.costs) if plan.costs else None,
        select=plan.select,
    )
    return chosen, plan.kept


def _choose_paths(recipe: Recipe, teach: Teach, hooks: Hooks, device: torch.device) -> tuple[ProductPaths, str | None]:
    """How products are computed while training and while validating, and what was measured; says so in a line.

    On a CPU whole steps of the model are timed: what a processor's flags promise, its products need not keep.
    """
    section, full = recipe.training, ops.full_paths(str(device))
    if section.product != "auto":
        if section.product == "onednn" and section.product not in full:
            raise UsageError("'onednn' is for processors whose oneDNN computes in full precision", "training.product")
        exact = section.product if section.product in full else ops.full(str(device))
        return ProductPaths(section.product, exact), None
    among = ops.paths(section.precision, str(device))
    paths = among if len(among) > 1 else full  # of two or more, the paths of full precision are among them
    if len(paths) == 1:
        return ProductPaths(among[0], full[0]), None
    fitting, teaching = _timing_task(recipe, teach, ProductPaths(among[0], full[0]))
    batch = first_batch(teaching.batches)

    def fastest(seconds: Mapping[ops.Path, float]) -> ProductPaths:
        product = measure.fastest(seconds, among) if len(among) > 1 else among[0]
        return ProductPaths(product, measure.fastest(seconds, full, measure.SLIGHT))

    ways = {path: partial(teaching.use, ProductPaths(path, path)) for path in paths}
    # With one thread only its own time counts; with more, that of a clock.
    clock = hooks.processor_clock if torch.get_num_threads() == 1 else hooks.clock
    hooks.reporter.on_event("measuring how this processor multiplies fastest")
    seconds, chosen = measure.time_ways(teaching, ways, batch, fitting, fastest, hooks, clock)
    taken = ", ".join(f"{path} {seconds[path]:.3f} s" for path in paths)
    agreed = "" if chosen else "; no two rounds agreed, so the processor's kind decides"
    chosen = chosen or ProductPaths(ops.choose(section.precision, str(device)), ops.full(str(device)))
    measured = f"a step of {batch.tokens:,} tokens: {taken}{agreed} ({processor_kind()})"
    hooks.reporter.on_event(f"products: {chosen.training}; {measured}")
    return chosen, measured


def _choose_threads(recipe: Recipe, teach: Teach, paths: ProductPaths, hooks: Hooks, most: int) -> int:
    """One thread, unless so many make a step of the run faster by more than :data:`_WORTH_THREADS`.

    Threads of a process meet a thousand times a step, so that beside another program they cost more than they give.
    Whoever names the product wants nothing to depend on a timing: then it is one thread, untimed.
    """
    if recipe.training.product != "auto":
        return 1
    tokens = min(recipe.training.tokens, max(recipe.data.max_tokens, _MOST_TIMED))
    timed = with_training(recipe, tokens=tokens)
    teaching = teach(timed, paths, True)
    batch = first_batch(teaching.batches)
    ways = {count: partial(torch.set_num_threads, count) for count in (1, most)}

    def enough(seconds: Mapping[int, float]) -> int:
        return measure.fastest(seconds, (1, most), _WORTH_THREADS)

    seconds, chosen = measure.time_ways(teaching, ways, batch, timed, enough, hooks, hooks.clock)
    chosen = chosen or 1
    told = ", ".join(f"{counted(count, 'thread')} {seconds[count]:.3f} s" for count in ways)
    hooks.reporter.on_event(f"{counted(chosen, 'thread')}; a step of {batch.tokens:,} tokens: {told}")
    return chosen


def _timing_task(recipe: Recipe, teach: Teach, paths: ProductPaths) -> tuple[Recipe, TrainingTask]:
    """The recipe and the training task by whose step paths are timed: that of a shard, or of fewer tokens."""

    def made(most: int) -> tuple[Recipe, TrainingTask]:
        tokens = min(recipe.training.shard_tokens, max(recipe.data.max_tokens, most))
        fitting = with_training(recipe, tokens=tokens, shards=1)
        return fitting, teach(fitting, paths, True)

    most = measure.timed_tokens(0)
    found = made(most)
    fewer = measure.timed_tokens(sum(one.numel() for one in found[1].model.parameters()))
    return found if fewer == most else made(fewer)


def _fit_batch(recipe: Recipe, teach: Teach, paths: ProductPaths, device: torch.device) -> tuple[int, int]:
    """Tokens of a batch and batches of an update that fit into memory."""
    section = recipe.training

    def peak_bytes(tokens: int) -> int | None:
        teaching = teach(with_training(recipe, tokens=tokens, shards=1), paths, True)
        batch = first_batch(teaching.batches)
        return measure.peak_memory(lambda: teaching.loss(batch).total.backward(), device)

    free, least = measure.free_memory(device), recipe.data.max_tokens
    tokens, accumulate = measure.fit_batch_to_memory(section.shard_tokens, section.accumulate, least, peak_bytes, free)
    return section.tokens if tokens == section.shard_tokens else tokens * (section.shards or 1), accumulate


@dataclass(frozen=True)
class _Plan:
    """The length of a run, its measured costs, and the steps made while measuring."""

    steps: int | None
    validate_every: int
    costs: budget.Costs | None = None
    select: str | None = None
    kept: MeasuredSteps | None = None


@dataclass(frozen=True)
class _Measuring:
    """What a run's first steps are measured with.

    Args:
        teaching: with a fresh model.
        training: the private folder of the run.
        hooks: clock, files and reporter.
        group: the processes that make the steps.
    """

    teaching: TrainingTask
    training: Path
    hooks: Hooks
    group: WorkerGroup

    def measure(self, recipe: Recipe, limit: float, most: int = measure.MOST) -> tuple[budget.Costs, MeasuredSteps]:
        """Make the first steps in all processes, and time them and the rest."""
        teaching, world = self.teaching, self.group.world
        self.group.say("measure", recipe=plain(recipe), paths=asdict(teaching.paths), most=most)
        return measure.measure(teaching, teaching.batches, recipe, self.training, self.hooks, limit, most, world)


def _plan(measuring: _Measuring) -> _Plan:
    """Steps and steps between validations: as the recipe says, open, from its minutes, or from the table by size."""
    section, tell = measuring.teaching.task.recipe.training, measuring.hooks.reporter.on_event
    if section.steps is not None or (section.minutes is None and section.patience is not None):
        return _Plan(section.steps, validation_interval(section))
    tell("measuring how fast this machine is")
    return _of_table(measuring, tell) if section.minutes is None else _of_minutes(section.minutes, measuring, tell)


def _of_minutes(minutes: float, measuring: _Measuring, tell: Callable[[str], None]) -> _Plan:
    """As many steps as fit, including the measured ones if a run of that length makes the same, else without."""
    recipe = measuring.teaching.task.recipe
    found, made = measuring.measure(recipe, budget.MEASURING * 60 * minutes)
    without = replace(found, final=measuring.teaching.final_seconds(found.loss, found.text))
    costs = replace(without, spent=without.spent - sum(step.seconds for step in made.made))
    length = budget.length(minutes, costs, recipe.training)
    kept = _same_steps(made, with_training(recipe, steps=length.steps, validate_every=length.validate_every))
    if kept is None:
        costs, length = without, budget.length(minutes, without, recipe.training)
    if warning := budget.poor(minutes, costs, length):
        tell(warning)
    return _Plan(length.steps, length.validate_every, costs, length.select, kept)


def _of_table(measuring: _Measuring, tell: Callable[[str], None]) -> _Plan:
    """As many steps as the default passes over the data; reports the predicted duration."""
    teaching, recipe = measuring.teaching, measuring.teaching.task.recipe
    batches = teaching.batches.batches_per_epoch / (recipe.training.shards or 1)
    steps = max(1, round(teaching.epochs * batches / recipe.training.accumulate))
    every = validation_interval(with_training(recipe, steps=steps).training)
    known = with_training(recipe, steps=steps, validate_every=every)
    undisturbed = first_event(known.training) - 1
    most = undisturbed if _ENOUGH <= undisturbed < measure.MOST else measure.MOST
    costs, made = measuring.measure(known, _PATIENCE, most)
    expected = steps * costs.step + steps / every * (costs.loss + costs.text) / 2
    time = counted(round(expected / 60), "minute") if expected < 5400 else f"{expected / 3600:.1f} hours"
    passes = counted(teaching.epochs, "pass", "passes")
    tell(f"{counted(steps, 'step')} ({passes} over the data) will take about {time}")
    return _Plan(steps, every, kept=_same_steps(made, known))


def _same_steps(made: MeasuredSteps, recipe: Recipe) -> MeasuredSteps | None:
    """Steps that were measured, if a run of this recipe makes the very same, with nothing to do in between."""
    return made if len(made.made) < first_event(recipe.training) and made.exact(recipe) else None


def first_event(section: Training) -> int:
    """The first step after which a run of n steps validates, saves, keeps weights or is re-planned."""
    assert section.steps is not None
    every = validation_interval(section)
    review = [budget.midway(section.steps)] if section.minutes is not None else []
    return min(section.steps, every, section.save_every or every, *snapshot_steps(section.steps), *review)
