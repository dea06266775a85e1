"""The server's address, which is the loopback only; clients that are idle, slow or refused keep nobody away.

Slow readers get the whole response, and a refusal is read by whoever is still sending.
"""

import contextlib
import os
import socket
import time
from unittest.mock import Mock

import pytest

from regard.library.serve import guard, server
from regard.library.serve.server import LOOKS, THROWN_AWAY, Limits, TimedTransport, listen, page_url
from regard.system.errors import UsageError
from tests.library.serve.conftest import HEAD, POST, everything, post, reply, until
from tests.refusals import refused

PATIENCE = 0.3
LARGE = post("large") + b"Content-Length: 2\r\n\r\n{}"
ROOM = 1 << 16
"""Bytes that a connection takes at once, where that is to be little."""


def test_the_first_free_port_is_taken(monkeypatch) -> None:
    with listen(0) as free:
        first = free.getsockname()[1]
        monkeypatch.setattr(server, "PORT", first)
        with listen() as found:
            assert first < found.getsockname()[1] < first + server.TRIED
            assert page_url(found) == f"http://127.0.0.1:{found.getsockname()[1]}/"
        monkeypatch.setattr(server, "TRIED", 1)
        with refused(UsageError, "port", str(first)):
            listen()


def test_a_port_that_is_named_is_the_one_or_none() -> None:
    with listen(0) as taken:
        port = taken.getsockname()[1]
        with refused(UsageError, "port", str(port)):
            listen(port)
    with listen(port) as again:
        assert again.getsockname() == ("127.0.0.1", port)


def test_what_is_no_port_or_the_systems_is_one_sentence(monkeypatch) -> None:
    def refuse(self: socket.socket, where: tuple[str, int]) -> None:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(socket.socket, "bind", refuse)
    for port in (-1, 65536, 10**9, 80):
        with refused(UsageError, "port", str(port)):
            listen(port)


def test_no_other_address_of_this_machine_answers(site) -> None:
    for family, host in ((socket.AF_INET, "127.0.0.2"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as other:
            other.settimeout(1)
            with pytest.raises(OSError):
                other.connect((host, site.port))


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
    waiting = site.occupy()
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
    waiting = site.occupy()
    held = [site.send(sent) for _ in range(3)]
    until(lambda: len(site.connections) == 4)
    if sent.startswith(HEAD):
        assert [reply(one).status for one in held] == [200] * 3
    assert site.get("/").status == 200
    everything(held[0])
    site.answers.go.set()
    assert reply(waiting).status == 200


def test_where_all_are_at_work_there_is_no_room(limited) -> None:
    site = limited(most=3)
    working = [site.begin("/api/wait", {}) for _ in range(3)]
    until(lambda: len(site.connections) == 3 and site.queued() == 2)
    everything(site.send(b""))
    working.pop().close()
    until(lambda: len(site.connections) == 2)
    assert site.get("/").status == 200
    site.answers.go.set()
    assert [reply(one).status for one in working] == [200, 200]


def test_whoever_has_sent_all_and_stops_sending_holds_nothing(site) -> None:
    made = site.send(HEAD + b"\r\n")
    made.shutdown(socket.SHUT_WR)
    until(lambda: not site.connections)


def watched(sends: bool) -> tuple[Mock, Mock, TimedTransport]:
    """A transport that has taken nothing of the first four bytes, its loop, and what watches it."""
    sent, loop = Mock(), Mock()
    sent.is_closing.return_value, sent.get_write_buffer_size.return_value = False, 4
    return sent, loop, TimedTransport(sent, loop, Limits(stalled=20.0, drained=0.5), lambda: sends)


@pytest.mark.parametrize("closing", [False, True])
def test_nothing_taken_for_so_long_is_the_end(closing: bool) -> None:
    """Where all was sent, a transport is closed at once; what was written is still watched."""
    sent, loop, way = watched(sends=False)
    way.write(b"some")
    if closing:
        way.close()
        sent.close.assert_called_once_with()
        sent.write_eof.assert_not_called()
    for look in range(1, LOOKS + 1):
        assert loop.call_later.call_count == look
        sent.abort.assert_not_called()
        seconds, watch, *given = loop.call_later.call_args.args
        assert seconds == 20 / LOOKS
        watch(*given)
    sent.abort.assert_called_once_with()


def test_nothing_is_written_behind_the_end_and_no_timer_is_left() -> None:
    sent, loop, way = watched(sends=True)
    sent.get_write_buffer_size.return_value = 0  # what is taken at once is not waited for
    way.write(b"all")
    loop.call_later.assert_not_called()
    sent, loop, way = watched(sends=True)
    way.write(b"some")
    way.close()
    way.close()
    way.write(b"nothing")
    sent.write.assert_called_once_with(b"some")
    sent.write_eof.assert_called_once_with()  # where more is coming, it is half closed for a moment
    assert [call.args[0] for call in loop.call_later.call_args_list] == [20 / LOOKS, 0.5]
    way.throw_away(b" " * THROWN_AWAY)
    sent.abort.assert_not_called()
    way.throw_away(b" ")
    sent.abort.assert_called_once_with()
    way.forget()
    assert loop.call_later.return_value.cancel.call_count == 2


@pytest.mark.parametrize("more", [b"", b"Connection: close\r\n"], ids=["kept", "closed behind"])
def test_whoever_reads_nothing_holds_nothing(limited, more: bytes) -> None:
    site = limited(stalled=0.3)
    before = time.monotonic()
    made = site.send(LARGE.replace(b"Content-Length", more + b"Content-Length"), ROOM)
    until(lambda: site.connections)
    until(lambda: not site.connections)
    assert time.monotonic() - before >= 0.9 * 0.3
    assert len(everything(made)) < site.answers.LARGE
    assert site.get("/").status == 200


def test_as_many_that_read_nothing_as_there_may_be_keep_nobody_away(limited) -> None:
    """The one that has taken nothing for the longest time makes room, long before its own time is over."""
    site = limited(most=3, stalled=20)
    for _ in range(3):
        site.send(LARGE, ROOM)
    connections = site.connections
    until(lambda: len(connections) == 3 and all(one.transport.stuck for one in connections))
    before = time.monotonic()
    assert site.get("/").status == 200
    assert time.monotonic() - before < 10


def test_whoever_asks_on_and_on_and_reads_nothing_holds_nothing(limited) -> None:
    site = limited(stalled=0.3)
    site.send(LARGE * 50, ROOM)
    until(lambda: site.connections)
    until(lambda: not site.connections)


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


def test_an_answer_of_two_packets_waits_for_no_acknowledgement() -> None:
    with listen(0) as found:
        assert found.proto == socket.IPPROTO_TCP  # else asyncio sets no TCP_NODELAY
