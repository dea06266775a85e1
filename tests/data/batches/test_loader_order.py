"""Batches of any task from any position on: a pure function of it, with and without a thread."""

import itertools

import numpy as np
import pytest

from regard.config import Recipe
from regard.data.batches.batch import Capacity, Position
from regard.data.batches.loader import DataLoader


class Plan:
    """Two epochs of three batches, for ever."""

    capacity = Capacity(10, 10, 8)

    def batches(self, position: Position):
        while True:
            yield position, np.arange(position.batch, position.batch + 2)
            position = self.after(position)

    def after(self, position: Position) -> Position:
        return (
            Position(position.epoch + 1, 0, 0)
            if position.batch == 2
            else Position(position.epoch, 0, position.batch + 1)
        )


class Made:
    def __init__(self, place: Position, sentences_B) -> None:
        self.said = (place, tuple(sentences_B))
        self.tokens = self.room = 10


def feed(prefetch: int) -> DataLoader[Made]:
    return DataLoader(Plan(), Made, "f", 30.0, prefetch)  # type: ignore[arg-type]


@pytest.mark.parametrize("prefetch", [0, 1, 5])
def test_each_batch_comes_with_the_position_behind_it(prefetch: int) -> None:
    found = list(itertools.islice(feed(prefetch).iterate(), 8))
    places = [batch.said[0] for batch, _ in found]
    assert places[0] == Position()
    assert places[1:] == [behind for _, behind in found[:-1]]


@pytest.mark.parametrize("prefetch", [0, 3])
@pytest.mark.parametrize("start", range(7))
def test_from_any_position_on_it_is_the_same(prefetch: int, start: int) -> None:
    whole = list(itertools.islice(feed(0).iterate(), 12))
    position = whole[start - 1][1] if start else None
    again = list(itertools.islice(feed(prefetch).iterate(position), 5))
    assert [batch.said for batch, _ in again] == [batch.said for batch, _ in whole[start : start + 5]]


def test_an_epoch_is_counted_in_batches() -> None:
    assert feed(0).batches_per_epoch == 3.0


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_error_in_making_comes_through(prefetch: int) -> None:
    def make(place: Position, sentences_B) -> Made:
        if place.batch == 1:
            raise OSError("gone")
        return Made(place, sentences_B)

    made = DataLoader(Plan(), make, "f", 30.0, prefetch).iterate()  # type: ignore[arg-type]
    assert next(made)[0].said[0] == Position()
    with pytest.raises(OSError, match="gone"):
        next(made)


def test_recipes_that_plan_otherwise_have_other_fingerprints() -> None:
    from regard.data.batches.texts import Examples

    class Side:
        count, tokens, longest = 20, 100, 5

        def lengths(self, epoch, sentences_B):
            return np.full(len(sentences_B), 5)

        def gather(self, epoch, sentences_B):
            raise AssertionError

    def fingerprint(content: str, tokens: int, **values) -> str:
        recipe = Recipe.model_validate({"task": "classification", "data": {"max_tokens": 16}, **values})
        return Examples.of(Side(), Side(), tokens).feed(recipe, content, lambda place, some: None, 0).fingerprint  # type: ignore

    plain = fingerprint("d", 32)
    assert plain == fingerprint("d", 32, training={"steps": 3})
    others = [fingerprint("e", 32), fingerprint("d", 64), fingerprint("d", 32, seed=2)]
    others.append(fingerprint("d", 32, data={"max_tokens": 16, "look_ahead": 1}))
    assert len({plain, *others}) == 5
