"""Learning-rate schedules: pure functions of the step, counted from 1 [Vaswani17 §5.3, eq. 3]."""

from __future__ import annotations

import math
from collections.abc import Callable

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
