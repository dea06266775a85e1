"""``fit``: the training loop [Vaswani17 §5], and a run while it trains: resuming, saving, re-planning at half-time.

A step is a pure function of the recipe and the step's number, so a run that was stopped or killed at any moment and
then resumed ends with the same bits as an uninterrupted one.

Half of the steps predict a machine better than its first seconds. The new plan is written to disk before the next step,
so a run that resumes from an earlier checkpoint does not decide again. A full disk costs a save, not the run.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import torch

from regard.config import Recipe, Training
from regard.models import store
from regard.system import disk
from regard.system.errors import Diverged, RegardError, Stopped
from regard.text.counts import counted
from regard.training import budget
from regard.training.budget import Costs, Replanning
from regard.training.checkpoints import checkpoint, resolved
from regard.training.checkpoints.checkpoint import Checkpoints
from regard.training.checkpoints.files import Files
from regard.training.checkpoints.resolved import Fields
from regard.training.log import MetricsLog, Reporter, Start, StepMetrics, Summary, TensorBoardLog
from regard.training.objective import BatchSource, Objective, Validation, Weights
from regard.training.optim import FlatOptimiser, schedule
from regard.training.progress import Best, Progress, divergence_error, is_scoring_step
from regard.training.update import MeasuredStep, MeasuredSteps, Updates, make, never, read_steps
from regard.training.world import ALONE, World

_SNAPSHOTS = (1, 20, 50)
"""Per cent of the steps after which weights are kept for good, to watch a head learn.

They take three times the weights. Heads change most between a tenth of the steps and the end: before it they are nearly
those of the start, and at the end they are the model's own (docs/experiments.md).
"""
_FAILED_SAVES = 3
"""Consecutive failed saves before training fails."""


def _ignore(*what: object) -> None:
    """The default: writes no model folder, and tells nobody of new steps."""


@dataclass(frozen=True)
class Hooks:
    """Optional callbacks and settings of ``fit``."""

    reporter: Reporter = field(default_factory=Reporter)
    should_stop: Callable[[], bool] = never
    """Called before every step; the command line sets it on SIGTERM and SIGINT."""
    save_model: Callable[[Weights, Best, Validation, float], None] = _ignore
    """Writes the model folder whenever a new best is found; must replace atomically (``manifest.replace``).

    It is also given the seconds of training so far.
    """
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
        self, objective: Objective, feed: BatchSource, recipe: Recipe, folder: Path, hooks: Hooks, world: World = ALONE
    ) -> None:
        section = recipe.training
        self.objective, self.feed, self.recipe, self.folder, self.hooks = objective, feed, recipe, folder, hooks
        self.world = world
        self.optimiser = FlatOptimiser(objective.model, section, world)
        self.resolved = hooks.resolved
        self.updates = Updates(
            objective, self.optimiser, recipe, schedule(section, recipe.model.d_model), hooks.should_stop
        )
        self.review: Replanning | None = None
        self.first = self.last = section
        if hooks.review:
            self.follow(hooks.review)
        self.validate_every = validation_interval(self.first)
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


def validation_interval(section: Training) -> int:
    """Steps between validations; where the recipe leaves them open a twentieth of the run, a short run's hundred."""
    if section.validate_every:
        return section.validate_every
    if section.steps is None:
        return 1000
    return max(1, section.steps // 20, min(section.steps, 100))


def fit(
    objective: Objective,
    feed: BatchSource,
    recipe: Recipe,
    folder: Path,
    hooks: Hooks | None = None,
    world: World = ALONE,
) -> Summary:
    """Train from the newest valid checkpoint in ``folder``, or from the start if there is none, to the last step.

    Args:
        objective: the task: its model, loss and validation.
        feed: batches from any position on.
        recipe: everything that decides the run; ``training.steps`` is set unless the schedule has no end. Where
            ``hooks`` hold what they were planned by, the run is re-planned at half-time.
        folder: the private ``training/`` folder of the run, locked by the caller.
        hooks: reporter, stop flag, what saves the model folder.
        world: the processes that train together, each calling this at the same time; they read the same folder, and
            the first one writes it. A reader of ``feed`` may be asked for a share of its batches.

    Raises:
        Stopped: ``should_stop`` returned true; all is saved (exit code 75).
        Diverged: too many gradients, the weights or a validation's loss are not finite (76).
        NoValidCheckpoint: there are checkpoints, but each is damaged (3).
        RegardError: saving failed three times in a row.
    """
    run = Run(objective, feed, recipe, folder, hooks or Hooks(), world)
    resume(run)
    kept = run.hooks.kept
    try:
        if kept is not None and not run.progress.step:  # the first steps were made while measuring
            kept.give(run.optimiser)
            for made in kept.made:
                run.progress.seconds += made.seconds
                count(run, made)
        run_steps(run)
    except Diverged as error:
        run.event(str(error))
        raise
    return end(run)


def run_steps(run: Run) -> None:
    """Step, validate and save until the run is over; midway, look whether the steps planned are the right number."""
    clock, steps = run.hooks.clock, read_steps(run.feed, run.progress.position, run.world, run.section.accumulate)
    run.stop = run.world.size > 1 and run.world.any(run.hooks.should_stop())
    review(run)  # a run that an earlier Regard left midway, where it planned before the next step
    while not run.progress.finished:
        check_stop(run)
        made = make(run.updates, run.progress.step + 1, next(steps), clock(), clock)
        run.stop = made.update.stop
        count(run, made)
        due = run.progress.step % run.validate_every == 0 or run.progress.step == run.section.steps
        best = validate(run) if due else False
        keep_snapshot(run)
        planned = review(run)
        if planned or best or run.progress.finished or run.progress.step % run.save_every == 0:
            refuse_bad_weights(run)
            save(run)


def refuse_bad_weights(run: Run) -> None:
    """Raise ``Diverged`` if the weights are not finite, so that earlier saves stay intact."""
    if not run.optimiser.finite():
        raise divergence_error("the weights are not finite", run.progress.step)


def check_stop(run: Run) -> None:
    """Save and raise ``Stopped`` if the flag is up."""
    if run.stop or (run.world.size == 1 and run.hooks.should_stop()):
        refuse_bad_weights(run)
        save(run, last=True)
        said = f"stopped after step {run.progress.step}"
        if run.last.steps is not None:
            said += f" of {run.last.steps}"
        run.event(said)
        raise Stopped(f"{said}; all is saved; rerun the same command to resume")


def count(run: Run, made: MeasuredStep) -> None:
    """Count and log a completed update."""
    progress, update = run.progress, made.update
    progress.step += 1
    progress.position = made.position
    metrics = StepMetrics(
        step=progress.step,
        seconds=run.seconds,
        loss=update.loss,
        nll=update.nll,
        rate=update.rate,
        tokens=update.tokens,
        tokens_per_second=update.tokens / max(made.seconds, 1e-9),
        fill=update.tokens / update.room,
        norm=update.norm,
        skipped=not update.applied,
        norms=update.norms,
    )
    run.hooks.reporter.on_step(metrics)
    run.log.write("step", **asdict(metrics))
    if run.board:
        run.board.write(metrics.step, loss=update.loss, rate=update.rate, norm=update.norm)
    if not update.applied:
        run.event(f"update {progress.step} skipped: its gradient is not finite")
        progress.skip(progress.step, run.section)
    elif progress.detect_spike(update.loss):
        run.event(f"loss spike at step {progress.step}: {update.loss:.4f}")


def validate(run: Run) -> bool:
    """Validate the weights to be saved; save the model folder if they are the best so far, and return whether."""
    progress, section = run.progress, run.section
    refuse_bad_weights(run)
    with run.optimiser.averaged_weights():
        run.objective.model.eval()
        try:
            with torch.no_grad():  # slow scores are computed only where they decide
                validation = run.objective.validate(is_scoring_step(progress.step, section), run.world)
        finally:
            run.objective.model.train()
        if not math.isfinite(validation.loss):
            raise divergence_error("the loss of the validation is not finite", progress.step)
        best = progress.judge(validation, section)
        if best and not run.world.lead(partial(save_best_model, run, best, validation)):
            best = None
    progress.count(best)
    progress.finished = progress.over(section.steps, section.patience)
    values = {"loss": validation.loss, **validation.scores}
    run.log.write("valid", progress.step, seconds=run.seconds, best=best is not None, **values)
    for sample in validation.samples:
        run.log.write("sample", progress.step, **asdict(sample))
    if run.board:
        run.board.write(progress.step, **{f"valid/{name}": value for name, value in values.items()})
    run.hooks.reporter.on_validation(progress.step, validation, best is not None)
    return best is not None


def end(run: Run) -> Summary:
    """Report how the run ended."""
    progress, best = run.progress, run.progress.best
    reason = "all steps done" if progress.step == run.section.steps else "no better validation for a while"
    summary = Summary(
        step=progress.step,
        seconds=run.seconds,
        best_step=progress.best_step,
        best_metric=best.metric if best else None,
        best_value=best.value if best else None,
        skipped=progress.skipped,
        reason=reason,
    )
    run.hooks.reporter.on_end(summary)
    return summary


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
    newest = run.checkpoints.newest()
    return str(newest) if newest else None


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
        run.board.writer.flush()
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
        if not run.world.leads:
            return
        place = run.folder / "snapshots" / checkpoint.name(step)
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
    if found.steps != found.planned:  # told wherever the first number was
        many = f"{counted(found.steps, 'step')} instead of {found.planned:,} fit into {budget.format_minutes(minutes)}"
        run.event(f"re-planned at step {found.at:,}: {many}")
        run.log.write("planned", found.at, steps=found.steps)
        run.hooks.planned(found.steps)
        run.hooks.reporter.on_start(beginning(run))
    return True
