"""Images to explore a model with: read from a file, or generated digits for models that read such."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.explore.folders.lru_cache import LruCache
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.images.classifier import ImageClassification

MOST = 1000
"""Most images of a file to show, from its start."""


@dataclass(frozen=True)
class ImageBatch:
    """A batch of images.

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
        path: of a file of images: CSV, TSV or ``.npz``; or ``None``.
        most: images of the file that are read, its first.
    """

    def __init__(self, path: Path | None, most: int = MOST) -> None:
        self._path, self._most = path, most
        self._read: LruCache[ImageBatch] = LruCache(2)

    def batch(self, task: ImageClassification, begin: int, count: int) -> ImageBatch:
        """The images from number ``begin`` on, counted from 0; empty if there are none for this model.

        Raises:
            RegardError: the file cannot be read, or its images are not of the size the model reads.
        """
        if self._path is None:
            return _digit_images(task, begin, count)
        every = self._read.get(task.cut.shape, lambda: _read_images(task, self._path, self._most))
        part = slice(begin, begin + count)
        return ImageBatch(every.pixels[part], every.labels[part], every.total)

    def image(self, task: ImageClassification, number: int) -> NDArray[Any]:
        """The pixels of one image, counted from 0; messages count from 1.

        Raises:
            UsageError: there is no such image.
        """
        found = self.batch(task, number, 1)
        if not found.total:
            raise UsageError("there are no images here; draw one, or give a file of them by --images", "image")
        if not len(found.pixels):
            raise UsageError(f"there is no image {number + 1}; there are {found.total:,}", "image")
        pixels: NDArray[Any] = found.pixels[0]
        return pixels

    def label(self, task: ImageClassification, number: int) -> str | None:
        """The label of one image, if any."""
        labels = self.batch(task, number, 1).labels
        return labels[0] or None if labels else None


def _read_images(task: ImageClassification, path: Path | None, most: int) -> ImageBatch:
    from regard.tasks.images.classifier import some_images

    assert path is not None
    found = some_images(task, path, most)
    labels = tuple(label or "" for _, label in found)
    return ImageBatch(task.images([pixels for pixels, _ in found]), labels, len(found))


def _digit_images(task: ImageClassification, begin: int, count: int) -> ImageBatch:
    """Generated images of several digits: the demonstration's test set."""
    from regard.data.demo.digits import SIDE, corpus
    from regard.runs.demo.images import TEST, TRAIN, VALID

    shape = task.cut.shape
    if (shape.height, shape.width, shape.channels) != (SIDE, SIDE, 1):
        nothing = np.zeros((0, shape.height, shape.width, shape.channels), np.int64)
        return ImageBatch(nothing, (), 0)
    begin = min(begin, TEST)
    pixels, labels = corpus(min(count, TEST - begin), task.recipe.seed, TRAIN + VALID + begin)
    return ImageBatch(pixels[..., None], tuple(map(str, labels.tolist())), TEST)
