"""Deterministic groups of texts, and waiting for input that can be interrupted."""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.cli.io.lines import AHEAD, ReadAhead, bursts, chunks, json_line, poll_lines, raw_lines
from regard.system.errors import RegardError
from tests.refusals import refused


@given(st.lists(st.text(max_size=9), max_size=60), st.integers(1, 7), st.integers(1, 20))
def test_chunks_are_the_same_from_any_boundary_on(texts: list[str], most: int, room: int) -> None:
    found = list(chunks(texts, most, room))
    assert [text for chunk in found for text in chunk] == texts
    assert all(len(chunk) == 1 or (len(chunk) <= most and sum(map(len, chunk)) <= room) for chunk in found)
    begin = 0
    for number, chunk in enumerate(found):
        assert list(chunks(texts[begin:], most, room)) == found[number:]
        begin += len(chunk)


def test_what_comes_before_a_long_text_does_not_wait_for_it() -> None:
    lines = ["a", "b", "x" * 99, "c", "d"]
    for found in (chunks(lines, 10, 50), bursts(iter(lines), 10, 30.0, room=50)):
        assert list(found) == [["a", "b"], ["x" * 99], ["c", "d"]]


def test_bursts_keep_order_and_lose_nothing() -> None:
    lines = [str(i) for i in range(10_000)]
    found = list(bursts(iter(lines), most=64))
    assert [line for burst in found for line in burst] == lines
    assert max(map(len, found)) <= 64
    assert list(bursts(iter([]))) == []


@pytest.mark.parametrize("grouped", [chunks, bursts])
def test_what_comes_before_a_line_that_cannot_be_read_is_given_first(grouped: Any) -> None:
    def lines() -> Iterator[str]:
        yield from ("a", "b")
        raise RegardError("wrong", "stdin:3")

    given: list[str] = []
    with refused(RegardError, "stdin:3"):
        given.extend(line for group in grouped(lines()) for line in group)
    assert given == ["a", "b"]


def test_no_more_is_read_ahead_than_there_is_room_for() -> None:
    asked = []

    def lines() -> Iterator[str]:
        for number in range(10):
            asked.append(number)
            yield "x" * AHEAD

    waiting = ReadAhead(lines())
    for number in range(10):
        assert waiting.get() == "x" * AHEAD
        assert len(asked) <= number + 3
    assert waiting.get() is None


def test_a_line_of_stdin_that_is_too_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryFile() as file, os.fdopen(os.dup(file.fileno()), "r") as stdin:
        file.write(b"a\n" + b"x" * (16 << 20) + b"\nb\n" + b"y" * ((16 << 20) + 1) + b"\nc\n")
        file.seek(0)
        monkeypatch.setattr(sys, "stdin", stdin)
        found = raw_lines()
        assert [len(next(found)) for _ in range(3)] == [2, (16 << 20) + 1, 2]
        with refused(RegardError, "stdin:4", "16"):
            next(found)


def test_a_wait_for_lines_can_be_ended() -> None:
    class EndedError(Exception):
        pass

    def lines() -> Iterator[str]:
        yield "a"
        time.sleep(30)

    def check() -> None:
        raise EndedError

    found = poll_lines(lines(), check)
    assert next(found) == "a"
    with pytest.raises(EndedError):
        next(found)


def test_lines_that_are_watched_are_all_there_and_so_is_their_error() -> None:
    def lines() -> Iterator[str]:
        yield from map(str, range(5000))
        raise OSError("gone")

    found = poll_lines(lines(), lambda: None)
    assert [next(found) for _ in range(5000)] == list(map(str, range(5000)))
    with pytest.raises(OSError, match="gone"):
        next(found)


def test_numbers_that_are_not_finite_are_an_error_that_says_so() -> None:
    with refused(RegardError, None, "not finite"):
        json_line({"probability": float("nan")})
