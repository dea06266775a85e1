"""Pixel scaling of image models: ``preprocessor_config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from regard.config import VitSection
from regard.convert.config_fields import Fields
from regard.convert.hub import fields_of
from regard.data.batches.patches import Scale
from regard.system.errors import RegardError

THEIRS = "preprocessor_config.json"
BRIGHTEST = 255.0


def scale_of(folder: Path, channels: int) -> Scale:
    """The scale in a Hugging Face folder for images of ``channels`` channels; default: that of ViT.

    Raises:
        RegardError: the file is damaged, divides by what is not above zero, or has numbers for other channels.
    """
    path = folder / THEIRS
    said = fields_of(path) if path.exists() else Fields({}, str(path))
    largest = 1 / said.positive("rescale_factor", 1 / BRIGHTEST) if said.flag("do_rescale", True) else 1.0
    normal = said.flag("do_normalize", True)
    mean = said.numbers("image_mean", 0.5) if normal else (0.0,)
    deviation = said.numbers("image_std", 0.5) if normal else (1.0,)
    largest = round(largest, 6)
    if not isfinite(largest) or min(largest, *deviation) <= 0:
        raise RegardError("is damaged: pixel values are divided by numbers above zero", str(path))
    scale = Scale(largest, mean, deviation)
    scale.refuse_others(channels, str(path))
    return scale


def processor(model: VitSection, scale: Scale) -> Mapping[str, Any]:
    """The values of ``preprocessor_config.json``; each channel has a number of its own there."""
    mean, deviation = (
        list(value * model.channels if len(value) == 1 else value) for value in (scale.mean, scale.deviation)
    )
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": model.height, "width": model.width},
        "do_rescale": True,
        "rescale_factor": 1 / scale.largest,
        "do_normalize": True,
        "image_mean": mean,
        "image_std": deviation,
    }
