"""Assets of a model that reads images: the scale of pixel values, label names, fitted calibration values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from regard.data.batches.patches import Scale
from regard.tasks.assets import json_content, read_json
from regard.tasks.text.labels import LABELS, FittedValues, LabelsFile, labels_content

PIXELS = "pixels.json"


@dataclass(frozen=True)
class ImageAssets:
    """The scale of pixel values, and labels.

    Args:
        scale: from pixel values to model inputs.
        labels: the names of the classes, in the order of their scores; a regression has one, for its number.
        fitted: see :class:`FittedValues`.
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
        return {PIXELS: json_content(asdict(self.scale)), LABELS: labels_content(self.labels, self.fitted)}

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
        read = read_json(folder / LABELS, LabelsFile)
        return cls(read_json(folder / PIXELS, Scale), read.labels, read.fitted)
