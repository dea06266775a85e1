"""Midway through a run of so many minutes: its steps planned anew, by the time those behind it have really taken.

Half of the steps say more of a machine than its first seconds. What comes of it is written down before the next step,
so that a run which goes on from an earlier checkpoint decides nothing again.
"""

from __future__ import annotations

from regard.training import budget, resolved
from regard.training.run import Run, beginning
from regard.training.saving import failed


def review(run: Run) -> bool:
    """Plan anew if half of the planned steps are just made, and say whether; the caller saves a checkpoint at once.

    Where nothing can be written, the first plan stands.
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
        failed(run, error)
        return False
    run.resolved = fields
    run.follow(found)
    if found.steps != found.planned:
        said(run, found, minutes)
    return True


def said(run: Run, found: budget.Review, minutes: float) -> None:
    """Let everybody know who was told the first number."""
    many = f"{found.steps:,} steps instead of {found.planned:,} fit into {minutes:g} minutes"
    run.event(f"planned anew at step {found.at:,}: {many}")
    run.log.write("planned", found.at, steps=found.steps)
    run.hooks.planned(found.steps)
    run.hooks.reporter.on_start(beginning(run))
