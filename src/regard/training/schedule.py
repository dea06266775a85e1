"""Learning-rate schedules: pure functions of the step, counted from 1 [Vaswani17 §5.3, eq. 3]; the one of a recipe."""

from __future__ import annotations

import math
from collections.abc import Callable

from regard.config import Training
from regard.system.errors import UsageError
from regard.training.budget import Replanning

Schedule = Callable[[float], float]


def noam(factor: float, d_model: int, warmup: int) -> Schedule:
    """``factor · d_model^-0.5 · min(step^-0.5, step · warmup^-1.5)`` [Vaswani17 §5.3, eq. 3]."""
    return lambda step: factor * d_model**-0.5 * min(step**-0.5, step * max(warmup, 1) ** -1.5)


def inverse_square_root(peak: float, warmup: int) -> Schedule:
    """Linear to ``peak`` at the end of the warm-up, then ``peak · sqrt(warmup / step)``."""
    return lambda step: peak * min(step / max(warmup, 1), math.sqrt(max(warmup, 1) / step))


def cosine(peak: float, warmup: int, steps: int) -> Schedule:
    """Linear to ``peak``, then half a cosine to zero at exactly the last step."""
    return lambda step: (
        peak * _warm(step, warmup) * 0.5 * (1.0 + math.cos(math.pi * _decay_progress(step, warmup, steps)))
    )


def linear(peak: float, warmup: int, steps: int) -> Schedule:
    """Linear to ``peak``, then linear to zero at exactly the last step."""
    return lambda step: peak * _warm(step, warmup) * (1.0 - _decay_progress(step, warmup, steps))


def stretch(rate: Schedule, at: int, planned: int, steps: int) -> Schedule:
    """A schedule up to step ``at``; what it still has to go to ``planned`` it goes slower or faster, to ``steps``."""
    return lambda step: rate(step if step <= at else at + (step - at) * (planned - at) / (steps - at))


def _warm(step: float, warmup: int) -> float:
    return min(1.0, step / warmup) if warmup else 1.0


def _decay_progress(step: float, warmup: int, steps: int) -> float:
    """The completed share of the decay: 0 during warmup, 1 from the last step on."""
    return min(1.0, max(0, step - warmup) / max(1, steps - warmup))


def schedule(section: Training, d_model: int, review: Replanning | None = None) -> Schedule:
    """The schedule a recipe names; its warm-up is never more than a tenth of the steps, where they are known.

    Args:
        section: of the recipe, its steps as planned first.
        d_model: of the model.
        review: what became of the steps midway: a schedule that ends, ends there instead.

    Raises:
        UsageError: the schedule ends at the last step, but the number of steps is not known.
    """
    warmup = section.warmup if section.steps is None else min(section.warmup, section.steps // 10)
    if section.schedule == "noam":
        return noam(section.rate, d_model, warmup)
    if section.schedule == "inverse_square_root":
        return inverse_square_root(section.rate, warmup)
    if section.steps is None:
        raise UsageError(f"{section.schedule} schedules end at the last step: give steps or minutes", "training.steps")
    end = {"cosine": cosine, "linear": linear}[section.schedule](section.rate, warmup, section.steps)
    return stretch(end, review.at, review.planned, review.steps) if review else end
