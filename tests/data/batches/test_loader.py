"""Batches made in advance by a thread, from any position on: the same as without one."""

import itertools
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from regard.config import Recipe
from regard.data.batches import loader
from regard.data.batches.batch import Capacity, Position
from regard.data.batches.loader import DataLoader, iterate_ahead
from regard.data.batches.texts import Examples
from regard.data.prepare.bpe_dropout import Ragged


def running() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("regard-batches")]


def test_the_same_items_in_the_same_order() -> None:
    assert list(iterate_ahead(iter(range(100)), 3)) == list(range(100))
    assert not running()


def test_items_are_made_in_advance_but_not_without_bound() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(50):
            made.append(number)
            yield number

    received = iterate_ahead(items(), 2)
    assert next(received) == 0
    deadline = time.monotonic() + 5
    while len(made) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert made == [0, 1, 2, 3]  # one received, two ready, one waiting to be put
    received.close()  # type: ignore[attr-defined]
    assert not running()


def test_closing_and_dropping_end_the_thread() -> None:
    received = iterate_ahead(itertools.count(), 2)
    assert not running()  # nothing starts before the first item is asked for
    next(received)
    assert len(running()) == 1
    del received
    assert not running()


def test_a_forked_process_has_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    received = iterate_ahead(itertools.count(), 2)
    next(received)
    monkeypatch.setattr(loader.os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError):
        next(received)


class Plan:
    """Two epochs of three batches, for ever."""

    capacity = Capacity(10, 10, 8)

    def batches(self, position: Position):
        while True:
            yield position, np.arange(position.batch, position.batch + 2)
            position = self.after(position)

    def after(self, position: Position) -> Position:
        epoch, batch = divmod(3 * position.epoch + position.batch + 1, 3)
        return Position(epoch, 0, batch)


class Made:
    def __init__(self, place: Position, sentences_B) -> None:
        self.said = (place, tuple(sentences_B))
        self.tokens = self.room = 10


def feed(prefetch: int) -> DataLoader[Made]:
    return DataLoader(Made, Plan(), "f", 30.0, prefetch)  # type: ignore[arg-type]


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
            raise FileNotFoundError
        return Made(place, sentences_B)

    made = DataLoader(make, Plan(), "f", 30.0, prefetch).iterate()  # type: ignore[arg-type]
    assert next(made)[0].said[0] == Position()
    with pytest.raises(FileNotFoundError):
        next(made)
    assert not running()


def test_recipes_that_plan_otherwise_have_other_fingerprints() -> None:
    side = Ragged([[0] * 5] * 20)

    def fingerprint(content: str, tokens: int, **values) -> str:
        recipe = Recipe.model_validate({"task": "classification", "data": {"max_tokens": 16}, **values})
        return Examples.of(side, side, tokens).feed(recipe, content, Made).fingerprint

    plain = fingerprint("d", 32)
    assert plain == fingerprint("d", 32, training={"steps": 3})
    others = [fingerprint("e", 32), fingerprint("d", 64), fingerprint("d", 32, seed=2)]
    others.append(fingerprint("d", 32, data={"max_tokens": 16, "look_ahead": 1}))
    assert len({plain, *others}) == 5
