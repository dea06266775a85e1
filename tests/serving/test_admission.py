"""Who may enter: by characters that wait, the speed that was measured, calls at once; and when to ask again."""

from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from regard.serving import admission
from regard.serving.admission import FIRST, Admission
from regard.serving.core import ServiceError


@pytest.fixture
def clock(monkeypatch) -> Iterator[SimpleNamespace]:
    """A clock that goes on when it is told to."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(admission, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def refusal(door: Admission, characters: int) -> ServiceError:
    with pytest.raises(ServiceError) as caught, door.enter(characters):
        pass
    return caught.value


def test_what_would_wait_for_too_long_is_told_when_to_ask_again(clock) -> None:
    door, second = Admission(10.0, 100), int(FIRST)
    with door.enter(8 * second):
        with door.enter(2 * second):
            error = refusal(door, 5 * second)  # it would wait for five seconds of the first, and two of the second
            assert (error.status, error.retry_after) == (429, 2)
            assert refusal(door, 100 * second).retry_after == 10  # when all that waits is done
        with door.enter(2 * second):
            assert (door.calls, door.characters) == (2, 10 * second)
    assert (door.calls, door.characters) == (0, 0)


def test_a_word_enters_beside_books_but_no_further_book(clock) -> None:
    door, book = Admission(10.0, 100), int(5 * FIRST)
    with door.enter(50 * book), ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(door.enter(int(FIRST)))
        assert refusal(door, book).status == 429
        stack.enter_context(door.enter(1))


def test_whoever_comes_alone_enters_and_calls_have_a_number(clock) -> None:
    door = Admission(1.0, 2)
    with door.enter(int(50 * FIRST)):
        assert refusal(door, int(FIRST)).status == 429
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(door.enter(1))
        assert refusal(door, 1).status == 429


def test_who_was_accepted_is_not_held_up_by_all_that_are_shorter(clock) -> None:
    door, second = Admission(10.0, 100), int(FIRST)
    with door.enter(8 * second), door.enter(4 * second), door.enter(3 * second):
        assert refusal(door, 2 * second).retry_after == 2
        with door.enter(second // 2):
            assert door.calls == 4


def test_a_call_that_fails_leaves_room_and_is_no_work_done(clock) -> None:
    door = Admission(10.0, 10)

    def fail(seconds: float) -> None:
        with door.enter(1_000):
            clock.now += seconds
            raise ValueError("broke")

    for seconds in (4.0, 8.0):
        with pytest.raises(ValueError, match="broke"):
            fail(seconds)
    assert (door.calls, door.characters) == (0, 0)
    assert door.speed < FIRST / 2  # nothing came out in twelve seconds


@pytest.mark.parametrize(("times", "most"), [(4, 4.0), (0.25, 0.25)])
def test_speed_follows_what_is_done_while_somebody_waits(clock, times: float, most: float) -> None:
    door = Admission(10.0, 10)
    for _ in range(12):
        with door.enter(int(10 * times * FIRST)):
            clock.now += 10.0
        clock.now += 1_000.0  # nobody is there
    assert door.speed == pytest.approx(most * FIRST, rel=0.01)
    with door.enter(0), door.enter(int(4.9 * most * FIRST)), door.enter(int(4.9 * most * FIRST)):
        assert refusal(door, int(4.9 * most * FIRST)).status == 429


def test_nobody_enters_at_the_end(clock) -> None:
    door = Admission(10.0, 10)
    with door.enter(1):
        door.ending = True
        error = refusal(door, 1)
    assert error.status == 503
    assert error.retry_after
    assert (door.calls, door.characters) == (0, 0)
