"""Synthetic digit images: four digits, two of them equal; the class is the digit that occurs twice.

No part of an image tells the answer: a digit must be compared with one half an image away. An
image is a pure function of a seed and its number. The digits are drawn by hand below, and each time they come larger
than drawn, slanted, moved, of other brightness, over each other's edges, and in noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from regard.system.keys import generator

SIDE = 32
"""Pixels of an image's side."""
LARGEST = 255
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
