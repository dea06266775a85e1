"""Mean over several seeds, with a confidence interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Student's t, 0.975, for one degree of freedom and more."""
NORMAL = 1.96
"""The same for many seeds; close enough beyond the ten above."""


@dataclass(frozen=True)
class Estimate:
    """The mean of several seeds with half of its 95 % interval; None for one seed."""

    mean: float
    half: float | None = None

    def to_text(self, decimals: int) -> str:
        """``31.4 ± 0.6``."""
        spread = "" if self.half is None else f" ± {self.half:,.{decimals}f}"
        return f"{self.mean:,.{decimals}f}{spread}"


def estimate(values: Sequence[float]) -> Estimate | None:
    """The mean and its interval by Student's t; None without values."""
    if not values:
        return None
    if len(values) == 1:
        return Estimate(values[0])
    freedom = len(values) - 1
    factor = STUDENT[freedom - 1] if freedom <= len(STUDENT) else NORMAL
    return Estimate(mean(values), factor * stdev(values) / math.sqrt(len(values)))
