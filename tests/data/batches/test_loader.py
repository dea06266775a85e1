from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator

import pytest

from regard.data.batches.loader import iterate_ahead


def running() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "regard-batches"]


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


def test_an_error_comes_where_its_item_would_have() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    received = iterate_ahead(items(), 2)
    assert next(received) == 1
    with pytest.raises(ValueError, match="broken"):
        next(received)
    assert not running()
