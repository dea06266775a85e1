"""Image classification: pixel values → one label, several labels, or a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from regard.config import Recipe, VitSection
from regard.data.batches.patches import ImageBatch, PatchGrid, pack_images
from regard.data.corpora.images import ImageRows, Pixels, Shape, is_header, open_images, parse_cells, wrong_pixels
from regard.system.errors import RegardError
from regard.tasks.assets import PIXELS, ImageAssets
from regard.tasks.classification.classifier import LabelTask, Prediction, Scores
from regard.tasks.text.task import ROOM, inference_mode
from regard.text.counts import counted
from regard.text.lines import InvalidLines

if TYPE_CHECKING:
    from regard.models.bert import Vit
    from regard.models.inputs import Patches

Image = str | NDArray[Any]
"""Pixel values: a line with commas or tabs between them, or an array height × width (× channels)."""
Labelled = tuple[Pixels, str | None]


class ImageClassification(LabelTask[ImageAssets, "Vit"]):
    """A classifier of images, ready to use.

    Raises:
        RegardError: the scale is for images of other channels.
    """

    assets_class = ImageAssets
    open_corpus = staticmethod(open_images)

    def __init__(self, recipe: Recipe, assets: ImageAssets, model: Vit) -> None:
        super().__init__(recipe, assets, model)
        section = recipe.model
        assert isinstance(section, VitSection)
        assets.scale.refuse_others(section.channels, PIXELS)
        shape = Shape(section.height, section.width, section.channels)
        self.cut = PatchGrid(shape, section.patch, assets.scale)

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Vit:
        """The encoder of a recipe with a head for n labels."""
        from regard.models.build import vit

        assert isinstance(recipe.model, VitSection)
        return vit(recipe.model, max(1, sizes[1]), key)

    @overload
    def classify(self, image: Image) -> Prediction: ...
    @overload
    def classify(self, image: list[Any]) -> list[Prediction]: ...
    def classify(self, image: Image | list[Any]) -> Prediction | list[Prediction]:
        """The prediction for an image, or for each image of a list.

        A line may have a label after its pixel values, as in training files; it is ignored.

        Raises:
            RegardError: an image is not of the size the model reads, or a value is no pixel.
        """
        if isinstance(image, str | np.ndarray):
            return self.predictor().predictions(self.scores([image]))[0]
        return self.predictor().predictions(self.scores(image))

    def parse_lines(self, lines: Sequence[str], first: int = 1) -> list[Pixels]:
        """The pixel values of lines of CSV or TSV; a header in line 1, and empty lines, are passed over.

        Args:
            lines: some of a file's.
            first: the number of the first of them.

        Raises:
            RegardError: a line has too few values or too many, or one is no pixel; with its number.
        """
        numbered = [(number, line) for number, line in enumerate(lines, first) if line.strip()]
        if numbered and numbered[0][0] == 1 and is_header(_cells(numbered[0][1])):
            numbered = numbered[1:]
        return [self._line(line, f"line {number}") for number, line in numbered]

    def _line(self, line: str, where: str | None = None) -> Pixels:
        """The pixel values of a line, without anything after them."""
        cells, wanted = _cells(line), self.cut.shape.values
        if len(cells) not in (wanted, wanted + 1):
            raise RegardError(f"has {counted(len(cells), 'value')}; images of {self.cut.shape} have {wanted:,}", where)
        try:
            return parse_cells(cells[:wanted])
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
        from regard.models.inputs import patches

        room, nothing = max(1, ROOM // self.cut.tokens), np.zeros(0, np.int64)
        parts = [images[begin : begin + room] for begin in range(0, len(images), room)]
        made = [(pack_images(self.cut, part, len(part)), len(part)) for part in parts]
        return [patches(ImageBatch(*one, count, nothing, nothing, nothing), self.device) for one, count in made]

    @inference_mode
    def scores(self, images: Sequence[Image]) -> Scores:
        """``score_BC``: the scores of every label before temperature and softmax; of a regression one."""
        found = [self.model(batch).double().cpu().numpy() for batch in self.batches(self.images(images))]
        return np.concatenate([np.zeros((0, len(self.assets.labels))), *found])


def _cells(line: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split("\t" if "\t" in line else ",")]


def _array(image: NDArray[Any], shape: Shape) -> Pixels:
    """An array's pixel values; a single channel needs no dimension."""
    sizes = (shape.height, shape.width, shape.channels)
    fits = image.shape == sizes or (shape.channels == 1 and image.shape == sizes[:2]) or image.shape == (shape.values,)
    if not fits:
        raise RegardError(f"has the shape {image.shape}; the model reads images of {shape}", "image")
    if wrong := wrong_pixels(image):
        raise RegardError(wrong, "image")
    return image.astype(np.int64).ravel()


def some_images(task: ImageClassification, path: Path, count: int) -> list[Labelled]:
    """The first images of a file, each with its label; CSV and TSV may have no labels.

    Args:
        task: a classifier of images.
        path: CSV, TSV or ``.npz``, as :func:`~regard.data.corpora.images.open_images` reads them.
        count: of images, at most.

    Raises:
        RegardError: the file cannot be read, or holds no image.
    """
    corpus = open_images(path)
    rows = corpus.table.rows(InvalidLines()) if isinstance(corpus, ImageRows) else iter(())
    if isinstance(corpus, ImageRows) and len(next(rows, (0, []))[1]) == task.cut.shape.values:
        given = _unlabelled_rows(corpus)
    else:
        given = ((image.pixels, image.label) for image in corpus.examples())
    if not (found := list(islice(given, count))):
        raise RegardError("holds no image", corpus.name)
    return found


def _unlabelled_rows(corpus: ImageRows) -> Iterator[Labelled]:
    """Rows of pixel values alone; a header, which names them, is passed over."""
    for place, (line, cells) in enumerate(corpus.table.rows(InvalidLines())):
        if place == 0 and is_header(cells):
            continue
        try:
            yield parse_cells(cells), None
        except ValueError as error:
            raise RegardError(str(error), corpus.at(line)) from None
