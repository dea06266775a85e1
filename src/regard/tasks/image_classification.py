"""Classification of images: pixel values → one of several labels, any number of them, or a number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, overload

import numpy as np
import torch
from numpy.typing import NDArray

from regard.config import Recipe, VitSection
from regard.data.corpora import Corpus
from regard.data.images import LARGEST, Pixels, Shape, header, numbers
from regard.data.patches import Cut, ImageBatch, packed
from regard.errors import RegardError
from regard.models.build import vit
from regard.models.inputs import Patches, patches
from regard.models.vit import Vit
from regard.tasks.class_evaluation import ClassEvaluation, evaluated
from regard.tasks.image_assets import PIXELS, ImageAssets
from regard.tasks.reading import ROOM
from regard.tasks.teaching import device_of
from regard.tasks.verdicts import Judge, Scores, Verdict

Image = str | NDArray[Any]
"""Pixel values: a line with commas or tabs between them, or an array height × width (× channels)."""


class ImageClassification:
    """A classifier of images, ready to use.

    Args:
        recipe: what it was made by.
        assets: the scale of pixel values, labels, and what was fitted.
        model: the trained encoder with its head, on its device.
    """

    name: ClassVar[str] = "image-classification"

    def __init__(self, recipe: Recipe, assets: ImageAssets, model: Vit) -> None:
        self.recipe, self.assets, self.model = recipe, assets, model
        self.cut = cut_of(recipe, assets)

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Vit:
        """The encoder of a recipe with a head for so many labels."""
        assert isinstance(recipe.model, VitSection)
        return vit(recipe.model, max(1, sizes[1]), key)

    @staticmethod
    def opened(folder: Path) -> ImageAssets:
        """Scale and labels of a model folder."""
        return ImageAssets.load(folder)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return device_of(self.model)

    @overload
    def classify(self, image: Image) -> Verdict: ...
    @overload
    def classify(self, image: list[Any]) -> list[Verdict]: ...
    def classify(self, image: Image | list[Any]) -> Verdict | list[Verdict]:
        """What the model says of an image, or of each image of a list.

        A line may have a label behind its pixel values, as what is learned from; it is not looked at.

        Raises:
            RegardError: an image is not of the size the model reads, or a value is no pixel.
        """
        if isinstance(image, str | np.ndarray):
            return self.verdicts(self.scores([image]))[0]
        return self.verdicts(self.scores(image))

    def parsed(self, lines: Sequence[str], first: int = 1) -> list[Pixels]:
        """The pixel values of lines of CSV or TSV; a header in line 1, and empty lines, are passed over.

        Args:
            lines: some of a file's.
            first: the number of the first of them.

        Raises:
            RegardError: a line has too few values or too many, or one is no pixel; with its number.
        """
        numbered = [(number, line) for number, line in enumerate(lines, first) if line.strip()]
        if numbered and numbered[0][0] == 1 and header(_cells(numbered[0][1])):
            numbered = numbered[1:]
        return [self._line(line, f"line {number}") for number, line in numbered]

    def _line(self, line: str, where: str | None = None) -> Pixels:
        """The values of a line, without what stands behind them."""
        cells, wanted = _cells(line), self.cut.shape.values
        if len(cells) not in (wanted, wanted + 1):
            raise RegardError(f"has {len(cells):,} values; images of {self.cut.shape} have {wanted:,}", where)
        try:
            return numbers(cells[:wanted])
        except ValueError as error:
            raise RegardError(str(error), where) from None

    def images(self, given: Sequence[Image]) -> Pixels:
        """Images as one array: count × height × width × channels.

        Raises:
            RegardError: as :meth:`classify`.
        """
        shape = self.cut.shape
        sizes = (shape.height, shape.width, shape.channels)
        rows = [self._line(one) if isinstance(one, str) else _array(one, shape) for one in given]
        return np.array(rows, np.int64).reshape(len(rows), *sizes)

    def batches(self, images: Pixels) -> list[Patches]:
        """Images packed as patches, on the model's device, a few thousand tokens at a time."""
        room, nothing = max(1, ROOM // self.cut.tokens), np.zeros(0, np.int64)
        parts = [images[begin : begin + room] for begin in range(0, len(images), room)]
        made = [(packed(self.cut, part, len(part)), len(part)) for part in parts]
        return [patches(ImageBatch(*one, count, nothing, nothing, nothing), self.device) for one, count in made]

    @torch.inference_mode()
    def scores(self, images: Sequence[Image]) -> Scores:
        """``score_BC``: the scores of every label before temperature and softmax; of a regression the number."""
        found = [self.model(batch).double().cpu().numpy() for batch in self.batches(self.images(images))]
        score_BC: Scores = np.concatenate([np.zeros((0, len(self.assets.labels))), *found])
        return score_BC

    def evaluate(self, corpus: Corpus, threshold: float | None = None) -> ClassEvaluation:
        """How well the model does on labelled images that it was not taught."""
        return evaluated(self.judge(threshold), self.scores, corpus)

    def verdicts(self, score_BC: Scores) -> list[Verdict]:
        """Scores as labels and probabilities."""
        return self.judge().verdicts(score_BC)

    def judge(self, threshold: float | None = None) -> Judge:
        """What turns scores into labels and probabilities."""
        return Judge(self.recipe.classification, self.assets.labels, self.assets.fitted, threshold)


def cut_of(recipe: Recipe, assets: ImageAssets) -> Cut:
    """How images become patches, by recipe and scale.

    Raises:
        RegardError: the scale is for images of other channels.
    """
    model = recipe.model
    assert isinstance(model, VitSection)
    assets.scale.refuse_others(model.channels, PIXELS)
    return Cut(Shape(model.height, model.width, model.channels), model.patch, assets.scale)


def _cells(line: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split("\t" if "\t" in line else ",")]


def _array(image: NDArray[Any], shape: Shape) -> Pixels:
    """An array's pixel values; channels need not be a dimension where there is one."""
    sizes = (shape.height, shape.width, shape.channels)
    fits = image.shape == sizes or (shape.channels == 1 and image.shape == sizes[:2]) or image.shape == (shape.values,)
    if not fits:
        raise RegardError(f"has the shape {image.shape}; the model reads images of {shape}", "image")
    if image.dtype.kind not in "biu" or image.min() < 0 or image.max() > LARGEST:
        raise RegardError(f"holds values that are no whole numbers from 0 to {LARGEST:,}", "image")
    pixels: Pixels = image.astype(np.int64).ravel()
    return pixels
