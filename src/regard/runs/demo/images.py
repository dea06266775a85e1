"""Image demonstration: images of four digits, two of them equal; trains and scores a Vision Transformer and a CNN.

The class of an image is the digit that occurs twice. No part of an image tells the answer: a digit must be compared
with one half an image away. An image is a pure function of a seed and its number. The digits are drawn by hand below,
and each time they come larger than drawn, slanted, moved, of other brightness, over each other's edges, and in noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.runs.demo.convolution import CNN_STEPS, LARGEST, Labelled, ReceptiveField, receptive_fields, train_cnn
from regard.runs.demo.translation import put
from regard.runs.train import train
from regard.system.errors import Stopped
from regard.system.keys import generator
from regard.tasks.images.classifier import ImageClassification
from regard.training.log import Reporter

SIDE = 32
"""Pixels of an image's side."""
HALF = SIDE // 2

_DRAWN = """
.###. ..#.. .###. .###. ...#. ##### ..##. ##### .###. .###.
#...# .##.. #...# #...# ..##. #.... .#... ....# #...# #...#
#..## ..#.. ....# ....# .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. ..##. #..#. ....# ####. ...#. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# ..#.. #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# ..#.. #...# ...#.
.###. .###. ##### .###. ...#. .###. .###. ..#.. .###. .##..
"""
GLYPHS: NDArray[np.bool_] = np.array(
    [[[dot == "#" for dot in word] for word in line.split()] for line in _DRAWN.split("\n") if line]
).swapaxes(0, 1)
"""The ten digits: 10 × 7 × 5, true where there is ink."""
_PLACES = ((0, 0), (0, HALF), (HALF, 0), (HALF, HALF))
_PAIRS = tuple(combinations(range(len(_PLACES)), 2))


@dataclass(frozen=True)
class Digits:
    """An image and what is in it.

    Args:
        image: its pixels, 32 × 32 of 0 to 255.
        digits: upper left, upper right, lower left, lower right.
        label: the digit that occurs twice.
    """

    image: NDArray[np.uint8]
    digits: tuple[int, int, int, int]
    label: int


def several_digits(number: int, seed: int = 1) -> Digits:
    """The image of this number: a digit in each quarter, two of them equal."""
    draw = generator(seed, "several digits", number)
    label, *others = draw.permutation(10)[:3].tolist()
    twice = _PAIRS[draw.integers(len(_PAIRS))]
    rest = iter(others)
    digits = [label if place in twice else next(rest) for place in range(4)]
    canvas = np.zeros((SIDE, SIDE))
    for digit, corner in zip(digits, _PLACES, strict=True):
        _put(canvas, _draw_digit(digit, draw), corner, draw)
    noisy = canvas + draw.normal(0.0, 0.08, canvas.shape)
    image = np.clip(np.rint(noisy * LARGEST), 0, LARGEST).astype(np.uint8)
    return Digits(image, (digits[0], digits[1], digits[2], digits[3]), label)


def _draw_digit(digit: int, draw: np.random.Generator) -> NDArray[np.float64]:
    """A digit of twice its drawn size, slanted by up to two pixels, more or less bright."""
    large = np.kron(GLYPHS[digit], np.ones((2, 2)))
    slant = int(draw.integers(-2, 2, endpoint=True))
    rows = len(large)
    wide = np.zeros((rows, large.shape[1] + abs(slant)))
    for row in range(rows):
        by = round(slant * (rows - 1 - row) / (rows - 1)) - min(slant, 0)
        wide[row, by : by + large.shape[1]] = large[row]
    return wide * draw.uniform(0.55, 1.0)


def _put(
    canvas: NDArray[np.float64], ink: NDArray[np.float64], corner: tuple[int, int], draw: np.random.Generator
) -> None:
    """Lay a digit about its quarter, up to two pixels over its edges; the brighter ink is seen."""
    begin = []
    for edge, size in zip(corner, ink.shape, strict=True):
        first, last = max(0, edge - 2), min(SIDE, edge + HALF + 2) - size
        begin.append(int(draw.integers(first, last, endpoint=True)))
    part = canvas[begin[0] : begin[0] + ink.shape[0], begin[1] : begin[1] + ink.shape[1]]
    np.maximum(part, ink, out=part)


def corpus(count: int, seed: int = 1, first: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The images from number ``first`` on, count × 32 × 32, and the label of each."""
    made = [several_digits(number, seed) for number in range(first, first + count)]
    images = np.array([one.image for one in made], np.uint8).reshape(count, SIDE, SIDE)
    return images, np.array([one.label for one in made], np.int64)


TRAIN, VALID, TEST = 20_000, 1_000, 1_000
STEPS = 4_000
RECIPE: dict[str, object] = {
    "task": "image-classification",
    "model": {"layers": 3, "patch": 4, "d_model": 64, "d_ff": 256, "heads": 4, "positions": "grid", "dropout": 0.0},
    "images": {"shift": 2},
    "training": {"rate": 2e-3, "select": "accuracy"},
}
"""Small enough for a laptop's few minutes."""
LOOKED_AT = 128
"""Test images over which it is measured how far the convolutional network sees."""


@dataclass(frozen=True)
class ImageDemonstration:
    """Results of the demonstration, in per cent of the test images.

    Args:
        train, test: images.
        model: whose label is right.
        convolutional: whose label is right, of the convolutional network.
        nearest: as right as that of the training image with the nearest pixels.
        one_digit: the most that can be right by looking at one quarter alone.
        chance: by guessing.
        receptive_fields: how far each layer of the convolutional network sees.
    """

    train: int
    test: int
    model: float
    convolutional: float
    nearest: float
    receptive_fields: tuple[ReceptiveField, ...]
    one_digit: float = 50.0
    chance: float = 10.0


def demonstrate_images(
    output: Path,
    seed: int = 1,
    steps: int | None = None,
    reporter: Reporter | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
) -> tuple[ImageDemonstration, ImageClassification]:
    """Run the demonstration in a folder; the images lie in ``images/``, the models in ``model/`` and ``cnn/``.

    Args:
        output: the folder; a stopped run in it resumes.
        seed: of the images and of training.
        steps: updates, of the CNN at most 1,500; default: what suffices. A finished run with more steps requested
            continues.
        reporter: receives progress; ``should_stop``: called before every step.
        threads: processor threads; default: as many as torch takes.

    Raises:
        Stopped: ``should_stop`` returned true; the same command resumes.
    """
    reporter = reporter or Reporter()
    reporter.on_event("drawing the images")
    parts = make_images(seed)
    files = {name: output / "images" / f"{name}.npz" for name in parts}
    (output / "images").mkdir(parents=True, exist_ok=True)
    for name, (images, labels) in parts.items():
        content = BytesIO()
        np.savez(content, images=images, labels=labels)
        put(files[name], content.getvalue())
    model: ImageClassification = train(
        train=files["train"],
        valid=files["valid"],
        output=output / "model",
        recipe=RECIPE,
        seed=seed,
        steps=steps or STEPS,
        threads=threads,
        reporter=reporter,
        should_stop=should_stop,
        allow_mismatch=["training.steps"],
    )
    reporter.on_event("training a convolutional network on the same images")
    fewer = min(steps or CNN_STEPS, CNN_STEPS)
    cnn = train_cnn(output / "cnn", parts, seed, fewer, reporter, should_stop, threads)
    if should_stop():
        raise Stopped("stopped before the scores of the test images; all is saved, the same command makes them")
    reporter.on_event("classifying the test images")
    images, labels = parts["test"]
    found = [verdict.label for verdict in model.classify(list(images))]
    right = 100 * float(np.mean([one == str(label) for one, label in zip(found, labels.tolist(), strict=True)]))
    counted, near = (
        100 * float((said == labels).mean()) for said in (cnn.classify(images), nearest(*parts["train"], images))
    )
    seen = receptive_fields(cnn, images[:LOOKED_AT])
    return ImageDemonstration(len(parts["train"][1]), len(labels), right, counted, near, seen), model


def make_images(seed: int) -> dict[str, Labelled]:
    """Images and labels of each part, all different images."""
    found, first = {}, 0
    for name, count in (("train", TRAIN), ("valid", VALID), ("test", TEST)):
        found[name] = corpus(count, seed, first)
        first += count
    return found


def nearest(
    known: NDArray[np.uint8], labels: NDArray[np.int64], images: NDArray[np.uint8], at_once: int = 200
) -> NDArray[np.int64]:
    """For each image the label of the known one whose pixels are nearest, by the sum of squared differences."""
    rows = known.reshape(len(known), -1).astype(np.float32)
    squares = np.square(rows).sum(1)
    asked = images.reshape(len(images), -1).astype(np.float32)
    parts = [asked[begin : begin + at_once] for begin in range(0, len(asked), at_once)]
    found = [labels[(squares - 2 * part @ rows.T).argmin(1)] for part in parts]
    return np.concatenate([np.zeros(0, np.int64), *found])
