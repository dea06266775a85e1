"""What is usual of sound translations, fitted on validation pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from regard.tasks.translation.forced_pass import forced_pass
from regard.tasks.translation.guard import ForcedPass, fit
from regard.tasks.translation.translator import Translation
from regard.text.confidence import Calibration

MOST = 300
"""Pairs that a guard is fitted to, the first ones: more take longer and change thresholds little."""


def calibrate(pairs: Iterable[tuple[Translation, str, str]], check: Callable[[], None] = lambda: None) -> Calibration:
    """What was fitted on pairs of sources and references.

    Args:
        pairs: each with the translator of its direction.
        check: called before each; may raise.
    """
    read: list[tuple[str, str, ForcedPass | None]] = []
    for _, (task, source, reference) in zip(range(MOST), pairs, strict=False):
        check()
        read.append(forced_pass(task, source, reference))
    return Calibration(fit(read))
