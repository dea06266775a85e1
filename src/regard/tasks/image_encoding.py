"""Encoding of images: pixel values → vectors, of each patch or of a whole image, by a trained classifier's layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from regard.config import VitSection
from regard.errors import UsageError
from regard.tasks.encoding import POOLS, Floats, Pool, answer_of, attentive, scaled
from regard.tasks.image_classification import Image, ImageClassification


class ImageVectors:
    """A classifier of images as an encoder of them.

    Args:
        task: a loaded classifier of images.
        layer: counted from 1; default: the last, whose vectors are what the classes are told by.

    Raises:
        UsageError: the model has no such layer.
    """

    def __init__(self, task: ImageClassification, layer: int | None = None) -> None:
        model = task.recipe.model
        assert isinstance(model, VitSection)
        self.task, self.pool = task, model.pool
        self.answer = answer_of(*attentive("encoder")(task.model), layer)
        self.rows, self.columns = model.height // model.patch, model.width // model.patch
        self.size = model.d_model

    def images(self, images: Sequence[Image], pool: Pool | None = None, normalise: bool = False) -> Floats:
        """A row for each image: its class token's vector, its last patch's, or the mean or the largest of all.

        Args:
            images: as :meth:`ImageClassification.classify` takes them.
            pool: one of :data:`~regard.tasks.encoding.POOLS`; default: the model's own.
            normalise: each row gets length one.

        Raises:
            UsageError: there is no such pool.
            RegardError: an image is not of the size the model reads.
        """
        pool = pool or self.pool
        if pool not in POOLS:
            raise UsageError(f"{pool!r} is no way to pool; known are {', '.join(POOLS)}", "pool")
        rows = [POOLS[pool](tokens) for tokens in self._read(images)]
        found = np.array(rows, np.float32).reshape(len(images), self.size)
        return scaled(found) if normalise else found

    def patches(self, images: Sequence[Image], normalise: bool = False) -> Floats:
        """For each image a row for each patch, row by row as they lie: images × patches × size."""
        found = self._read(images)[:, 1:]
        return scaled(found) if normalise else found

    @torch.inference_mode()
    def _read(self, images: Sequence[Image]) -> Floats:
        """For each image the vectors of its class token and its patches."""
        batches = self.task.batches(self.task.images(images))
        shape = (-1, 1 + self.rows * self.columns, self.size)
        parts = [self.answer(batch).float().cpu().numpy().reshape(shape) for batch in batches]
        found: Floats = np.concatenate([np.zeros((0, *shape[1:]), np.float32), *parts])
        return found
