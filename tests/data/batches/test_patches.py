"""Patches are what a strided convolution reads; batches hold every image once; moving is by whole pixels."""

import numpy as np
import pytest
import torch

from regard.config import Images, Recipe
from regard.data.batches.batch import Position
from regard.data.batches.patches import ImageExamples, PatchGrid, Scale, shift_images, warp_images
from regard.data.corpora.images import Image, Shape
from regard.data.prepare.bpe_dropout import Ragged
from regard.data.prepare.windowing import ImageEncoder, LabelIds

pytestmark = pytest.mark.usefixtures("watch_shapes")


def drawn(count: int, shape: Shape, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, shape.height, shape.width, shape.channels))


def held(images: np.ndarray) -> ImageExamples:
    count, *sizes = images.shape
    cut = PatchGrid(Shape(*sizes), 2, Scale(255.0))
    pixels, labels = Ragged(images.reshape(count, -1).tolist()), Ragged([[place % 3] for place in range(count)])
    return ImageExamples.of(pixels, labels, cut, 4 * cut.tokens + 1)


@pytest.mark.parametrize("shape", [Shape(4, 6), Shape(6, 4, 3)])
@pytest.mark.parametrize("patch", [1, 2])
def test_a_patch_times_a_matrix_is_a_convolution(shape: Shape, patch: int) -> None:
    images = drawn(3, shape)
    convolution = torch.nn.Conv2d(shape.channels, 5, patch, patch, dtype=torch.float64)
    scale = Scale(200.0, tuple(0.1 * (c + 1) for c in range(shape.channels)), tuple([0.25] * shape.channels))
    cut = PatchGrid(shape, patch, scale)
    read = (torch.from_numpy(images).double() / 200 - torch.tensor(scale.mean).double()) / 0.25
    wanted = convolution(read.permute(0, 3, 1, 2)).flatten(2).transpose(1, 2)
    pixels = torch.from_numpy(cut.cut(images)).double().reshape(3, cut.tokens, -1)
    assert not pixels[:, 0].any()
    found = torch.nn.functional.linear(pixels[:, 1:], convolution.weight.flatten(1), convolution.bias)
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


def test_every_image_is_validated_on_once_and_in_order() -> None:
    images = drawn(11, Shape(4, 4))
    examples = held(images)
    found = examples.all()
    assert examples.room == 4
    assert np.concatenate([batch.sentences for batch in found]).tolist() == list(range(11))
    assert np.concatenate([batch.labels_X for batch in found]).tolist() == [place % 3 for place in range(11)]
    assert [(batch.tokens, batch.room) for batch in found] == [(20, 20), (20, 20), (15, 20)]
    pixels = np.concatenate([batch.pixels_TP[: batch.tokens] for batch in found])
    np.testing.assert_array_equal(pixels, examples.cut.cut(images))
    last = found[-1]  # its spare room holds no image
    assert (last.starts_B.tolist(), last.lengths_B.tolist()) == ([0, 5, 10, 15], [5, 5, 5, 0])
    assert not last.pixels_TP[last.tokens :].any()


def test_batches_are_a_pure_function_of_the_position() -> None:
    examples = held(drawn(11, Shape(4, 4)))
    given = Recipe(task="image-classification", images=Images(shift=1, warp=0.2))
    feed = examples.feed(given, "data")
    walked = [batch for batch, _ in zip(feed.iterate(), range(7), strict=False)]
    place = Position()
    for (batch, after), _ in zip(feed.iterate(), range(7), strict=False):
        again, _ = next(feed.iterate(place))
        np.testing.assert_array_equal(again.pixels_TP, batch.pixels_TP)
        place = after
    first = np.sort(np.concatenate([batch.sentences for batch, _ in walked[:3]]))
    assert first.tolist() == list(range(11))
    other = examples.feed(Recipe(task="image-classification"), "data")
    assert other.fingerprint != feed.fingerprint
    assert feed.batches_per_epoch == 11 / 4


def test_moved_images_are_another_cut_of_a_larger_canvas() -> None:
    images = drawn(30, Shape(5, 4, 2))
    by = np.random.default_rng(2).integers(-3, 4, (30, 2))
    found = shift_images(images, by)
    for image, (down, right), one in zip(images, by, found, strict=True):
        wanted = np.zeros_like(image)
        for row in range(5):
            for column in range(4):
                if 0 <= row - down < 5 and 0 <= column - right < 4:
                    wanted[row, column] = image[row - down, column - right]
        np.testing.assert_array_equal(one, wanted)
    np.testing.assert_array_equal(shift_images(images, np.zeros((30, 2), np.int64)), images)


def test_warped_images_are_read_between_their_pixels() -> None:
    images = drawn(30, Shape(5, 4, 2))
    by = np.random.default_rng(2).uniform(-0.6, 0.6, (30, 2, 2))
    found = warp_images(images, by)
    for image, change, one in zip(images, by, found, strict=True):
        wanted = np.zeros(image.shape)
        for row, column in np.ndindex(5, 4):
            down, right = (np.eye(2) + change) @ (row - 2, column - 1.5) + (2, 1.5)
            for y, x in np.ndindex(5, 4):
                wanted[row, column] += max(0, 1 - abs(down - y)) * max(0, 1 - abs(right - x)) * image[y, x]
        np.testing.assert_allclose(one, wanted, atol=1e-4)
    np.testing.assert_array_equal(warp_images(images, np.zeros((30, 2, 2))), images)
    half_turn = np.broadcast_to(-2 * np.eye(2), (30, 2, 2))
    np.testing.assert_array_equal(warp_images(images, half_turn), images[:, ::-1, ::-1])


def test_codes_are_the_pixel_values_and_the_label() -> None:
    coding, pixels = ImageEncoder(LabelIds("single", ["a", "b"]), 9), np.array([0, 9, 3, 1])
    coded = coding.encode([Image(pixels, "b"), Image(pixels, "unknown")], "train")
    rows = [(ids.tolist(), label.tolist()) for ((ids, label),) in coded]
    assert rows == [(pixels.tolist(), [1]), (pixels.tolist(), [2])]
    assert (coding.sizes("train"), coding.own) == ((65_536, 4), {"labels": ["a", "b"], "largest": 9})
