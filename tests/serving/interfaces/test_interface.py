"""Requests are read as JSON and as forms, within limits; every exception becomes an answer of the interface."""

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

from regard.serving.core import Call, ServiceError, TranslationRequest
from regard.serving.interfaces import interface
from regard.serving.interfaces.interface import BaseURL, Fields, File, Interface, Operation
from regard.system.errors import RegardError
from tests.serving.interfaces.conftest import KEY, PATIENCE, Capitals, Site, multipart, running


class Asked(Fields):
    q: str | list[str]
    count: int = 1
    wanted: bool = False
    name: str = ""
    base_url: BaseURL = ""
    document_secret: str = ""
    file: File | None = None


async def echo(asked: Asked, call: Call) -> object:
    if asked.q == "fail":
        raise ZeroDivisionError(asked.name)
    if asked.q == "busy":
        raise ServiceError(429, "too much waits", 7)
    if asked.q == "wrong":
        raise RegardError("is wrong", "line 3")
    if asked.q == "gone":
        raise HTTPException(410, "is gone", {"X-Gone": "yes"})
    if asked.q == "plain":
        return PlainTextResponse("plain")
    file = asked.file and {"name": asked.file.name, "size": len(asked.file.content)}
    return {**asked.model_dump(exclude={"file"}), "file": file, "key": call.key.name}


def routes(service: Capitals) -> list[Any]:
    found = Interface(lambda status, said: {"said": said, "status": status}, ("api_key",), {401: 400})
    return found.routes(
        service,
        [
            Operation("POST", "/echo", Asked, echo),
            Operation("GET", "/echo", Asked, echo, admits=False),
            Operation("PUT", "/echo/{name}", Asked, echo, status=201, most_bytes=100),
            Operation("POST", "/file", Asked, echo, most_bytes=2 << 20),
            Operation("POST", "/translate", Asked, _translate(service)),
        ],
    )


def _translate(service: Capitals) -> Any:
    async def translate(asked: Asked, call: Call) -> object:
        return await service.translate(TranslationRequest((str(asked.q),), "de", "en"), call)

    return translate


@pytest.fixture(scope="module")
def server() -> Iterator[Site]:
    with running(routes) as site:
        yield site


@pytest.fixture
def site(server: Site) -> Site:
    server.service.__init__()  # type: ignore[misc]
    return server


def test_a_request_is_json_or_a_form_or_a_query(site: Site) -> None:
    expected = {
        "q": ["a", "ü"],
        "count": 3,
        "wanted": True,
        "name": "",
        "base_url": f"{site.url}/",
        "document_secret": "",
        "file": None,
        "key": "",
    }
    given = {"q": ["a", "ü"], "count": 3, "wanted": True, "unknown": [{}]}
    assert site.json("/echo", given).json == expected
    assert site.form("/echo", "q=a&q=%C3%BC&count=3&wanted=1&unknown=").json == expected
    assert site.form("/echo", "q=a&q=%C3%BC&wanted=true", "GET").json == expected | {"count": 1}
    assert site.ask("GET", "/echo?q=a&q=%C3%BC&count=3&wanted=1").json == expected
    assert site.ask("POST", "/echo", json.dumps(given)).json == expected
    body, kind = multipart(("q", "", b"a"), ("q", "", "ü".encode()), ("count", "", b"3"), ("wanted", "", b"1"))
    assert site.ask("POST", "/echo", body, kind).json == expected
    assert site.ask("POST", "/echo", body, f'{kind}; charset="UTF-8"').json == expected


def test_body_goes_before_query_and_path_before_both(site: Site) -> None:
    found = site.json("/echo/path?name=query&q=x&count=2", {"name": "body", "q": "y", "base_url": "http://evil"}, "PUT")
    assert found.status == 201
    assert {name: found.json[name] for name in ("name", "q", "count")} == {"name": "path", "q": "y", "count": 2}
    assert found.json["base_url"] == f"{site.url}/"
    found = site.json("/echo/path", {"q": "y"}, "PUT", X_Forwarded_Proto="https")
    assert found.json["base_url"] == f"{site.url}/".replace("http:", "https:")


def test_a_header_may_be_a_field(site: Site) -> None:
    given = site.json("/echo", {"q": "a", "document_secret": "body"}, Document_Secret="header").json
    assert given["document_secret"] == "header"


def test_a_file_has_a_name_without_folders(site: Site) -> None:
    body, kind = multipart(("q", "", b"a"), ("file", "..\\x/é.txt", b"\xff\0text"))
    assert site.ask("POST", "/echo", body, kind).json["file"] == {"name": "é.txt", "size": 6}


@pytest.mark.parametrize(
    ("body", "kind", "status", "said"),
    [
        ('{"q": ', "application/json", 400, "valid JSON"),
        ('["q"]', "application/json", 400, "one JSON object"),
        ('{"q": NaN}', "application/json", 400, "valid JSON"),
        (b'{"q": "\xff"}', "application/json", 400, "valid JSON"),
        ('{"q": "\\ud800"}', "application/json", 400, "valid JSON"),
        ('{"q": "a", "count": ' + "9" * 5000 + "}", "application/json", 400, ""),
        ('{"q": ' + "[" * 100_000 + "]" * 100_000 + "}", "application/json", 400, "valid JSON"),
        ('{"count": 1}', "application/json", 400, "the request lacks q"),
        ('{"q": "a", "count": "many"}', "application/json", 400, "count: input should be a valid integer"),
        ('{"q": {"a": 1}}', "application/json", 400, "q"),
        ("q=%ff", "application/x-www-form-urlencoded", 400, "UTF-8"),
        (b"q=\xff", "application/x-www-form-urlencoded", 400, "UTF-8"),
        ("q=a&" * 2001, "application/x-www-form-urlencoded", 413, "2,000 fields"),
        ("q=a", "text/plain", 415, "JSON or a form"),
        ("--edge", "multipart/form-data", 400, "cannot be read"),
        ("--edgy\r\n\r\n", "multipart/form-data; boundary=edge", 400, "cannot be read"),
        ("--edge--", "multipart/form-data; boundary=edge; charset=unicode_escape", 415, "UTF-8"),
        (*multipart(("q", "", b"\xff")), 400, "UTF-8"),
        ("q" * (1 << 20) + "q", "application/x-www-form-urlencoded", 413, "1,048,576 bytes"),
    ],
)
def test_what_cannot_be_read_is_refused_in_the_interfaces_words(
    site: Site, body: bytes | str, kind: str, status: int, said: str
) -> None:
    found = site.ask("POST", "/echo", body, kind)
    assert (found.status, found.json["status"]) == (status, status), found.content
    assert said in found.json["said"]
    assert len(found.json["said"]) < 300


def test_what_is_compressed_or_too_large_for_a_path_is_refused(site: Site) -> None:
    assert site.json("/echo", {"q": "a"}, Content_Encoding="gzip").status == 415
    assert site.json("/echo/name", {"q": "a" * 100}, "PUT").status == 413


def test_a_document_may_be_as_large_as_is_said_and_its_form_is_not_counted(site: Site) -> None:
    for size, status in ((2 << 20, 200), ((2 << 20) + 1, 413)):
        found = site.ask("POST", "/file?q=a", *multipart(("file", "a.txt", bytes(size))))
        assert found.status == status
    assert found.json["said"] == "a file may have at most 2,097,152 bytes"


def hold(site: Site, *lines: str, body: bytes, held: int) -> socket.socket:
    """A connection over which a request arrives that is not complete, once so many bytes are held."""
    until, made = time.monotonic() + PATIENCE, socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE)
    made.sendall("\r\n".join(["POST /echo HTTP/1.1", "Host: x", *lines, "", ""]).encode() + body)
    while sum(interface.BODY_LIMITS.held.values()) != held:
        assert time.monotonic() < until
        time.sleep(0.001)
    return made


def test_large_requests_arrive_a_few_at_a_time(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interface, "MOST_BYTES", 8)
    monkeypatch.setattr(interface, "HELD", 20)
    with hold(site, "Content-Length: 30", body=b"q=" + b"a" * 22, held=16):  # what is announced is not held
        assert site.json("/echo", {"q": "abcdef"}).status == 429
        assert site.form("/echo", "q=a").status == 200
    hold(site, "Content-Length: 30", body=b"q=", held=0).close()
    assert site.json("/echo", {"q": "abcdef"}).status == 200


def test_a_request_in_chunks_is_held_whatever_length_it_says(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interface, "MOST_BYTES", 8)
    lines = "Transfer-Encoding: chunked", "Content-Length: 4"
    hold(site, *lines, body=b"10\r\nq=aaaaaaaaaaaaaa\r\n", held=8).close()


def test_clients_without_a_key_leave_room_for_those_with_one(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interface, "MOST_BYTES", 8)
    monkeypatch.setattr(interface, "HELD", 40)
    site.service.open, asked, key = False, {"q": "abcdef"}, {"Authorization": f"Bearer {KEY}"}
    assert site.json("/echo", {**asked, "q": "a" * 30}, Authorization="Bearer wrong").status == 429
    with hold(site, "Content-Length: 30", body=b"q=" + b"a" * 15, held=9):
        assert site.json("/echo", {**asked, "api_key": KEY}).status == 429
        assert site.json("/echo", asked, **key).status == 200
    hold(site, f"Authorization: Bearer {KEY}", "Content-Length: 60", body=b"q=" + b"a" * 36, held=30).close()
    hold(site, body=b"", held=0).close()
    assert site.form("/echo", f"q=a&api_key={KEY}").status == 200


def test_what_does_not_arrive_in_time_is_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interface, "SLOW", 0.05)
    with socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE) as made:
        made.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nq=")
        assert made.recv(100).startswith(b"HTTP/1.1 408")


def test_exceptions_become_answers_and_what_is_unexpected_says_nothing(
    site: Site, caplog: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(interface._LOG, "disabled", False)  # as libraries leave it that configure logging
    busy = site.json("/echo", {"q": "busy"})
    assert (busy.status, busy.json["said"], busy.headers["retry-after"]) == (429, "too much waits", "7")
    wrong = site.json("/echo", {"q": "wrong"})
    assert (wrong.status, wrong.json["said"]) == (400, "line 3: is wrong")
    gone = site.json("/echo", {"q": "gone"})
    assert (gone.status, gone.json["said"], gone.headers["x-gone"]) == (410, "is gone", "yes")
    assert not caplog.messages
    failed = site.json("/echo", {"q": "fail", "name": "a secret"})
    assert (failed.status, failed.json["said"]) == (500, interface.UNEXPECTED)
    (told,) = caplog.messages
    assert "in echo" in told
    assert told.endswith("ZeroDivisionError")
    assert "secret" not in told
    assert site.json("/echo", {"q": "plain"}).content == b"plain"


def test_every_answer_has_a_number_of_its_own(site: Site) -> None:
    found = {site.json("/echo", {"q": q}).headers["x-trace-id"] for q in ("a", "a", "busy", "fail", "plain")}
    assert len(found) == 5


@pytest.mark.parametrize(
    ("headers", "fields"),
    [
        ({"Authorization": f"DeepL-Auth-Key {KEY}"}, {}),
        ({"Authorization": f"Bearer  {KEY} "}, {"api_key": "other"}),
        ({}, {"api_key": KEY}),
        ({"Authorization": "Basic eDp5"}, {"api_key": KEY}),
    ],
)
def test_a_key_is_in_a_header_or_a_field(site: Site, headers: dict[str, str], fields: dict[str, str]) -> None:
    site.service.open = False
    assert site.json("/echo", {"q": "a", **fields}, **headers).json["key"] == "team"


def test_who_has_no_key_or_a_wrong_one_is_refused_before_anything_is_told(site: Site) -> None:
    assert site.json("/echo", {}, Authorization="Bearer wrong").status == 403
    assert site.json("/echo", {"q": "a", "api_key": ["x"]}).status == 200
    site.service.open = False
    assert site.json("/echo", {}).json == {"said": "a key is needed", "status": 400}
    assert site.ask("GET", "/echo?q=a").status == 200


def test_a_client_that_leaves_ends_its_call(site: Site) -> None:
    with socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE) as made:
        made.sendall(b'POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 13\r\n\r\n{"q": "wait"}')
        assert site.service.waits.wait(PATIENCE)
        assert not site.service.calls[-1].left.is_set()
    assert site.service.calls[-1].left.wait(PATIENCE)
