"""Maps recipe words of the training section to functions and classes, for all of training."""

from __future__ import annotations

import torch

from regard.config import Training
from regard.system.errors import UsageError
from regard.training.budget.budget import Replanning
from regard.training.schedule import Schedule, cosine, inverse_square_root, linear, noam, stretch

OPTIMISERS: dict[str, type[torch.optim.Adam]] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


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
