"""Images to put before a model: those of a file, else those the project makes itself, where the model reads such."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import UsageError
from regard.explore.kept import Kept

if TYPE_CHECKING:
    from regard.tasks.image_classification import ImageClassification

MOST = 1000
"""Images of a file that are shown, its first."""


@dataclass(frozen=True)
class Hung:
    """Some images.

    Args:
        pixels: images × height × width × channels.
        labels: of each; empty where it has none.
        total: how many there are altogether.
    """

    pixels: NDArray[Any]
    labels: tuple[str, ...]
    total: int


class Gallery:
    """Images for any model.

    Args:
        path: of a file of images: CSV, TSV or ``.npz``; ``None``: there is none.
        most: images of the file that are read, its first.
    """

    def __init__(self, path: Path | None, most: int = MOST) -> None:
        self._path, self._most = path, most
        self._read: Kept[Hung] = Kept(2)

    def some(self, task: ImageClassification, begin: int, count: int) -> Hung:
        """The images from number ``begin`` on, counted from 0; none where there are none for this model.

        Raises:
            RegardError: the file cannot be read, or its images are not of the size the model reads.
        """
        if self._path is None:
            return _made(task, begin, count)
        every = self._read.get(task.cut.shape, lambda: _of_file(task, self._path, self._most))
        part = slice(begin, begin + count)
        return Hung(every.pixels[part], every.labels[part], every.total)

    def one(self, task: ImageClassification, number: int) -> NDArray[Any]:
        """The pixels of one image, by its number from 0 on; people are told numbers from 1 on.

        Raises:
            UsageError: there is no such image.
        """
        found = self.some(task, number, 1)
        if not found.total:
            raise UsageError("there are no images here; draw one, or give a file of them by --images", "image")
        if not len(found.pixels):
            raise UsageError(f"there is no image {number + 1}; there are {found.total:,}", "image")
        pixels: NDArray[Any] = found.pixels[0]
        return pixels

    def label(self, task: ImageClassification, number: int) -> str | None:
        """What is known of one image, if anything."""
        labels = self.some(task, number, 1).labels
        return labels[0] or None if labels else None


def _of_file(task: ImageClassification, path: Path | None, most: int) -> Hung:
    from regard.tasks.image_files import some_images

    assert path is not None
    found = some_images(task, path, most)
    labels = tuple(label or "" for _, label in found)
    return Hung(task.images([pixels for pixels, _ in found]), labels, len(found))


def _made(task: ImageClassification, begin: int, count: int) -> Hung:
    """Images of several digits, those the demonstration tests with."""
    from regard.data.several_digits import SIDE, corpus
    from regard.tasks.image_demo import TEST, TRAIN, VALID

    shape = task.cut.shape
    if (shape.height, shape.width, shape.channels) != (SIDE, SIDE, 1):
        nothing = np.zeros((0, shape.height, shape.width, shape.channels), np.int64)
        return Hung(nothing, (), 0)
    begin = min(begin, TEST)
    pixels, labels = corpus(min(count, TEST - begin), task.recipe.seed, TRAIN + VALID + begin)
    return Hung(pixels[..., None], tuple(map(str, labels.tolist())), TEST)
