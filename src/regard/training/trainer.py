"""``fit``: the training loop [Vaswani17 §5].

A step is a pure function of the recipe and the step's number, so a run that was stopped or killed at any moment and
then resumed ends with the same bits as an uninterrupted one.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch

from regard.config import Recipe
from regard.data.batches.batch import Batch, Position
from regard.system.errors import Diverged, Stopped
from regard.training.log import StepMetrics, Summary
from regard.training.objective import BatchSource, Objective, Validation
from regard.training.progress import divergence_error, is_scoring_step
from regard.training.run import Hooks, Run, keep_snapshot, resume, review, save, save_best_model
from regard.training.update import MeasuredStep, make, read_steps
from regard.training.world import ALONE, World


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
    try:
        apply_measured_steps(run)
        run_steps(run)
    except Diverged as error:
        run.event(str(error))
        raise
    return end(run)


def apply_measured_steps(run: Run) -> None:
    """Take over the steps made while measuring, if the run is at its start."""
    kept = run.hooks.kept
    if kept is None or run.progress.step:
        return
    kept.give(run.optimiser)
    for made in kept.made:
        run.progress.seconds += made.seconds
        count(run, made)


def run_steps(run: Run) -> None:
    """Step, validate and save until the run is over; midway, look whether the steps planned are the right number."""
    steps = read_steps(run.feed, run.progress.position, run.world, run.section.accumulate)
    run.stop = run.world.size > 1 and run.world.any(run.hooks.should_stop())
    review(run)  # a run that an earlier Regard left midway, where it planned before the next step
    while not run.progress.finished:
        check_stop(run)
        step(run, next(steps))
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


def step(run: Run, given: list[tuple[Batch, Position]]) -> None:
    """One update; the position moves past its last batch."""
    clock = run.hooks.clock
    made = make(run.updates, run.progress.step + 1, given, clock(), clock)
    run.stop = made.stop
    count(run, made)


def count(run: Run, made: MeasuredStep) -> None:
    """Count a completed update."""
    progress, update = run.progress, made.update
    progress.step += 1
    progress.position = made.position
    record(run, made)
    if not update.applied:
        run.event(f"update {progress.step} skipped: its gradient is not finite")
        progress.skip(progress.step, run.section)
    elif progress.detect_spike(update.loss):
        run.event(f"loss spike at step {progress.step}: {update.loss:.4f}")


def record(run: Run, made: MeasuredStep) -> None:
    """Log an update."""
    update = made.update
    metrics = StepMetrics(
        step=run.progress.step,
        seconds=run.seconds,
        loss=update.loss,
        nll=update.nll,
        rate=update.rate,
        tokens=made.tokens,
        tokens_per_second=made.tokens / max(made.seconds, 1e-9),
        fill=made.tokens / made.room,
        norm=update.norm,
        skipped=not update.applied,
        norms=update.norms,
    )
    run.hooks.reporter.on_step(metrics)
    run.log.write("step", **asdict(metrics))
    if run.board:
        run.board.write(metrics.step, loss=update.loss, rate=update.rate, norm=update.norm)


def validate(run: Run) -> bool:
    """Validate the weights to be saved; save the model folder if they are the best so far, and return whether."""
    progress, section = run.progress, run.section
    refuse_bad_weights(run)
    with run.optimiser.averaged_weights():
        validation = scores(run)
        if not math.isfinite(validation.loss):
            raise divergence_error("the loss of the validation is not finite", progress.step)
        best = progress.judge(validation, section)
        if best:
            best = best if run.world.lead(partial(save_best_model, run, best, validation)) else None
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


def scores(run: Run) -> Validation:
    """A validation in evaluation mode; slow scores are computed only where they decide."""
    run.objective.model.eval()
    try:
        with torch.no_grad():
            return run.objective.validate(is_scoring_step(run.progress.step, run.section), run.world)
    finally:
        run.objective.model.train()


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
