"""A refusal closes its connection, and is reported uniformly, whatever was sent."""

from __future__ import annotations

import pytest

from regard.serve.connection import Limits

HEAD = b"GET /api/state HTTP/1.1\r\nHost: localhost:%d\r\n"
POST = b"POST /api/look HTTP/1.1\r\nHost: localhost:%d\r\nContent-Type: application/json\r\n"


REFUSED = {
    421: b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    403: b"GET /api/state HTTP/1.1\r\nHost: localhost:%d\r\nSec-Fetch-Site: cross-site\r\n\r\n",
    404: b"GET /absent HTTP/1.1\r\nHost: localhost:%d\r\n\r\n",
    405: b"DELETE /api/state HTTP/1.1\r\nHost: localhost:%d\r\n\r\n",
    413: POST + b"Content-Length: 99999999\r\n\r\n",
    415: b"POST /api/look HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: 9\r\n\r\n",
    400: b"\x16\x03\x01\x02\x00\x01",
}


def refused(site, status: int) -> bytes:
    """A question that is refused so."""
    sent = REFUSED[status]
    return sent % site.port if b"%" in sent else sent


@pytest.mark.parametrize("status", REFUSED)
def test_a_refused_connection_is_closed(limited, until, reply, everything, status: int) -> None:
    """Though its body never comes, and though whoever was refused stays."""
    site = limited(drained=0.05)
    made = site.send(refused(site, status))
    found = reply(made)
    assert (found.status, found.headers["connection"]) == (status, "close")
    everything(made)
    until(lambda: not site.server.server_state.connections)


@pytest.mark.parametrize("status", REFUSED)
def test_as_many_refused_as_there_may_be_keep_nobody_away(limited, reply, status: int) -> None:
    site = limited(drained=30)
    held = [site.send(refused(site, status)) for _ in range(Limits().most)]
    assert site.get("/").status == 200
    assert reply(held[-1]).status == status


def test_nothing_behind_a_refused_question_is_answered(site, everything) -> None:
    found = everything(site.send(REFUSED[421] + HEAD % site.port + b"\r\n"))
    assert found.startswith(b"HTTP/1.1 421")
    assert found.count(b"HTTP/1.1") == 1
    assert site.answers.begun == []


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(b"GET /api/state HTTP/1.0\r\nHost: localhost:%d\r\nConnection: keep-alive\r\n\r\n", 200, id="1.0"),
        pytest.param(b"GET / HTTP/1.0\r\n\r\n", 421, id="1.0 without a name"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", 400, id="1.1 without a name"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 421, id="HTTP/2"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x7f" * 500, 400, id="TLS"),
        pytest.param(b"GET http://evil.example/api/state HTTP/1.1\r\nHost: localhost:%d\r\n\r\n", 404, id="absolute"),
        pytest.param(b"CONNECT localhost:%d HTTP/1.1\r\nHost: localhost:%d\r\n\r\n", 404, id="tunnel"),
        pytest.param(b"OPTIONS * HTTP/1.1\r\nHost: localhost:%d\r\n\r\n", 404, id="asterisk"),
        pytest.param(HEAD + b"A: " + b"a" * 100_000 + b"\r\n", 400, id="a long header"),
        pytest.param(HEAD + b"A: a\r\n" * 20_000, 400, id="many headers"),
        pytest.param(HEAD + b"A b\r\n\r\n", 400, id="no header"),
        pytest.param(HEAD + b"Content-Length: -1\r\n\r\n", 400, id="no length"),
        pytest.param(HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, id="two lengths"),
        pytest.param(HEAD + b"Transfer-Encoding: gzip\r\n\r\n", 400, id="another encoding"),
        pytest.param(POST + b"Transfer-Encoding: chunked\r\n\r\nnone\r\n", 400, id="no chunk"),
        pytest.param(POST + b"Expect: 100-continue\r\nContent-Length: 9999999\r\n\r\n", 413, id="expects it"),
    ],
)
def test_odd_questions_are_refused_like_all_others(site, reply, capfd, everything, sent: bytes, status: int) -> None:
    """With the same headers, as JSON, and the connection ends."""
    made = site.send(sent.replace(b"%d", b"%d" % site.port))
    found = reply(made)
    assert found.status == status
    assert found.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in found.headers["content-security-policy"]
    assert found.headers["content-type"] == "application/json"
    assert status == 200 or found.json.keys() == {"error", "where"}
    everything(made)
    assert site.get("/").status == 200
    assert capfd.readouterr().err == ""


def test_nonsense_while_something_is_computed_ends_the_connection(limited, until, capfd, everything) -> None:
    """Nobody can be told any more what was computed."""
    site = limited(drained=0.05)
    content = POST.replace(b"/api/look", b"/api/wait") % site.port + b"Content-Length: 2\r\n\r\n{}"
    made = site.send(content + b"nonsense\r\n\r\n")
    until(lambda: site.answers.begun == ["wait"])
    site.answers.go.set()
    found = everything(made)
    assert found.startswith(b"HTTP/1.1 200")
    assert found.count(b"HTTP/1.1 400") == 1
    assert capfd.readouterr().err == ""


def test_a_body_that_breaks_off_in_nonsense_is_refused_once(limited, until, capfd, everything) -> None:
    site = limited(drained=0.05)
    made = site.send(POST % site.port + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
    until(lambda: site.server.server_state.tasks)
    made.sendall(b"nonsense\r\n")
    found = everything(made)
    assert found.startswith(b"HTTP/1.1 400")
    assert found.count(b"HTTP/1.1") == 1
    until(lambda: not site.server.server_state.tasks)
    assert site.answers.begun == []
    assert capfd.readouterr().err == ""


def test_a_body_that_breaks_off_in_nonsense_ends_an_answer_under_way(limited, until, capfd, everything) -> None:
    site = limited(drained=0.05)
    made = site.send(
        (HEAD % site.port).replace(b"GET /api/state", b"GET /api/course?model=99")
        + b"Transfer-Encoding: chunked\r\n\r\n"
    )
    until(lambda: site.answers.begun == ["course"])
    made.sendall(b"nonsense\r\n")
    found = everything(made)
    site.answers.go.set()
    assert found.startswith(b"HTTP/1.1 400")
    until(lambda: not site.server.server_state.tasks)
    assert capfd.readouterr().err == ""
