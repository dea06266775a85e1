"""A small classifier of images for tests."""

from typing import Any

from regard.config import Recipe, VitSection
from regard.data.batches.patches import Scale
from regard.tasks.images.assets import ImageAssets
from regard.tasks.images.classifier import ImageClassification
from tests.models.small_models import stir


def image_classifier(**sizes: Any) -> ImageClassification:
    """A classifier of images of 6 × 4 pixels with three labels, untaught."""
    given = {"height": 6, "width": 4, "channels": 1, "patch": 2, "layers": 3, "d_model": 16, "d_ff": 32, "heads": 2}
    recipe = Recipe(task="image-classification", model=VitSection(**{**given, **sizes}))
    model = ImageClassification.build(recipe, (0, 3), key=5)
    stir(model)
    return ImageClassification(recipe, ImageAssets(Scale(9.0), ("a", "b", "c")), model.eval())
