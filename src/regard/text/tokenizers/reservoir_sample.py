"""Reservoir sampling from a stream, e.g. to learn a vocabulary from a corpus larger than memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from regard.system.keys import generator

Item = TypeVar("Item")
CHUNK = 4096


def sample(items: Iterable[Item], count: int, seed: int) -> list[Item]:
    """``count`` items drawn evenly without replacement (all, if there are fewer): a reservoir, a function of the seed.

    The order of the stream is kept.
    """
    draws = generator(seed, "sample")
    kept: list[tuple[int, Item]] = []
    places: list[int] = []
    for number, item in enumerate(items):
        if number < count:
            kept.append((number, item))
            continue
        if not places:  # drawn in chunks: one draw costs a microsecond, a stream may have 10⁸ items
            places = draws.integers(0, range(number + 1, number + 1 + CHUNK)).tolist()[::-1]
        place = places.pop()
        if place < count:
            kept[place] = (number, item)
    return [item for _, item in sorted(kept, key=lambda entry: entry[0])]
