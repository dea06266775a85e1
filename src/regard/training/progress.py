"""Progress of a run: the plain values that a checkpoint keeps in ``state.json``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from regard.config import FORMAT, Training
from regard.data.batches.batch import Position
from regard.system.errors import Damaged, Diverged
from regard.training.checkpoints.checkpoint import STATE, verified_state, whole
from regard.training.objective import Validation

_WINDOW = 200
"""Losses a spike is judged by."""
_YOUNG = 50
"""Fewer losses than this judge nothing."""
OWN_SCORE = ("auto", "last")
"""Values of ``training.select`` that use the task's own score."""


@dataclass(frozen=True)
class Best:
    """The best validation so far."""

    step: int
    metric: str
    value: float


@dataclass
class Progress:
    """Position in data, step and counters; nothing of a loader or a generator, for both are functions of these."""

    step: int = 0
    position: Position = field(default_factory=Position)
    seconds: float = 0.0
    best: Best | None = None
    worse: int = 0
    """Validations since the best one."""
    skipped: int = 0
    in_a_row: int = 0
    """Updates skipped one after the other."""
    recent: list[int] = field(default_factory=list)
    """Steps skipped within the last thousand."""
    losses: list[float] = field(default_factory=list)
    above: int = 0
    """Consecutive steps whose loss was an outlier."""
    finished: bool = False

    @property
    def best_step(self) -> int | None:
        """Step of the best validation."""
        return self.best.step if self.best else None

    def skip(self, step: int, section: Training) -> None:
        """Count an update left out because its gradient was not finite.

        Raises:
            Diverged: too many, in a row or of the last thousand.
        """
        self.skipped += 1
        self.in_a_row += 1
        self.recent = [s for s in self.recent if s > step - 1000] + [step]
        if self.in_a_row >= section.max_skipped or len(self.recent) > 10:
            raise divergence_error(
                f"{self.in_a_row} updates in a row and {len(self.recent)} of the last 1000 had no finite gradient", step
            )

    def detect_spike(self, loss: float) -> bool:
        """Count a finite loss; true at the third in a row above median + 6 · MAD of those before, once per spike."""
        self.in_a_row = 0
        stands_out = False
        if len(self.losses) >= _YOUNG:
            middle = median(self.losses)
            stands_out = loss > middle + 6 * median(abs(x - middle) for x in self.losses)
        self.above = self.above + 1 if stands_out else 0
        self.losses = [*self.losses[1 - _WINDOW :], loss]
        return self.above == 3

    def over(self, steps: int | None, patience: int | None) -> bool:
        """Whether a validation at this step leaves nothing to do."""
        return self.step == steps or (patience is not None and self.worse >= patience)

    def judge(self, validation: Validation, section: Training) -> Best | None:
        """This validation, if it is the best so far; or just the last, where that is to be kept.

        It is judged by the loss where the wanted score was not made. ``auto`` and ``last``: by the task's first score,
        wherever there is one; those that take long are not made in the first half.
        """
        scores = validation.scores
        metric = next(iter(scores), "loss") if section.select in OWN_SCORE else section.select
        now = Best(self.step, metric, scores[metric]) if metric in scores else Best(self.step, "loss", validation.loss)
        kept = section.select == "last" or better(now, self.best)
        return now if kept and math.isfinite(now.value) else None

    def count(self, best: Best | None) -> None:
        """Take note of a validation: the best so far, or one more that was not."""
        self.best, self.worse = (best, 0) if best else (self.best, self.worse + 1)

    def dump(self, resolved: Mapping[str, object] = MappingProxyType({})) -> bytes:
        """The bytes of ``state.json``; ``resolved`` is a copy of ``resolved.toml``, in case that is lost."""
        return json.dumps({"format": FORMAT, **asdict(self), "resolved": dict(resolved)}, indent=1).encode()

    @staticmethod
    def of(values: Mapping[str, object], path: Path) -> Progress:
        """What :meth:`dump` wrote into the checkpoint ``path``.

        Raises:
            Damaged: a value is missing, or of another kind.
        """
        try:
            return Progress(**{name: kind.validate_python(values[name]) for name, kind in _KINDS.items()})
        except (KeyError, ValidationError) as error:
            what = f"lacks {error}" if isinstance(error, KeyError) else error.errors()[0]["msg"]
            raise Damaged(f"is damaged: {what:.80}", str(path / STATE)) from None


_KINDS = {name: TypeAdapter[Any](kind) for name, kind in get_type_hints(Progress).items()}
"""Required types of a checkpoint's values."""


def load_progress(training: Path) -> Progress | None:
    """Progress from the newest undamaged checkpoint of a run; ``None`` if there is none."""
    for path in reversed(whole(training / "checkpoints")):
        try:
            return Progress.of(verified_state(path), path)
        except Damaged:
            continue
    return None


def divergence_error(what: str, step: int) -> Diverged:
    """The error of a diverged run, with advice."""
    return Diverged(f"{what}; try a lower training.rate or a longer training.warmup", f"step {step}")


def is_scoring_step(step: int, section: Training) -> bool:
    """Whether slow scores are computed at this step.

    ``auto`` and ``last``: not in the first half, when they mean little.
    """
    if section.select in OWN_SCORE:
        return section.steps is not None and 2 * step > section.steps
    return section.select != "loss"


def better(now: Best, best: Best | None) -> bool:
    """Lower loss or higher score; a new kind of metric always is."""
    if best is None or now.metric != best.metric:
        return True
    return now.value < best.value if now.metric == "loss" else now.value > best.value
