"""A convolutional network for the images of four digits, and how far its positions see, layer by layer.

It is there to be compared with the Vision Transformer, whose heads reach across the image from the first layer on: a
convolution sees its neighbours alone, and only layer after layer more of the image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from regard.nn.dropout import reseed
from regard.runs.workers.processes import torch_threads
from regard.system.keys import generator, key
from regard.tasks.training.own_model import fit
from regard.training.log import Reporter

CHANNELS = (24, 48, 96, 128)
"""Of each layer; about as many weights as the Vision Transformer."""
KERNEL, POOL = 3, 2
CNN_STEPS, BATCH, RATE = 1_500, 64, 2e-3
LARGEST = 255
DIGITS = 10
Labelled = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""Images, count × side × side, and the label of each."""


class ConvolutionalNetwork(nn.Module):
    """3 × 3 convolutions with ReLU, max pooling between them, the mean over all positions, a linear layer.

    Args:
        channels: of each convolution.
    """

    def __init__(self, channels: Sequence[int]) -> None:
        super().__init__()
        sizes = pairwise((1, *channels))
        self.convolutions = nn.ModuleList(nn.Conv2d(*size, KERNEL, padding=KERNEL // 2) for size in sizes)
        self.output = nn.Linear(channels[-1], DIGITS)

    def activations(self, images: Tensor) -> list[Tensor]:
        """The output of each layer, count × channels × side × side, of images with one channel."""
        found = [images]
        for layer, convolution in enumerate(self.convolutions):
            pooled = functional.max_pool2d(found[-1], POOL) if layer else images
            found.append(functional.relu(convolution(pooled)))
        return found[1:]

    def forward(self, images: Tensor) -> Tensor:
        """Scores of the ten digits."""
        scores: Tensor = self.output(self.activations(images)[-1].mean((2, 3)))
        return scores

    @torch.no_grad()
    def classify(self, images: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The digit that occurs twice in each image."""
        digits: NDArray[np.int64] = self(_pixels(images)).argmax(1).numpy()
        return digits


def train_cnn(
    output: Path,
    parts: Mapping[str, Labelled],
    seed: int,
    steps: int,
    reporter: Reporter,
    should_stop: Callable[[], bool],
    threads: int | None,
) -> ConvolutionalNetwork:
    """Train the network in a folder; a run that was stopped there resumes, a finished one is opened.

    Raises:
        Stopped: ``should_stop`` returned true.
    """
    (pixels, labels), valid = (
        (_pixels(images), torch.from_numpy(digits)) for images, digits in (parts["train"], parts["valid"])
    )

    def batches(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.from_numpy(generator(seed, "order of the images", epoch).permutation(len(labels)))
        return ((pixels[some], labels[some]) for some in order.split(BATCH))

    reseed(key(seed, "convolutions"))
    with torch_threads(threads or torch.get_num_threads()):
        return fit(
            ConvolutionalNetwork(CHANNELS),
            batches,
            loss=lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]),
            valid=[valid],
            steps=steps,
            rate=RATE,
            seed=seed,
            out=output,
            arguments={"channels": list(CHANNELS)},
            reporter=reporter,
            should_stop=should_stop,
        )


def _pixels(images: NDArray[np.uint8]) -> Tensor:
    """Images with one channel, from 0 to 1."""
    return torch.from_numpy(images)[:, None].float() / LARGEST


@dataclass(frozen=True)
class ReceptiveField:
    """How far the positions of a layer see, in pixels.

    Args:
        distance: mean distance from a position to the pixels that its output depends on, weighted by how much.
        side: of the square in which all of these lie; at an edge a part of it is outside the image.
    """

    distance: float
    side: int


def receptive_fields(model: ConvolutionalNetwork, images: NDArray[np.uint8]) -> tuple[ReceptiveField, ...]:
    """How far each layer sees, by the gradient of a position's output with respect to the pixels [Luo16 §2].

    The output is the sum over the channels. The positions are as many as the last layer has, evenly spread.
    """
    pixels = _pixels(images).requires_grad_()
    layers = model.activations(pixels)
    return tuple(_receptive_field(pixels, layer, layers[-1].shape[-1]) for layer in layers)


def _receptive_field(images: Tensor, layer: Tensor, positions: int) -> ReceptiveField:
    side, pixels = layer.shape[-1], torch.arange(images.shape[-1]) + 0.5
    places = range(side // positions // 2, side, side // positions)
    distances, seen = [], []
    for row, column in product(places, repeat=2):
        (gradient,) = torch.autograd.grad(layer[:, :, row, column].sum(), images, retain_graph=True)
        weight = gradient[:, 0].abs()
        down, across = (pixels - (place + 0.5) * len(pixels) / side for place in (row, column))
        far = weight * torch.hypot(down[:, None], across)
        distances.append(far.sum((1, 2)) / weight.sum((1, 2)))  # 0 / 0 where no channel is active
        seen += [down[weight.any(2).any(0)], across[weight.any(1).any(0)]]
    offsets = torch.cat(seen)
    return ReceptiveField(float(torch.cat(distances).nanmean()), int(offsets.max() - offsets.min()) + 1)
