"""Number of steps that fit a ``--minutes`` budget: computed before the first step, and again at half-time."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

from regard.config import Training
from regard.system.errors import Option
from regard.text.counts import clock, counted
from regard.training.progress import OWN_SCORE

MEASURING = 0.1
"""Of the minutes at most, but for two steps and a part of a validation."""
_SHARE = 0.9
"""Of the minutes ahead, at the start and midway: three runs of half an hour, planned for 0.95 of it, were 8 per cent
slower than measured. Planned so midway, a run ends at about 0.95 of its minutes, and still in time if what is left is
slower by a tenth."""
_FINAL = 0.1
"""Largest share of the minutes reserved for the final scores; if they take longer, the summary reports it."""
_AS_BEFORE = 0.05
"""Smaller changes of the number of steps are ignored; they are within the tenth in reserve."""
_LONGEST = 3
"""Longest new plan, in multiples of the first: a machine shared by two others while measured is that much faster."""
_MOST, _LEAST = 20, 4
"""Validations, unless the recipe says how often: as many as take a tenth of the time; fewer than the least where these
would take half of it."""
_APART = 50
"""Steps between them at least."""
_FEW, _ENOUGH = 100, 1000
"""Steps that teach next to nothing, and that teach something."""


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
    """On measuring, without the steps that are kept; it counts."""
    final: float = 0.0
    """The final scores; runs that were planned before these counted do without."""


@dataclass(frozen=True)
class Length:
    """The values fixed in ``resolved.toml``."""

    steps: int
    validate_every: int
    select: Literal["loss"] | None = None
    """Selection metric used instead of the task's score if validations have no time to generate text."""


@dataclass(frozen=True)
class Replanning:
    """A run's length re-planned at half-time: after step ``at`` of ``planned``, the last step is ``steps``."""

    at: int
    planned: int
    steps: int

    def fields(self) -> dict[str, int]:
        """The fields as in ``resolved.toml``."""
        return {"chosen.steps": self.steps, "chosen.planned": self.planned, "chosen.reviewed": self.at}


def length(minutes: float, costs: Costs, section: Training) -> Length:
    """The steps that fit into 0.9 of the minutes, with the validations and saves that belong to them.

    A step and a validation at least: where not even these fit, the run takes longer. Where one validation that
    translates would take half of the time, none does, unless the recipe itself says what is selected by.
    """
    seconds = _SHARE * 60 * minutes - costs.spent - min(costs.final, _FINAL * 60 * minutes)
    select: Literal["loss"] | None = None
    if section.select == "auto" and costs.text > costs.loss and _beside(1, costs, section) > seconds / 2:
        select = "loss"
        section = section.model_copy(update={"select": select})
    if section.validate_every is None:
        count = _MOST
        while count > 1 and _beside(count, costs, section) > seconds / (10 if count > _LEAST else 2):
            count -= 1
        for _ in range(2):  # validations may be too close together; the time of omitted ones goes to steps
            steps = math.floor((seconds - _beside(count, costs, section)) / costs.step)
            every = max(1, math.ceil(steps / count), min(steps, _APART))
            count = max(1, math.ceil(steps / every))
    else:
        every = section.validate_every
        steps = math.floor(seconds / costs.step)
        while steps > 0 and (cost := _whole(steps, every, costs, section)) > seconds:
            steps = min(steps - 1, math.floor(steps * max(0.0, seconds) / cost))
    return Length(max(1, steps), every, select)


def midway(steps: int) -> int:
    """The step after which a ``--minutes`` run is re-planned."""
    return max(1, steps // 2)


def review(minutes: float, costs: Costs, section: Training, first: Length, seconds: float) -> Replanning:
    """Re-estimate the number of steps, when half of the planned ones are done.

    What was made took longer, or less long, than measured; what is left will by the same factor. (Seconds a step would
    not do: validations that translate may all be still to come.)

    Args:
        minutes: that the whole run may take.
        costs: as measured; ``first``: as planned by them.
        section: of the recipe.
        seconds: that the steps up to here took, with their validations and saves.
    """
    at, every = midway(first.steps), first.validate_every
    past = at // every
    made = at * costs.step + _beside(past, costs, section, past)

    def ahead(steps: int) -> float:
        return (_whole(steps, every, costs, section, past) - made) * seconds / made

    left = _SHARE * (60 * minutes - costs.spent - seconds) - min(costs.final * seconds / made, _FINAL * 60 * minutes)
    fitting = bisect_right(range(at + 1, _LONGEST * first.steps + 1), left, key=ahead)
    steps = at + max(1, fitting)
    return Replanning(at, first.steps, first.steps if abs(steps / first.steps - 1) < _AS_BEFORE else steps)


def poor(minutes: float, costs: Costs, found: Length) -> str | None:
    """A warning if the minutes are too few to learn much, with what would help."""
    if found.steps >= _FEW:
        return None
    only = ", and no validation translates" if found.select else ""
    needed = math.ceil((_ENOUGH * costs.step + costs.loss + costs.final + costs.spent) / 60 / _SHARE)
    return (
        f"too little time to learn much: {counted(found.steps, 'step')} in {format_minutes(minutes)}{only} (a step "
        f"takes {costs.step:.2g} s, a validation {clock(costs.loss)}, the final scores about {clock(costs.final)}); "
        f"give {Option('minutes', needed)} or more, or a smaller model ({Option('settings', 'model.d_model=...')})"
    )


def time_summary(minutes: float | None, measuring: float, training: float, final: float) -> str | None:
    """The total time of a ``--minutes`` run, and how much it exceeded them: reported, never enforced.

    Args:
        minutes: it was to take; None: no budget.
        measuring: seconds of measuring, without the steps that were kept.
        training: seconds from the first step to the saved model.
        final: seconds of the final scores.
    """
    if minutes is None:
        return None
    total = measuring + training + final
    parts = f"measuring {clock(measuring)}, training {clock(training)}, final scores {clock(final)}"
    beyond = total - 60 * minutes
    if beyond < 1:
        return f"{clock(total)} of {format_minutes(minutes)}: {parts}"
    return f"{clock(total)}, which is {clock(beyond)} beyond {format_minutes(minutes)}: {parts}"


def format_minutes(minutes: float) -> str:
    """``1 minute``, ``2.5 minutes``."""
    return f"{minutes:g} minute{'' if minutes == 1 else 's'}"


def _whole(steps: int, every: int, costs: Costs, section: Training, past: int = 0) -> float:
    return steps * costs.step + _beside(math.ceil(steps / every), costs, section, past)


def _beside(validations: int, costs: Costs, section: Training, past: int = 0) -> float:
    """Seconds of n validations, each with a checkpoint and a model saved, and of the three snapshots.

    Where text is translated in the second half only, the first ``past`` validations are known to have done without.
    """
    texts = validations
    if section.select in OWN_SCORE:
        texts = min(validations - past, validations // 2 + 1)
    elif section.select == "loss":
        texts = 0
    return texts * costs.text + (validations - texts) * costs.loss + (2 * validations + 3) * costs.save
