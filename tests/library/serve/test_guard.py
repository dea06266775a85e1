"""What is forbidden, damaged or slow is refused in JSON with all headers, and the server goes on."""

import asyncio
import json

import pytest

import regard.library.serve.guard as asked
from regard.inspection.requests import WeightsReplaced
from regard.library.serve.guard import MOST_BYTES, Guard, error_body
from regard.library.serve.server import Limits
from tests.library.serve.conftest import HEAD, POST, everything, get, post, reply, until

POLICY = "default-src base-uri form-action frame-ancestors 'none'; script-src style-src connect-src font-src 'self'"
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
REFUSED = {
    421: b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    403: HEAD + b"Sec-Fetch-Site: cross-site\r\n\r\n",
    404: get("/absent") + b"\r\n",
    405: HEAD.replace(b"GET", b"DELETE") + b"\r\n",
    413: POST + b"Content-Length: 99999999\r\n\r\n",
    415: b"POST /api/look HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: 9\r\n\r\n",
    400: b"\x16\x03\x01\x02\x00\x01",
}
ANSWERED = {
    200: ("GET /", "HEAD /", "GET /assets/plain.css", "GET /api/state", "GET /api/course?model=0", "POST /api/look"),
    404: ("GET /nothing", "GET /api/nothing", "PUT /api/nothing", "POST /api/nothing", "POST /nothing", "GET /api/"),
    405: ("GET /api/look", "GET /api/write", "POST /api/state", "PUT /", "OPTIONS /api/look"),
    400: ("POST /api/usage",),
    500: ("POST /api/fail",),
}
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: YWFh\r\n"
ELSEWHERE = (
    "",
    *"evil.example evil.example:{port} 127.0.0.1 localhost:{other} localhost.:{port} 127.0.0.1:0{port}".split(),
    *"127.0.0.1.evil.example:{port} 127.0.0.2:{port} 0.0.0.0:{port} user@127.0.0.1:{port}".split(),
    "127.0.0.1:{port}:{port}",
)
"""Names that are none of the server's."""
ORIGINS = (
    *("", "null", "http://evil.example", "http://127.0.0.1", "https://127.0.0.1:{port}"),
    "http://127.0.0.1:{port}.evil.example",
    "http://localhost:{port}",  # the page was asked for by another name
)


def refused(reply, status: int, said: str = "") -> None:
    """An error is JSON with a sentence; its headers are those of everything."""
    assert reply.status == status, reply.content
    assert reply.headers["content-type"] == "application/json"
    assert said in reply.json["error"]
    assert reply.json.keys() == {"error", "where"}
    guarded(reply)


def guarded(reply) -> None:
    rules = dict(rule.strip().split(" ", 1) for rule in reply.headers["content-security-policy"].split(";"))
    assert rules.pop("img-src") == "'self' data: blob:"
    expected = (group.split() for group in POLICY.split(";"))
    assert rules == {name: value for *names, value in expected for name in names}
    assert {name: reply.headers[name] for name in HEADERS} == HEADERS
    assert "server" not in reply.headers
    assert not [name for name in reply.headers if name.startswith("access-control")]
    assert (reply.headers.get("connection") == "close") == (reply.status >= 400)


@pytest.mark.parametrize(("status", "asked"), [(status, one) for status, found in ANSWERED.items() for one in found])
def test_every_answer_is_guarded(site, capfd, status: int, asked: str) -> None:
    method, path = asked.split()
    reply = site.ask(method, path, {} if method == "POST" else None)
    assert reply.status == status
    guarded(reply)
    assert reply.headers["cache-control"] == "no-store"
    assert ("allow" in reply.headers) == (status == 405)
    assert ("Traceback" in capfd.readouterr().err) == (status == 500)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LocalHost", "[::1]"])
def test_this_machine_may_ask_by_its_names(site, name: str) -> None:
    assert site.get("/", Host=f"{name}:{site.port}").status == 200
    origin = f"http://{name.lower()}:{site.port}"
    assert site.post("/api/look", Host=f"{name}:{site.port}", Origin=origin, Sec_Fetch_Site="same-origin").status == 200
    assert site.get("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate").status == 200  # a link elsewhere
    assert site.post("/api/look", Sec_Fetch_Site="none").status == 200


@pytest.mark.parametrize("path", ["/", "/assets/plain.css", "/api/state", "/nothing"])
@pytest.mark.parametrize("host", ELSEWHERE)
def test_a_name_made_to_point_here_is_refused(site, host: str, path: str) -> None:
    host = host.format(port=site.port, other=site.port + 1)
    refused(site.get(path, Host=host), 421, f"http://127.0.0.1:{site.port}/")


@pytest.mark.parametrize(
    "headers",
    [
        *({"Origin": origin} for origin in ORIGINS),
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},  # another port of this machine
        {"Origin": "http://127.0.0.1:{port}", "Sec_Fetch_Site": "cross-site"},
    ],
)
def test_another_pages_question_is_refused(site, headers: dict[str, str]) -> None:
    given = {name: value.format(port=site.port) for name, value in headers.items()}
    refused(site.post("/api/look", **given), 403, "another page")
    refused(site.post("/api/write", {"most": 1}, **given), 403, "another page")
    refused(site.get("/api/state", **given), 403, "another page")
    assert site.answers.begun == []


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "application/jsonp"]
)
def test_what_a_form_can_send_is_refused(site, kind: str) -> None:
    refused(site.post("/api/look", Content_Type=kind), 415, "application/json")
    assert site.answers.begun == []


def test_json_may_say_its_encoding_and_a_pair_of_surrogates_is_one_character(site) -> None:
    found = site.post("/api/look", rb'{"said": "\ud83d\ude00"}', Content_Type="Application/JSON; charset=utf-8")
    assert (found.status, found.content.decode()) == (200, "\N{GRINNING FACE}")


def filled(size: int) -> bytes:
    """A JSON object of so many bytes."""
    empty = len(json.dumps({"text": ""}))
    return json.dumps({"text": "a" * (size - empty)}).encode()


def chunked(site, *parts: bytes, end: bytes = b"0\r\n\r\n"):
    """A question in parts whose sum is not said before."""
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return site.send(POST + b"Transfer-Encoding: chunked\r\n\r\n" + body + end)


def test_a_question_may_have_a_mebibyte(site) -> None:
    assert site.post("/api/look", filled(MOST_BYTES)).status == 200
    large = filled(MOST_BYTES + 1)
    refused(site.post("/api/look", large), 413, f"{MOST_BYTES:,} bytes")
    content = filled(MOST_BYTES)
    assert reply(chunked(site, content[:5], content[5:])).status == 200
    refused(reply(chunked(site, large[:-1], large[-1:])), 413, "bytes")
    assert site.answers.begun == ["look"] * 2


def test_whoever_sends_far_too_much_reads_why_it_is_refused(limited) -> None:
    site = limited(drained=10)
    refused(site.post("/api/look", filled(8 * MOST_BYTES)), 413, "bytes")


def test_a_size_is_refused_before_anything_is_sent(site) -> None:
    for length in (MOST_BYTES + 1, 10**18, 10**19):
        found = reply(site.send(POST + b"Content-Length: %d\r\n\r\n" % length))
        refused(found, 413, "bytes")
        assert found.headers["connection"] == "close"


def test_what_never_ends_is_cut_off(site) -> None:
    refused(reply(chunked(site, *[b" " * (1 << 16)] * 40, end=b"")), 413, "bytes")


@pytest.mark.parametrize("content", [b"", b'{"text": "a'])
def test_a_slow_question_delays_nobody_and_is_cut_off(site, monkeypatch, content: bytes) -> None:
    sent = POST + b"Content-Length: 20\r\n\r\n" + content
    site.send(sent)  # it has twenty seconds
    assert site.post("/api/look").status == 200
    monkeypatch.setattr(asked, "SLOW", 0.05)
    found = reply(site.send(sent))
    refused(found, 408, "did not arrive")
    assert found.headers["connection"] == "close"
    assert site.answers.begun == ["look"]


def test_weights_that_are_gone_are_no_mistake_of_the_question() -> None:
    assert error_body(WeightsReplaced("look again")) == (409, {"error": "look again", "where": None})


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"{} {}", b"[" * 200_000, b'{"a":' * 100_000),
        *(b"[]", b'"text"', b"null", b'{"a": NaN}', b'{"a": -Infinity}', b'{"a": ' + b"9" * 5000 + b"}"),
        *(b'{"a": "\xff"}', b'{"a": "\xed\xa0\x80"}', b'{"a": "\\ud800"}', b'{"\\udfff": 1}'),
        *('{"a": 1}'.encode("utf-16"), "\ufeff{}".encode()),
    ],
    ids=lambda given: str(given[:16]),
)
def test_what_is_no_json_object_is_refused(site, content: bytes) -> None:
    reply = site.post("/api/look", content)
    refused(reply, 400)
    assert "sys." not in reply.json["error"]
    assert len(reply.json["error"]) < 150
    assert site.answers.begun == []


def test_an_unforeseen_error_is_told_on_stderr_alone(site, capfd) -> None:
    reply = site.post("/api/fail")
    refused(reply, 500, "see the terminal")
    assert b"17" not in reply.content
    assert "ZeroDivisionError: the secret is 17" in capfd.readouterr().err
    assert site.post("/api/look").status == 200


def test_an_error_in_the_middle_of_an_answer_cuts_it_off(capfd) -> None:
    sent = []

    async def app(scope, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError("in the middle")

    async def send(message) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost:17")]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers, "server": ("127.0.0.1", 17)}
    with pytest.raises(ZeroDivisionError):
        asyncio.run(Guard(app)(scope, None, send))
    assert [message["status"] for message in sent] == [200]
    assert "in the middle" in capfd.readouterr().err


def test_a_foreseen_error_is_its_sentence(site, capfd) -> None:
    reply = site.post("/api/usage")
    assert (reply.status, reply.json) == (400, {"error": "there is no head 9", "where": "head_of"})
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("status", REFUSED)
def test_a_refused_connection_is_closed(limited, status: int) -> None:
    """Though its body never comes, and though whoever was refused stays."""
    site = limited(drained=0.05)
    made = site.send(REFUSED[status])
    found = reply(made)
    assert (found.status, found.headers["connection"]) == (status, "close")
    everything(made)
    until(lambda: not site.connections)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("status", REFUSED)
def test_as_many_refused_as_there_may_be_keep_nobody_away(limited, status: int) -> None:
    site = limited(drained=30)
    held = [site.send(REFUSED[status]) for _ in range(Limits().most)]
    assert {reply(made).status for made in held} == {status}  # a question that is being answered keeps its place
    assert site.get("/").status == 200


def test_nothing_behind_a_refused_question_is_answered(site) -> None:
    found = everything(site.send(REFUSED[421] + HEAD + b"\r\n"))
    assert found.startswith(b"HTTP/1.1 421")
    assert found.count(b"HTTP/1.1") == 1
    assert site.answers.begun == []


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(b"GET /api/state HTTP/1.0\r\nHost: localhost:%d\r\nConnection: keep-alive\r\n\r\n", 200, id="1.0"),
        pytest.param(b"GET / HTTP/1.0\r\n\r\n", 421, id="1.0 without a name"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", 400, id="1.1 without a name"),
        pytest.param(get("/") + b"Host: evil.example\r\n\r\n", 400, id="two names"),
        pytest.param(get("/api/write") + UPGRADE + b"\r\n", 405, id="web sockets"),
        pytest.param(b"GET\r\n\r\n", 400, id="half a line"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 421, id="HTTP/2"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x7f" * 500, 400, id="TLS"),
        pytest.param(get("http://evil.example/api/state") + b"\r\n", 404, id="absolute"),
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
def test_odd_questions_are_refused_like_all_others(site, capfd, sent: bytes, status: int) -> None:
    """With the same headers, as JSON, and the connection ends."""
    made = site.send(sent)
    found = reply(made)
    assert found.status == status
    assert found.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in found.headers["content-security-policy"]
    assert found.headers["content-type"] == "application/json"
    assert status == 200 or found.json.keys() == {"error", "where"}
    everything(made)
    assert site.get("/").status == 200
    assert capfd.readouterr().err == ""


def test_nonsense_while_something_is_computed_ends_the_connection(limited, capfd) -> None:
    """Nobody can be told any more what was computed."""
    site = limited(drained=0.05)
    made = site.send(post("wait") + b"Content-Length: 2\r\n\r\n{}nonsense\r\n\r\n")
    until(lambda: site.answers.begun == ["wait"])
    site.answers.go.set()
    found = everything(made)
    assert found.startswith(b"HTTP/1.1 200")
    assert found.count(b"HTTP/1.1 400") == 1
    assert capfd.readouterr().err == ""


def test_a_body_that_breaks_off_in_nonsense_is_refused_once(limited, capfd) -> None:
    site = limited(drained=0.05)
    made = site.send(POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
    until(lambda: site.server.server_state.tasks)
    made.sendall(b"nonsense\r\n")
    found = everything(made)
    assert found.startswith(b"HTTP/1.1 400")
    assert found.count(b"HTTP/1.1") == 1
    until(lambda: not site.server.server_state.tasks)
    assert site.answers.begun == []
    assert capfd.readouterr().err == ""


def test_a_body_that_breaks_off_in_nonsense_ends_an_answer_under_way(limited, capfd) -> None:
    site = limited(drained=0.05)
    made = site.send(get("/api/course?model=99") + b"Transfer-Encoding: chunked\r\n\r\n")
    until(lambda: site.answers.begun == ["course"])
    made.sendall(b"nonsense\r\n")
    found = everything(made)
    site.answers.go.set()
    assert found.startswith(b"HTTP/1.1 400")
    until(lambda: not site.server.server_state.tasks)
    assert capfd.readouterr().err == ""
