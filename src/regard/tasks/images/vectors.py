"""Image embeddings: vectors of patches or whole images, from the layers of a trained classifier."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from regard.config import VitSection
from regard.system.errors import UsageError
from regard.tasks.encoding.vectors import POOLS, Floats, Pool, answer_of, transformer_layers, unit_rows
from regard.tasks.images.classifier import Image, ImageClassification


class ImageVectors:
    """A classifier of images as an encoder of them.

    Args:
        task: a loaded classifier of images.
        layer: counted from 1; default: the last, the input of the classifier.

    Raises:
        UsageError: the model has no such layer.
    """

    def __init__(self, task: ImageClassification, layer: int | None = None) -> None:
        model = task.recipe.model
        assert isinstance(model, VitSection)
        self.task, self.pool = task, model.pool
        self.answer = answer_of(*transformer_layers("encoder")(task.model), layer)
        self.rows, self.columns = model.height // model.patch, model.width // model.patch
        self.size = model.d_model

    def images(self, images: Sequence[Image], pool: Pool | None = None, normalise: bool = False) -> Floats:
        """A row for each image: its class token's vector, its last patch's, or the mean or the largest of all.

        Args:
            images: as :meth:`ImageClassification.classify` takes them.
            pool: one of :data:`~regard.tasks.encoding.vectors.POOLS`; default: the model's own.
            normalise: each row gets length one.

        Raises:
            UsageError: there is no such pool.
            RegardError: an image is not of the size the model reads.
        """
        pool = pool or self.pool
        if pool not in POOLS:
            raise UsageError(f"{pool!r} is no way to pool; known are {', '.join(POOLS)}", "pool")
        rows = [POOLS[pool](tokens) for tokens in self._encode(images)]
        found = np.array(rows, np.float32).reshape(len(images), self.size)
        return unit_rows(found) if normalise else found

    def patches(self, images: Sequence[Image], normalise: bool = False) -> Floats:
        """For each image a row for each patch, in row-major order: images × patches × size."""
        found = self._encode(images)[:, 1:]
        return unit_rows(found) if normalise else found

    @torch.inference_mode()
    def _encode(self, images: Sequence[Image]) -> Floats:
        """For each image the vectors of its class token and its patches."""
        batches = self.task.batches(self.task.images(images))
        shape = (-1, 1 + self.rows * self.columns, self.size)
        parts = [self.answer(batch).float().cpu().numpy().reshape(shape) for batch in batches]
        found: Floats = np.concatenate([np.zeros((0, *shape[1:]), np.float32), *parts])
        return found
