"""How sure a model is of what it wrote, and of which outputs a person is told that it is not.

The confidence of an output is the geometric mean of the probabilities of its tokens, ``</s>`` included, from 0 to 1. It
is doubted where it is less than usual on the validation texts (``tasks/metrics/calibration.py``).
"""

from __future__ import annotations

import json
import math
from pathlib import Path

from regard.config import FORMAT, checksum
from regard.system import disk
from regard.system.errors import Damaged

CONFIDENCE = "confidence.json"
"""The file of a model folder; imported models and those of earlier versions have none."""


def confidence_of(log_probability: float, tokens: int) -> float:
    """``exp(log_probability / tokens)``, from 0 to 1; NaN where the probability is not known.

    Args:
        log_probability: natural, of the whole output.
        tokens: of the output, ``</s>`` counted.
    """
    return math.exp(log_probability / max(1, tokens))


def is_doubted(confidence: float, below: float | None) -> bool | None:
    """Whether an output of this confidence is doubted; ``None`` where that, or ``below``, is not known."""
    return None if not below or math.isnan(confidence) else confidence < below


def confidence_content(below: float) -> bytes:
    """The bytes of :data:`CONFIDENCE`; ``below`` is 0 as long as nothing was fitted."""
    return (json.dumps({"format": FORMAT, "doubted_below": below}) + "\n").encode()


def read_doubted_below(folder: Path) -> float | None:
    """The confidence below which outputs of a folder's model are doubted; ``None`` where that is not known.

    Raises:
        RegardError: the file is damaged (:class:`Damaged`), or a newer Regard wrote it.
    """
    path = folder / CONFIDENCE
    if not path.exists():
        return None
    value = disk.json_of(path, error=Damaged)
    below = value.get("doubted_below") if isinstance(value, dict) else None
    if isinstance(value, dict):
        checksum.refuse_newer(value, path)
    if isinstance(below, bool) or not isinstance(below, int | float) or not 0 <= below <= 1:
        raise Damaged("is damaged: doubted_below is no number from 0 to 1", str(path))
    return float(below)
