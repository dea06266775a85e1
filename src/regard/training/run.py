"""A run while it trains: its state, resuming, saving, and re-planning at half-time of ``--minutes``.

Half of the steps predict a machine better than its first seconds. The new plan is written to disk before the next step,
so a run that resumes from an earlier checkpoint does not decide again. A full disk costs a save, not the run.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from regard.config import Recipe, Training
from regard.models import store
from regard.nn.dropout import reseed
from regard.system import disk
from regard.system.errors import RegardError
from regard.text.counts import counted
from regard.training import budget
from regard.training.budget import Costs, Replanning
from regard.training.checkpoints import checkpoint, resolved
from regard.training.checkpoints.checkpoint import Checkpoints
from regard.training.checkpoints.files import Files
from regard.training.checkpoints.resolved import Fields
from regard.training.log import MetricsLog, Reporter, Start, TensorBoardLog
from regard.training.objective import BatchSource, Objective, Validation, Weights
from regard.training.optim import FlatOptimiser, schedule
from regard.training.progress import Best, Progress
from regard.training.update import MeasuredSteps, Updates
from regard.training.world import ALONE, World

_SNAPSHOTS = (1, 20, 50)
"""Per cent of the steps after which weights are kept for good, to watch a head learn.

They take three times the weights. Heads change most between a tenth of the steps and the end: before it they are nearly
those of the start, and at the end they are the model's own (docs/experiments.md).
"""
_FAILED_SAVES = 3
"""Consecutive failed saves before training fails."""


def _never() -> bool:
    return False


def _ignore(*what: object) -> None:
    """The default: writes no model folder, and tells nobody of new steps."""


@dataclass(frozen=True)
class Hooks:
    """Optional callbacks and settings of ``fit``."""

    reporter: Reporter = field(default_factory=Reporter)
    should_stop: Callable[[], bool] = _never
    """Called before every step; the command line sets it on SIGTERM and SIGINT."""
    save_model: Callable[[Weights, Best, Validation, float], None] = _ignore
    """Writes the model folder whenever a new best is found; must replace atomically (``manifest.replace``).

    It is also given the seconds of training so far.
    """
    reseed: Callable[[int], None] = reseed
    clock: Callable[[], float] = time.monotonic
    processor_clock: Callable[[], float] = time.process_time
    """Seconds that this process has computed."""
    files: Files = field(default_factory=Files)
    resolved: Fields = field(default_factory=dict)
    """The contents of ``resolved.toml``; also in every checkpoint."""
    costs: Costs | None = None
    """The costs by which a ``--minutes`` run was planned; such a run is re-planned at half-time."""
    review: Replanning | None = None
    """What came of that, where an earlier process did it."""
    kept: MeasuredSteps | None = None
    """The run's first steps, if made while measuring; only a run at its start takes them."""
    planned: Callable[[int], None] = _ignore
    """Called with the new number of steps when the run is re-planned."""
    track: bool = False
    """Write TensorBoard files too."""


class Run:
    """State of a run; saved are ``progress``, the optimiser's tensors and ``resolved``."""

    def __init__(
        self,
        objective: Objective,
        feed: BatchSource,
        recipe: Recipe,
        folder: Path,
        hooks: Hooks,
        world: World = ALONE,
    ) -> None:
        section = recipe.training
        self.objective, self.feed, self.recipe, self.folder, self.hooks = objective, feed, recipe, folder, hooks
        self.world = world
        self.optimiser = FlatOptimiser(objective.model, section, world)
        self.resolved = hooks.resolved
        self.updates = Updates(
            objective, self.optimiser, recipe, schedule(section, recipe.model.d_model), hooks.reseed, hooks.should_stop
        )
        self.review: Replanning | None = None
        self.first = self.last = section
        if hooks.review:
            self.follow(hooks.review)
        self.validate_every = section.validate_every or validation_interval(self.first.steps)
        self.save_every = section.save_every or self.validate_every
        if world.leads:
            for inner in (folder, folder / "checkpoints", folder / "snapshots"):
                inner.mkdir(parents=True, exist_ok=True)
        self.checkpoints = Checkpoints(folder / "checkpoints", hooks.files, section.keep, self.event)
        self.log = MetricsLog(folder / "metrics.jsonl", hooks.files, silent=not world.leads)
        self.progress = Progress()
        self.failed_saves = 0
        self.stop = False
        """Whether a process was asked to stop, as all of them know from the last step."""
        self.started = hooks.clock()
        self.board: TensorBoardLog | None = None

    def follow(self, review: Replanning) -> None:
        """Make the first planned steps up to the review, and after it the re-planned ones."""
        self.review = review
        self.first = self.first.model_copy(update={"steps": review.planned})
        self.last = self.first.model_copy(update={"steps": review.steps})
        self.updates.rate = schedule(self.first, self.recipe.model.d_model, review)

    @property
    def section(self) -> Training:
        """The training section with the number of steps planned at the run's current step."""
        return self.last if self.review and self.progress.step > self.review.at else self.first

    @property
    def seconds(self) -> float:
        """Seconds of training, those before a stop included."""
        return self.progress.seconds + self.hooks.clock() - self.started

    def event(self, text: str) -> None:
        """Report and log an event."""
        self.hooks.reporter.on_event(text)
        self.log.write("event", self.progress.step, text=text)


def validation_interval(steps: int | None) -> int:
    """Steps between validations where the recipe leaves them open: a twentieth of the run, a short run's hundred."""
    return 1000 if steps is None else max(1, steps // 20, min(steps, 100))


def resume(run: Run) -> None:
    """Go back to the newest whole checkpoint, if there is one; the log is cut back to its step."""
    if place := run.world.lead(lambda: _newest_checkpoint(run)):
        path = Path(place)
        run.progress = Progress.of(checkpoint.verified_state(path), path)
        section = run.section
        run.progress.finished &= run.progress.over(section.steps, section.patience)  # more may be requested
        if run.world.leads:
            with contextlib.suppress(OSError):  # the next save does it too
                run.checkpoints.settle(path, run.progress.best_step, run.progress.finished)
        averages = path / "ema.safetensors"
        run.optimiser.restore(
            checkpoint.load(path / "weights.safetensors"),
            checkpoint.load(path / "optimiser.safetensors"),
            checkpoint.load(averages) if averages.exists() else {},
        )
    run.log.truncate(run.progress.step)
    run.objective.model.train()
    if run.hooks.track:
        run.board = TensorBoardLog(run.folder / "tensorboard", run.progress.step)
    start = beginning(run)
    run.hooks.reporter.on_start(start)
    run.log.write("start", **asdict(start), torch=torch.__version__)
    run.started = run.hooks.clock()


def _newest_checkpoint(run: Run) -> str | None:
    """Remove what kills left behind; the newest whole checkpoint."""
    run.checkpoints.sweep()
    kept = sorted((run.folder / "snapshots").iterdir())
    left = [path for path in kept if checkpoint.REMAINS.fullmatch(path.name)]
    for remains in (*run.folder.glob(".*.partial-*"), *left):
        run.hooks.files.remove(remains)
    loaded = run.checkpoints.load()
    return str(loaded.path) if loaded else None


def beginning(run: Run) -> Start:
    """What is known of the run where it is, and how many steps it is to make."""
    section = run.last
    count = sum(p.numel() for p in run.optimiser.parameters.values())
    return Start(run.progress.step, section.steps, count, section.tokens * section.accumulate, run.validate_every)


def save(run: Run, last: bool = False) -> None:
    """Write a checkpoint; a full disk costs this one, not the run, unless it was the ``last`` chance."""
    optimiser, progress = run.optimiser, run.progress
    progress.seconds, run.started = run.seconds, run.hooks.clock()
    contents = {
        "weights.safetensors": store.chunks(optimiser.weights_by_name()),
        "optimiser.safetensors": store.chunks(optimiser.moments_by_name()),
        "state.json": [progress.dump(run.resolved)],
    }
    if optimiser.averages is not None:
        contents["ema.safetensors"] = store.chunks(optimiser.averages_by_name())
    if not run.world.leads:
        return
    try:
        run.log.sync()
        path = run.checkpoints.save(progress.step, contents, progress.best_step, progress.finished)
    except OSError as error:
        count_failed_save(run, error, last=last or progress.finished)
        return
    run.failed_saves = 0
    if run.board:
        run.board.flush()
    run.log.write("save", progress.step, path=path.name)
    run.hooks.reporter.on_save(path)


def save_best_model(run: Run, best: Best, validation: Validation) -> bool:
    """Write the model folder before the checkpoint that marks it as best; after a kill in between it is rewritten."""
    try:
        run.hooks.save_model(run.optimiser.weights_by_name(), best, validation, run.seconds)
    except OSError as error:
        count_failed_save(run, error, last=run.progress.step == run.section.steps)
        return False
    return True


def snapshot_steps(steps: int) -> set[int]:
    """The steps after which snapshots are kept permanently."""
    return {max(1, round(steps * percent / 100)) for percent in _SNAPSHOTS}


def keep_snapshot(run: Run) -> None:
    """Keep the weights for good at 1, 20 and 50 % of the steps.

    A run that is continued to more steps has others due: it keeps the earliest and the newest two.
    """
    step, steps = run.progress.step, run.section.steps
    if steps is None or step not in snapshot_steps(steps):
        return
    with run.optimiser.averaged_weights():
        if run.world.leads:
            _write_snapshot(run, run.folder / "snapshots" / checkpoint.name(step))


def _write_snapshot(run: Run, place: Path) -> None:
    try:
        if not place.exists():
            contents = {"weights.safetensors": store.chunks(run.optimiser.weights_by_name())}
            checkpoint.write_folder(place, contents, run.hooks.files)
        for surplus in checkpoint.whole(place.parent)[1 : 1 - len(_SNAPSHOTS)]:
            checkpoint.discard(surplus, run.hooks.files)
    except OSError as error:
        count_failed_save(run, error)


def count_failed_save(run: Run, error: OSError, last: bool = False) -> None:
    """Count a failed save; training continues with older ones, up to a limit."""
    run.failed_saves += 1
    run.event(f"saving at step {run.progress.step} failed ({disk.fault_of(error)}); earlier saves are intact")
    if last or run.failed_saves >= _FAILED_SAVES:
        raise RegardError(
            f"saving failed ({disk.fault_of(error)}); make room and run the same command again", str(run.folder)
        ) from error


def review(run: Run) -> bool:
    """Re-plan if half of the planned steps are just done; returns whether the caller must save a checkpoint at once.

    If nothing can be written, the first plan remains.
    """
    costs, minutes, steps = run.hooks.costs, run.first.minutes, run.first.steps
    if costs is None or minutes is None or steps is None or run.review:
        return False
    if run.progress.finished or run.progress.step != budget.midway(steps):
        return False
    planned = budget.Length(steps, run.validate_every)

    def decide() -> dict[str, int] | None:
        found = budget.review(minutes, costs, run.first, planned, run.seconds)
        try:
            resolved.write(run.folder, {**run.resolved, **found.fields()}, run.hooks.files)
        except OSError as error:
            count_failed_save(run, error)
            return None
        return asdict(found)

    if (decided := run.world.lead(decide)) is None:
        return False
    found = Replanning(**decided)
    run.resolved = {**run.resolved, **found.fields()}
    run.follow(found)
    if found.steps != found.planned:
        report_replan(run, found, minutes)
    return True


def report_replan(run: Run, found: budget.Replanning, minutes: float) -> None:
    """Report the new number of steps wherever the first was reported."""
    many = f"{counted(found.steps, 'step')} instead of {found.planned:,} fit into {budget.format_minutes(minutes)}"
    run.event(f"re-planned at step {found.at:,}: {many}")
    run.log.write("planned", found.at, steps=found.steps)
    run.hooks.planned(found.steps)
    run.hooks.reporter.on_start(beginning(run))
