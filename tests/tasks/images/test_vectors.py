"""Vectors of images are the model's own: what its head reads, whatever else is in the batch."""

from typing import Any

import numpy as np
import pytest
import torch

from regard.nn.hooks import capture
from regard.system.errors import RegardError, UsageError
from regard.tasks.encoding import ImageVectors
from regard.tasks.images.classifier import ImageClassification
from tests.explore.pictures.small_images import image_classifier
from tests.refusals import refused

IMAGES = list(np.random.default_rng(1).integers(0, 10, (5, 24)))


def alone(task: ImageClassification, image: np.ndarray, point: str | None = None) -> np.ndarray:
    (batch,) = task.batches(task.images([image]))
    with torch.inference_mode(), capture([point] if point else []) as heard:
        found = task.model.encoder(batch)
    return (heard[point][-1] if point else found).numpy()


@pytest.mark.parametrize("pool", ["first", "mean", "max"])
def test_an_image_has_the_vector_its_classes_are_told_by(pool: str) -> None:
    task = image_classifier(pool=pool)
    found = ImageVectors(task).images(IMAGES)
    assert found.shape == (5, 16)
    head: Any = task.model.head
    with torch.inference_mode():
        np.testing.assert_allclose(head.classes(torch.from_numpy(found)), task.scores(IMAGES), atol=1e-5)
    rows = alone(task, IMAGES[3])
    expected = {"first": rows[0], "mean": rows.mean(0), "max": rows.max(0)}
    np.testing.assert_allclose(found[3], expected[pool], atol=1e-5)
    np.testing.assert_allclose(ImageVectors(task).images(IMAGES[3:4], "last")[0], rows[-1], atol=1e-5)


def test_a_patch_has_its_own_and_lower_layers_too() -> None:
    task = image_classifier()
    vectors = ImageVectors(task, 2)
    assert (vectors.rows, vectors.columns) == (3, 2)
    found = vectors.patches(IMAGES)
    assert found.shape == (5, 6, 16)
    for image, rows in zip(IMAGES, found, strict=True):
        expected = alone(task, image, "encoder.1.feedforward_residual.residual")[1:]
        np.testing.assert_allclose(rows, expected, atol=1e-5)
    np.testing.assert_allclose(ImageVectors(task, 3).patches(IMAGES), ImageVectors(task).patches(IMAGES))
    assert not np.allclose(found, ImageVectors(task).patches(IMAGES))


def test_vectors_of_length_one_and_of_nothing() -> None:
    vectors = ImageVectors(image_classifier())
    for found in (vectors.images(IMAGES, normalise=True), vectors.patches(IMAGES, normalise=True)):
        np.testing.assert_allclose(np.linalg.norm(found, axis=-1), 1, atol=1e-6)
    assert vectors.images([]).shape == (0, 16)
    assert vectors.patches([]).shape == (0, 6, 16)


def test_what_cannot_be_is_refused() -> None:
    with refused(UsageError, "--layer", "4", "3"):
        ImageVectors(image_classifier(), 4)
    with refused(UsageError, "pool", "'sum'"):
        ImageVectors(image_classifier()).images(IMAGES, "sum")  # type: ignore[arg-type]
    with refused(RegardError, "image", "6 x 4 x 1"):
        ImageVectors(image_classifier()).images([IMAGES[0][1:]])
