"""What is usual of sound translations, and what the probabilities of words say, fitted on validation pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from regard.tasks.metrics.calibration import monotone_map
from regard.tasks.translation.forced_pass import forced_pass
from regard.tasks.translation.guard import ForcedPass, fit
from regard.tasks.translation.translator import Hypothesis, Translation
from regard.tasks.translation.word_confidence import in_reference
from regard.text.confidence import Calibration

MOST = 300
"""Pairs that a guard is fitted to, the first ones: more take longer and change thresholds little."""


def calibrate(
    pairs: Iterable[tuple[Translation, str, str, Hypothesis]], check: Callable[[], None] = lambda: None
) -> Calibration:
    """What was fitted on pairs of sources and references, and on what a model wrote for the sources.

    Args:
        pairs: each with the translator of its direction, and its translation, searched for with scores.
        check: called before each; may raise.
    """
    read, given, right = list[tuple[str, str, ForcedPass | None]](), list[float](), list[bool]()
    for task, source, reference, best in pairs:
        check()
        if len(read) < MOST:
            read.append(forced_pass(task, source, reference))
        words = task.word_log_probabilities(best)
        given += [word.confidence for word in words]
        right += in_reference([word.text for word in words], reference)
    return Calibration(fit(read), monotone_map(np.array(given), np.array(right, np.bool_)))
