"""What is usual of sound translations, and what the probabilities of words say, fitted on validation pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np

from regard.tasks.metrics.calibration import monotone_map
from regard.tasks.text.writer import Hypothesis
from regard.tasks.translation.guard import fit, forced_passes
from regard.tasks.translation.translator import Translation
from regard.tasks.translation.word_confidence import in_reference
from regard.text.confidence import Calibration
from regard.text.language_tokens import Direction

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
    first, given, right = defaultdict[Direction, list[tuple[Translation, str, str]]](list), list[float](), list[bool]()
    for place, (task, source, reference, best) in enumerate(pairs):
        check()
        if place < MOST:
            first[task.direction].append((task, source, reference))
        words = task.word_log_probabilities(best)
        given += [word.confidence for word in words]
        right += in_reference([word.text for word in words], reference)
    asked = (zip(*some, strict=True) for some in first.values())
    read = (one for (task, *_), *sides in asked for one in forced_passes(task, *sides))
    return Calibration(fit(read), monotone_map(np.array(given), np.array(right, np.bool_)))
