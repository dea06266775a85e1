"""Clients that read nothing time out; slow readers get the whole response, and a refusal while still sending."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import pytest

from regard.serve.connection import LOOKS, THROWN_AWAY, TimedTransport
from tests.serve.conftest import HEAD, POST, everything, post, reply, until

LARGE = post("large") + b"Content-Length: 2\r\n\r\n{}"
ROOM = 1 << 16
"""Bytes that a connection takes at once, where that is to be little."""


class Sent:
    """Stands for asyncio's transport; the other end takes as much as the test says."""

    def __init__(self) -> None:
        self.left, self.ended, self.half = 0, "", False

    def write(self, data: bytes) -> None:
        self.left += len(data)

    def get_write_buffer_size(self) -> int:
        return self.left

    def is_closing(self) -> bool:
        return bool(self.ended)

    def write_eof(self) -> None:
        self.half = True

    def resume_reading(self) -> None:
        pass

    def abort(self) -> None:
        self.ended, self.left = "aborted", 0

    def close(self) -> None:
        self.ended = self.ended or "closed"


class Timer:
    """Stands for what a loop will call."""

    def __init__(self, seconds: float, call: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.seconds, self.call, self.args = seconds, call, args
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Clock:
    """Stands for a loop; the test says when a moment has passed."""

    def __init__(self) -> None:
        self.due: list[Timer] = []

    def call_later(self, seconds: float, call: Callable[..., object], *args: Any) -> Timer:
        self.due.append(Timer(seconds, call, args))
        return self.due[-1]

    def moment(self) -> float:
        """Let what is due first be done; how long that took."""
        now = self.due.pop(0)
        if not now.cancelled:
            now.call(*now.args)
        return now.seconds


def watched(sends: bool = False) -> tuple[Sent, Clock, TimedTransport]:
    sent, clock = Sent(), Clock()
    return sent, clock, TimedTransport(sent, clock, 20.0, 0.5, lambda: sends)  # type: ignore[arg-type]


def test_what_is_taken_at_once_is_not_waited_for() -> None:
    sent, clock, way = watched()
    sent.write = lambda data: None  # type: ignore[method-assign]
    way.write(b"all")
    assert clock.due == []


@pytest.mark.parametrize("closing", [False, True])
def test_nothing_taken_for_so_long_is_the_end(closing: bool) -> None:
    sent, clock, way = watched()
    way.write(b"some")
    way.write(b"more")
    assert len(clock.due) == 1
    if closing:
        way.close()
    assert sum(clock.moment() for _ in range(LOOKS)) == pytest.approx(20)
    assert (sent.ended, clock.due) == ("aborted", [])


def test_a_little_taken_in_time_again_and_again_is_enough() -> None:
    """And when all is taken, nothing is waited for, until more is written."""
    sent, clock, way = watched()
    way.write(b"a" * 100)
    for _ in range(99):
        for _ in range(LOOKS - 1):
            clock.moment()
        way.write(b"b")  # as much as is taken
        sent.left -= 1
        clock.moment()
    assert not sent.ended
    sent.left = 0
    clock.moment()
    assert clock.due == []
    way.write(b"more")
    for _ in range(LOOKS):
        clock.moment()
    assert sent.ended == "aborted"


def test_where_all_was_sent_it_is_closed_at_once() -> None:
    sent, clock, way = watched()
    way.close()
    assert (sent.ended, clock.due, sent.half) == ("closed", [], False)


def test_where_more_is_coming_it_is_half_closed_for_a_moment() -> None:
    """Nothing is written behind; and only so much is thrown away."""
    sent, clock, way = watched(sends=True)
    way.close()
    way.close()
    assert (sent.ended, way.is_closing(), sent.half) == ("", True, True)
    way.write(b"nothing")
    assert sent.left == 0
    way.throw_away(b" " * 1000)
    assert clock.moment() == 0.5
    assert (sent.ended, clock.due) == ("closed", [])
    sent, clock, way = watched(sends=True)
    way.close()
    way.throw_away(b" " * THROWN_AWAY)
    assert not sent.ended
    way.throw_away(b" ")
    assert sent.ended == "aborted"


def test_what_has_ended_is_forgotten() -> None:
    _, clock, way = watched(sends=True)
    way.write(b"some")
    way.close()
    way.forget()
    assert [timer.cancelled for timer in clock.due] == [True, True]


@pytest.mark.parametrize("more", [b"", b"Connection: close\r\n"], ids=["kept", "closed behind"])
def test_whoever_reads_nothing_holds_nothing(limited, more: bytes) -> None:
    site = limited(stalled=0.3)
    before = time.monotonic()
    made = site.send(LARGE.replace(b"Content-Length", more + b"Content-Length"), ROOM)
    until(lambda: site.server.server_state.connections)
    until(lambda: not site.server.server_state.connections)
    assert time.monotonic() - before >= 0.9 * 0.3
    assert len(everything(made)) < site.answers.LARGE
    assert site.get("/").status == 200


def test_as_many_that_read_nothing_as_there_may_be_keep_nobody_away(limited) -> None:
    """The one that has taken nothing for the longest time makes room, long before its own time is over."""
    site = limited(most=3, stalled=20)
    for _ in range(3):
        site.send(LARGE, ROOM)
    connections = site.server.server_state.connections
    until(lambda: len(connections) == 3 and all(one.transport.stuck for one in connections))
    before = time.monotonic()
    assert site.get("/").status == 200
    assert time.monotonic() - before < 10


def test_whoever_asks_on_and_on_and_reads_nothing_holds_nothing(limited) -> None:
    site = limited(stalled=0.3)
    site.send(LARGE * 50, ROOM)
    until(lambda: site.server.server_state.connections)
    until(lambda: not site.server.server_state.connections)


def test_whoever_reads_slowly_reads_all(limited) -> None:
    """It takes longer than somebody may stay who reads nothing."""
    site = limited(stalled=1)
    made, before, found = site.send(LARGE, ROOM), time.monotonic(), b""
    while time.monotonic() - before < 1.5:
        found += made.recv(1 << 14)
        time.sleep(0.01)
    while len(found) < site.answers.LARGE:
        some = made.recv(1 << 20)
        assert some
        found += some
    assert found.endswith(b"." * 1000)
    made.sendall(HEAD % site.port + b"\r\n")
    assert reply(made).status == 200


def test_who_still_sends_reads_why_it_is_refused(limited) -> None:
    site = limited(drained=10)
    size = THROWN_AWAY // 2
    made = site.send(POST.replace(b"application/json", b"text/plain") + b"Content-Length: %d\r\n\r\n" % size)
    made.sendall(b" " * size)
    assert reply(made).status == 415


def test_what_never_ends_is_not_thrown_away_for_ever(limited) -> None:
    site = limited(drained=10)
    made = site.send(post("nothing") + b"Transfer-Encoding: chunked\r\n\r\n")
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < 4 * THROWN_AWAY:
            sent += made.send(b"%x\r\n%s\r\n" % (1 << 16, b" " * (1 << 16)))
        pytest.fail("it is still listened to")
    assert sent >= THROWN_AWAY
