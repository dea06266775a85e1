"""Whoever holds connections and asks nothing does not keep the server from others."""

from __future__ import annotations

import contextlib
import socket
import time

import pytest

from regard.serve import asked
from regard.serve import connection as module

HEAD = b"GET /api/state HTTP/1.1\r\nHost: localhost:%d\r\n"


@pytest.fixture
def patience(monkeypatch) -> float:
    monkeypatch.setattr(module, "PATIENCE", 0.3)
    monkeypatch.setattr(module, "WHOLE", 0.6)
    return 0.3


def closed(made: socket.socket) -> bool:
    """Whether a connection is closed from the other side; waits for it."""
    with contextlib.suppress(ConnectionError):
        return made.recv(1) == b""
    return True


def refuse_listening_on(made: socket.socket) -> None:
    """Send byte by byte until the other side has enough of it."""
    with contextlib.suppress(ConnectionError):
        for _ in range(10_000):
            made.sendall(b"e")
            time.sleep(0.02)
        pytest.fail("it is still listened to")


@pytest.mark.parametrize("sent", [b"", b"GET / HT", HEAD])
def test_half_a_head_is_not_waited_for_for_ever(site, patience, sent: bytes) -> None:
    before = time.monotonic()
    assert closed(site.send(sent % site.port if b"%" in sent else sent))
    assert time.monotonic() - before >= 0.9 * patience
    assert site.get("/").status == 200


def test_a_head_that_comes_byte_by_byte_has_no_more_time(site, patience) -> None:
    made = site.send(b"G")
    refuse_listening_on(made)


def test_the_second_question_of_a_connection_has_no_more_time_than_the_first(site, reply, patience) -> None:
    made = site.send(HEAD % site.port + b"\r\n")
    assert reply(made).status == 200
    made.sendall(b"GET /")
    assert closed(made)


@pytest.mark.parametrize("more", [b"", b"{", b"2\r\n{}\r\n"])
@pytest.mark.parametrize("line", ["POST /api/nothing", "GET /api/state", "GET /absent"])
def test_what_belongs_to_a_question_that_is_answered_is_not_waited_for_for_ever(
    site, reply, patience, line: str, more: bytes
) -> None:
    size = b"Transfer-Encoding: chunked" if b"\r" in more else b"Content-Length: 1000"
    head = HEAD % site.port + b"Content-Type: application/json\r\n" + size + b"\r\n\r\n"
    before = time.monotonic()
    made = site.send(head.replace(b"GET /api/state", line.encode()))
    assert reply(made).status in (200, 404)
    made.sendall(more)
    assert closed(made)
    assert time.monotonic() - before >= 0.9 * module.WHOLE


def test_what_belongs_to_a_question_has_no_more_time_where_it_comes_byte_by_byte(site, reply, patience) -> None:
    made = site.send(HEAD % site.port + b"Content-Length: 100000\r\n\r\n")
    assert reply(made).status == 200
    refuse_listening_on(made)


def test_one_answered_before_it_was_whole_is_followed_by_another(site, reply, monkeypatch) -> None:
    """Which has its own time."""
    monkeypatch.setattr(module, "WHOLE", 0.5)
    made = site.send(HEAD % site.port + b"Content-Length: 4\r\n\r\n")
    assert reply(made).status == 200
    time.sleep(0.1)
    made.sendall(b"null" + HEAD % site.port)
    time.sleep(module.WHOLE)
    made.sendall(b"\r\n")
    assert reply(made).status == 200


def test_who_asks_too_slowly_is_told_before_the_connection_ends(site, reply, monkeypatch) -> None:
    assert asked.SLOW < module.WHOLE
    monkeypatch.setattr(asked, "SLOW", 0.2)
    head = b"POST /api/look HTTP/1.1\r\nHost: localhost:%d\r\nContent-Type: application/json\r\n" % site.port
    made = site.send(head + b"Content-Length: 9\r\n\r\n{")
    assert reply(made).status == 408
    assert closed(made)


def test_a_question_that_is_asked_may_take_longer_and_a_connection_may_rest(site, until, reply, patience) -> None:
    waiting = site.begin("/api/wait", {})
    until(lambda: site.answers.begun == ["wait"])
    resting = site.send(HEAD % site.port + b"\r\n")
    assert reply(resting).status == 200
    time.sleep(2 * patience)
    site.answers.go.set()
    assert reply(waiting).status == 200
    resting.sendall(HEAD % site.port)
    time.sleep(patience / 3)
    resting.sendall(b"\r\n")
    assert reply(resting).status == 200


def test_there_are_only_so_many_connections(site, until, monkeypatch) -> None:
    until(lambda: not site.server.server_state.connections)  # those of the test before
    monkeypatch.setattr(module, "MOST", 3)
    held = [site.send(b"GET") for _ in range(3)]
    until(lambda: len(site.server.server_state.connections) == 3)
    assert closed(site.send(b""))
    held[0].close()
    until(lambda: len(site.server.server_state.connections) == 2)
    assert site.get("/").status == 200
