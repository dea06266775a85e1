"""Assets of an image model: pixel scaling, labels, and fitted calibration values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path

from regard.config import FORMAT
from regard.data.batches.patches import Scale
from regard.system.errors import RegardError
from regard.tasks.text.assets import LABELS, FittedValues, labels_content, read_labels, values_of

PIXELS = "pixels.json"


@dataclass(frozen=True)
class ImageAssets:
    """The scale of pixel values, and labels.

    Args:
        scale: from pixel values to model inputs.
        labels: the names of the classes, in the order of their scores; a regression has one, for its number.
        fitted: see :class:`~regard.tasks.text.assets.FittedValues`.
    """

    scale: Scale
    labels: tuple[str, ...]
    fitted: FittedValues = field(default_factory=FittedValues)

    @property
    def sizes(self) -> tuple[int, int]:
        """No pieces, and labels."""
        return 0, len(self.labels)

    @property
    def contents(self) -> Mapping[str, bytes]:
        """``pixels.json`` and ``labels.json``."""
        value = {"format": FORMAT, **asdict(self.scale)}
        return {
            PIXELS: (json.dumps(value, indent=1) + "\n").encode(),
            LABELS: labels_content(self.labels, self.fitted),
        }

    @property
    def sha256(self) -> str:
        """One fingerprint of scale and labels."""
        rests = json.dumps([asdict(self.scale), list(self.labels)])
        return hashlib.sha256(rests.encode()).hexdigest()

    @classmethod
    def load(cls, folder: Path) -> ImageAssets:
        """Those of a model folder.

        Raises:
            RegardError: a file is missing or damaged.
        """
        return cls(_scale(folder / PIXELS), *read_labels(folder / LABELS))


def _scale(path: Path) -> Scale:
    value = values_of(path)
    try:
        mean, deviation = (tuple(float(one) for one in value[name]) for name in ("mean", "deviation"))
        scale = Scale(float(value["largest"]), mean, deviation)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RegardError(f"is damaged: {error}", str(path)) from None
    divisors = (scale.largest, *scale.deviation)
    if not mean or not deviation or not all(isfinite(one) for one in (*mean, *divisors)) or min(divisors) <= 0:
        raise RegardError("is damaged: pixel values are divided by numbers above zero", str(path))
    return scale
