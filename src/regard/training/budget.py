"""How many steps fit into so many minutes: fixed before the first one, and once more midway."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

from regard.config import Training
from regard.errors import UsageError
from regard.training.progress import OWN_SCORE

_SHARE = 0.9
"""Of the minutes ahead, at the start and midway: three runs of half an hour, planned for 0.95 of it, were 8 per cent
slower than measured. Planned so midway, a run ends at about 0.95 of its minutes, and still in time if what is left is
slower by a tenth."""
_AS_BEFORE = 0.05
"""A change of the steps by less is none; made for the half that is left, it is less than the tenth in hand."""
_LONGEST = 3
"""Times the first plan: a machine that two others shared while it was measured is so much faster without them."""
_MOST, _LEAST = 20, 4
"""Validations, unless the recipe says how often: as many as take a fifth of the time."""
_APART = 50
"""Steps between them at least."""


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


@dataclass(frozen=True)
class Review:
    """What became of a run's length midway: behind step ``at`` of ``planned`` it is to end at ``steps``."""

    at: int
    planned: int
    steps: int

    def fields(self) -> dict[str, int]:
        """As they stand in ``resolved.toml``."""
        return {"chosen.steps": self.steps, "chosen.planned": self.planned, "chosen.reviewed": self.at}


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


def midway(steps: int) -> int:
    """The step behind which a run of so many minutes is planned anew."""
    return max(1, steps // 2)


def review(minutes: float, costs: Costs, section: Training, first: Length, seconds: float) -> Review:
    """Fix the number of steps anew, where half of those planned are made.

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

    left = _SHARE * (60 * minutes - costs.spent - seconds)
    fitting = bisect_right(range(at + 1, _LONGEST * first.steps + 1), left, key=ahead)
    steps = at + max(1, fitting)
    return Review(at, first.steps, first.steps if abs(steps / first.steps - 1) < _AS_BEFORE else steps)


def overrun(minutes: float | None, seconds: float) -> str | None:
    """What to say of a run that took a twentieth longer than its minutes, or more: it is reported, never cut."""
    if minutes is None or seconds < 63 * minutes:
        return None
    return f"training took {seconds / 60:.1f} minutes instead of {minutes:g}: the machine was slower than planned for"


def _whole(steps: int, every: int, costs: Costs, section: Training, past: int = 0) -> float:
    return steps * costs.step + _beside(math.ceil(steps / every), costs, section, past)


def _beside(validations: int, costs: Costs, section: Training, past: int = 0) -> float:
    """Seconds of so many validations, each with a checkpoint and a model saved, and of the seven snapshots.

    Where text is translated in the second half only, the first ``past`` validations are known to have done without.
    """
    texts = validations
    if section.select in OWN_SCORE:
        texts = min(validations - past, validations // 2 + 1)
    elif section.select == "loss":
        texts = 0
    return texts * costs.text + (validations - texts) * costs.loss + (2 * validations + 7) * costs.save
