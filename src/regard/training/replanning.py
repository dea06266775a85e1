"""Re-estimates the number of steps at half-time of a ``--minutes`` run from measured step times.

Half of the steps predict a machine better than its first seconds. The result is written to disk before the next step,
so a run that resumes from an earlier checkpoint does not decide again.
"""

from __future__ import annotations

from regard.training.budget import budget
from regard.training.checkpoints import resolved
from regard.training.run import Run, beginning
from regard.training.saving import count_failed_save


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
    found = budget.review(minutes, costs, run.first, planned, run.seconds)
    fields = {**run.resolved, **found.fields()}
    try:
        resolved.write(run.folder, fields, run.hooks.files)
    except OSError as error:
        count_failed_save(run, error)
        return False
    run.resolved = fields
    run.follow(found)
    if found.steps != found.planned:
        report_replan(run, found, minutes)
    return True


def report_replan(run: Run, found: budget.Replanning, minutes: float) -> None:
    """Report the new number of steps wherever the first was reported."""
    many = f"{found.steps:,} steps instead of {found.planned:,} fit into {minutes:g} minutes"
    run.event(f"re-planned at step {found.at:,}: {many}")
    run.log.write("planned", found.at, steps=found.steps)
    run.hooks.planned(found.steps)
    run.hooks.reporter.on_start(beginning(run))
