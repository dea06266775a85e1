"""Images as packed patches [Dosovitskiy21 §3.1]: scaling, augmentation (shift, warp) and batching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from regard.config import Recipe
from regard.data.batches.batch import Capacity, Ids, Position
from regard.data.batches.sampler import DataLoader, plan_batches
from regard.data.corpora.images import Pixels, Shape
from regard.data.prepare.shards import Side
from regard.system.errors import RegardError
from regard.system.keys import generator

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@dataclass(frozen=True)
class Scale:
    """From pixel values to what a model reads: ``(value / largest - mean) / deviation``.

    Args:
        largest: what full brightness is.
        mean, deviation: of a channel's values between 0 and 1; one number is for all channels.
    """

    largest: Positive
    mean: Annotated[tuple[Finite, ...], Field(min_length=1)] = (0.5,)
    deviation: Annotated[tuple[Positive, ...], Field(min_length=1)] = (0.5,)

    def refuse_others(self, channels: int, where: str) -> None:
        """Raise a RegardError if images of ``channels`` channels cannot be scaled; ``where``: the file to name."""
        for name, numbers in (("mean", self.mean), ("deviation", self.deviation)):
            if len(numbers) not in (1, channels):
                message = f"has a {name} of {len(numbers)} numbers, but its images have {channels} channels"
                raise RegardError(message, where)


@dataclass(frozen=True)
class PatchGrid:
    """How images become patches.

    Args:
        shape: of an image.
        patch: pixels of a patch's side.
        scale: of its values.
    """

    shape: Shape
    patch: int
    scale: Scale

    @property
    def patches(self) -> int:
        """Patches of an image."""
        return (self.shape.height // self.patch) * (self.shape.width // self.patch)

    @property
    def tokens(self) -> int:
        """Tokens of an image: its patches, and the class token before them."""
        return 1 + self.patches

    def cut(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """``pixels_TP``: for each image a row of zeros for the class token, then its patches row by row.

        Within a patch values are ordered channel by channel, then row by row, as a convolution flattens its weight.

        Args:
            images: count × height × width × channels.
        """
        count, side, shape = len(images), self.patch, self.shape
        mean, deviation = (np.array(one, np.float32) for one in (self.scale.mean, self.scale.deviation))
        scaled = (images.astype(np.float32) / np.float32(self.scale.largest) - mean) / deviation
        places = (shape.height // side, shape.width // side)
        tiles = scaled.reshape(count, places[0], side, places[1], side, shape.channels).transpose(0, 1, 3, 5, 2, 4)
        rows = tiles.reshape(count, self.patches, side * side * shape.channels)
        return np.pad(rows, ((0, 0), (1, 0), (0, 0))).reshape(count * self.tokens, -1)


@dataclass(frozen=True)
class ImageBatch:
    """Images end to end as patches, and their labels end to end.

    Args:
        pixels_TP: the pixels of every patch; zeros at a class token, and after the last image.
        starts_B, lengths_B: where images lie; spare ones have length 0.
        count: images.
        labels_X: the labels of all; ``counts_B``: how many each image has.
        sentences: which images of the data these are.
    """

    pixels_TP: NDArray[np.float32]
    starts_B: Ids
    lengths_B: Ids
    count: int
    labels_X: Ids
    counts_B: Ids
    sentences: Ids

    @property
    def tokens(self) -> int:
        """Real tokens."""
        return int(self.lengths_B.sum())

    @property
    def room(self) -> int:
        """Tokens there is room for."""
        return len(self.pixels_TP)


def pack_images(cut: PatchGrid, images: NDArray[Any], room: int) -> tuple[NDArray[np.float32], Ids, Ids]:
    """Images end to end, padded to ``room`` images: ``(pixels_TP, starts_B, lengths_B)``."""
    pixels_TP = cut.cut(images)
    spare = (room - len(images)) * cut.tokens
    starts_B = np.full(room, len(pixels_TP), np.int64)
    lengths_B = np.zeros(room, np.int64)
    starts_B[: len(images)] = np.arange(len(images)) * cut.tokens
    lengths_B[: len(images)] = cut.tokens
    return np.pad(pixels_TP, ((0, spare), (0, 0))), starts_B, lengths_B


@dataclass(frozen=True)
class ImageExamples:
    """Images and their labels in shards, as batches.

    Args:
        pixels, labels: two sides of as many examples.
        cut: how images become patches.
        room: images of a batch.
    """

    pixels: Side
    labels: Side
    cut: PatchGrid
    room: int

    @classmethod
    def of(cls, pixels: Side, labels: Side, cut: PatchGrid, tokens: int) -> ImageExamples:
        """With as many images in a batch as fit into ``tokens`` tokens."""
        return cls(pixels, labels, cut, max(1, tokens // cut.tokens))

    def images(self, sentences_B: Ids) -> Pixels:
        """These images: count × height × width × channels."""
        shape = self.cut.shape
        values, _ = self.pixels.gather(0, sentences_B)
        return values.reshape(len(sentences_B), shape.height, shape.width, shape.channels)

    def batch(self, sentences_B: Ids, images: NDArray[Any] | None = None) -> ImageBatch:
        """These images, packed; or others in their place."""
        images = self.images(sentences_B) if images is None else images
        labels_X, counts_B = self.labels.gather(0, sentences_B)
        return ImageBatch(*pack_images(self.cut, images, self.room), len(sentences_B), labels_X, counts_B, sentences_B)

    def all(self) -> list[ImageBatch]:
        """Every image once, in order."""
        order = np.arange(self.pixels.count)
        return [self.batch(order[begin : begin + self.room]) for begin in range(0, len(order), self.room)]

    def feed(self, recipe: Recipe, fingerprint: str) -> DataLoader[ImageBatch]:
        """Batches in random order, each image shifted and warped as in the recipe, differently every time."""
        shift, warp = recipe.images.shift, recipe.images.warp

        def make(place: Position, sentences_B: Ids) -> ImageBatch:
            images: NDArray[Any] = self.images(sentences_B)
            if warp:
                drawn = generator(recipe.seed, "warp", place.epoch, place.block, place.batch)
                images = warp_images(images, drawn.uniform(-warp, warp, (len(images), 2, 2)))
            if shift:
                drawn = generator(recipe.seed, "shift", place.epoch, place.block, place.batch)
                images = shift_images(images, drawn.integers(-shift, shift, (len(images), 2), endpoint=True))
            return self.batch(sentences_B, images)

        each, count = self.cut.tokens, self.pixels.count
        capacity, lengths_B = Capacity(self.room * each, self.room * each, self.room), np.full(count, each, np.int64)
        known = f"{fingerprint} {self.cut} {shift} {warp}"
        return DataLoader(make, *plan_batches((lengths_B,) * 2, (count,), count * each, capacity, recipe, known))


def shift_images(images: NDArray[Any], by: Ids) -> NDArray[Any]:
    """Shift each image down and to the right by ``by`` pixels; zeros enter from the edge."""
    reach = int(np.abs(by).max(initial=0))
    height, width = images.shape[1:3]
    padded = np.pad(images, ((0, 0), (reach, reach), (reach, reach), (0, 0)))
    rows = reach - by[:, :1] + np.arange(height)
    columns = reach - by[:, 1:] + np.arange(width)
    return padded[np.arange(len(images))[:, None, None], rows[:, :, None], columns[:, None, :]]


def warp_images(images: NDArray[Any], by_BAA: NDArray[np.float64]) -> NDArray[np.float32]:
    """Each image turned, sheared and stretched about its middle, at once, by a linear map of its plane.

    A pixel at (y, x) from the middle takes the value at ``(1 + by) (y, x)``, a mean of the four pixels around there by
    their distance; beyond the edge are zeros.

    Args:
        images: count × height × width × channels.
        by_BAA: what the map of each image adds to the map that changes nothing; both axes, down before right.
    """
    height, width = images.shape[1:3]
    middle = np.array([(height - 1) / 2, (width - 1) / 2])
    places_PA = np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"), -1).reshape(-1, 2) - middle
    there_BPA = places_PA @ (np.eye(2) + by_BAA).transpose(0, 2, 1) + middle
    there_BPA = np.clip(there_BPA, -1, (height, width)) + 1
    first_BPA = np.floor(there_BPA).astype(np.int64)
    share_BPA = (there_BPA - first_BPA).astype(np.float32)
    padded = np.pad(images, ((0, 0), (1, 2), (1, 2), (0, 0))).astype(np.float32)
    which_B = np.arange(len(images))
    found = np.zeros((len(images), height * width, images.shape[3]), np.float32)
    for down in (0, 1):
        for right in (0, 1):
            near_BPA = np.abs(np.array([1 - down, 1 - right], np.float32) - share_BPA)
            corner = padded[which_B[:, None], first_BPA[..., 0] + down, first_BPA[..., 1] + right]
            found += near_BPA.prod(-1, keepdims=True) * corner
    return found.reshape(images.shape)
