"""Clients that hold idle connections do not block the server for others."""

import contextlib
import socket
import time

import pytest

from regard.serve import guard
from regard.serve.connection import Limits
from tests.serve.conftest import HEAD, POST, everything, reply, until

PATIENCE = 0.3


@pytest.fixture
def site(limited):
    return limited(head=PATIENCE, whole=2 * PATIENCE, drained=PATIENCE / 3)


def refuse_listening_on(made: socket.socket) -> None:
    """Send byte by byte until the other side has enough of it."""
    with contextlib.suppress(ConnectionError):
        for _ in range(10_000):
            made.sendall(b"e")
            time.sleep(0.02)
        pytest.fail("it is still listened to")


@pytest.mark.parametrize("sent", [b"", b"GET / HT", HEAD])
def test_half_a_head_is_not_waited_for_for_ever(site, sent: bytes) -> None:
    before = time.monotonic()
    everything(site.send(sent))
    assert time.monotonic() - before >= 0.9 * PATIENCE
    assert site.get("/").status == 200


def test_a_head_that_comes_byte_by_byte_has_no_more_time(site) -> None:
    refuse_listening_on(site.send(b"G"))


def test_the_second_question_of_a_connection_has_no_more_time_than_the_first(site) -> None:
    made = site.send(HEAD + b"\r\n")
    assert reply(made).status == 200
    made.sendall(b"GET /")
    everything(made)


@pytest.mark.parametrize("more", [b"", b"{", b"2\r\n{}\r\n"])
def test_what_belongs_to_a_question_that_is_answered_is_not_waited_for_for_ever(site, more: bytes) -> None:
    size = b"Transfer-Encoding: chunked" if b"\r" in more else b"Content-Length: 1000"
    before = time.monotonic()
    made = site.send(HEAD + size + b"\r\n\r\n")
    assert reply(made).status == 200
    made.sendall(more)
    everything(made)
    assert time.monotonic() - before >= 0.9 * 2 * PATIENCE


def test_what_belongs_to_a_question_has_no_more_time_where_it_comes_byte_by_byte(site) -> None:
    made = site.send(HEAD + b"Content-Length: 100000\r\n\r\n")
    assert reply(made).status == 200
    refuse_listening_on(made)


def test_one_answered_before_it_was_whole_is_followed_by_another(limited) -> None:
    """Which has its own time."""
    site = limited(whole=0.5)
    made = site.send(HEAD + b"Content-Length: 4\r\n\r\n")
    assert reply(made).status == 200
    time.sleep(0.1)
    made.sendall(b"null" + HEAD % site.port)
    time.sleep(0.5)
    made.sendall(b"\r\n")
    assert reply(made).status == 200


def test_who_asks_too_slowly_is_told_before_the_connection_ends(site, monkeypatch) -> None:
    assert Limits().whole > guard.SLOW
    monkeypatch.setattr(guard, "SLOW", 0.2)
    made = site.send(POST + b"Content-Length: 9\r\n\r\n{")
    assert reply(made).status == 408
    everything(made)


def test_a_question_that_is_asked_may_take_longer_and_a_connection_may_rest(site) -> None:
    waiting = site.begin("/api/wait", {})
    until(lambda: site.answers.begun == ["wait"])
    resting = site.send(HEAD + b"\r\n")
    assert reply(resting).status == 200
    time.sleep(2 * PATIENCE)
    site.answers.go.set()
    assert reply(waiting).status == 200
    resting.sendall(HEAD % site.port)
    time.sleep(PATIENCE / 3)
    resting.sendall(b"\r\n")
    assert reply(resting).status == 200


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="silent"),
        pytest.param(b"GET", id="half a head"),
        pytest.param(HEAD + b"\r\n", id="answered"),
        pytest.param(HEAD + b"Content-Length: 9\r\n\r\n", id="answered before it was whole"),
        pytest.param(POST + b"Content-Length: 9\r\n\r\n{", id="half a question"),
        pytest.param(POST + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n", id="waits to be told to go on"),
        pytest.param(POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", id="chunks without an end"),
    ],
)
def test_as_many_that_ask_nothing_as_there_may_be_keep_nobody_away(limited, sent: bytes) -> None:
    """The one that has waited the longest makes room; one that is answered never does."""
    site = limited(most=4)
    waiting = site.begin("/api/wait", {})
    until(lambda: site.answers.begun == ["wait"])
    held = [site.send(sent) for _ in range(3)]
    until(lambda: len(site.server.server_state.connections) == 4)
    if sent.startswith(HEAD):
        assert [reply(one).status for one in held] == [200] * 3
    assert site.get("/").status == 200
    everything(held[0])
    site.answers.go.set()
    assert reply(waiting).status == 200


def test_where_all_are_at_work_there_is_no_room(limited) -> None:
    site = limited(most=3)
    working = [site.begin("/api/wait", {}) for _ in range(3)]
    until(lambda: len(site.server.server_state.connections) == 3 and site.server.site.computing.waiting == 2)
    everything(site.send(b""))
    working.pop().close()
    until(lambda: len(site.server.server_state.connections) == 2)
    assert site.get("/").status == 200
    site.answers.go.set()
    assert [reply(one).status for one in working] == [200, 200]


def test_whoever_has_sent_all_and_stops_sending_holds_nothing(site) -> None:
    made = site.send(HEAD + b"\r\n")
    made.shutdown(socket.SHUT_WR)
    until(lambda: not site.server.server_state.connections)
