"""The page over HTTP: its files, its answers, its streams."""

import gzip
import json
import re
import time
from pathlib import Path
from urllib.parse import unquote

import pytest

from regard.inspection import PAGE
from regard.library.serve.files import FOR_EVER, OTHER, File, files
from regard.library.serve.worker import ENDING, WAITING
from regard.system.errors import RegardError
from tests.library.serve.conftest import HEAD, POST, get, reply, until
from tests.refusals import refused


def test_the_index_and_the_assets_are_the_page(folder: Path) -> None:
    (folder / "assets" / "fonts").mkdir()
    (folder / "assets" / "fonts" / "a.woff2").write_bytes(b"")
    found = files(folder)
    assert found.keys() == {
        "index.html",
        *("assets/index-Ab3_x-9Z.js", "assets/plain.css", "assets/font-Ab3_x-9Z.woff2", "assets/fonts/a.woff2"),
    }
    assert all(file.content == (folder / name).read_bytes() for name, file in found.items())


def test_without_a_page_one_sentence_says_so(tmp_path: Path) -> None:
    with refused(RegardError, tmp_path):
        files(tmp_path)
    (tmp_path / "index.html").write_text("a")
    assert files(tmp_path).keys() == {"index.html"}


def test_what_changes_its_name_is_kept() -> None:
    names = ("assets/index-DiwrgTda.js", "assets/a.b-D_wr-Tda.woff2")
    others = ("index.html", "assets/plain.css", "assets/index-short.js", "assets/DiwrgTda.js")
    kept = [name for name in (*names, *others) if File(name, b"").headers.get("Cache-Control") == FOR_EVER]
    assert kept == list(names)


def test_what_nobody_knows_is_bytes_and_what_would_grow_is_not_compressed() -> None:
    assert File("assets/a.xyz", b"").headers["Content-Type"] == OTHER
    assert File("assets/a.json", b"").headers["Content-Type"] == "application/json"
    compressed = [File(*one).gzip_content for one in (("a.js", b"a"), ("a.png", b"a" * 1000), ("a.js", b"a" * 1000))]
    assert [content is None for content in compressed] == [True, True, False]


REFUSED_BY_POLICY = re.compile(r"<style|<script(?![^>]*\ssrc=)|<[^>]+\s(?:style|on\w+)\s*=", re.IGNORECASE)


def test_the_built_page_asks_for_nothing_but_itself() -> None:
    built = files(PAGE)
    index = built["index.html"].content.decode()
    for markup in ('<p style="a">', '<p onclick="b">', "<style>", "<script>c</script>", index):
        assert bool(REFUSED_BY_POLICY.search(markup)) == (markup != index)
    asked = re.findall(r'\s(?:src|href)="\.?/?([^"]*)"', index)
    assert asked
    assert set(asked) <= built.keys()
    assert all(file.headers["Content-Type"] != OTHER for file in built.values())
    assert all("Cache-Control" in file.headers for name, file in built.items() if name != "index.html")


def lines(content: bytes) -> list[dict]:
    return [json.loads(line) for line in content.splitlines()]


def test_the_page_and_its_assets(site, folder) -> None:
    page = site.get("/")
    assert page.content == (folder / "index.html").read_bytes()
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-store"
    script = site.get("/assets/index-Ab3_x-9Z.js")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert site.get("/assets/plain.css").headers["cache-control"] == "no-store"
    head = site.ask("HEAD", "/")
    assert (head.content, head.headers["content-length"]) == (b"", str(len(page.content)))


def test_what_is_compressed_is_the_same(site, folder) -> None:
    for path in ("/", "/assets/index-Ab3_x-9Z.js"):
        plain, zipped = site.get(path), site.get(path, Accept_Encoding="br, gzip")
        assert zipped.headers["content-encoding"] == "gzip"
        assert len(zipped.content) < len(plain.content)
        assert gzip.decompress(zipped.content) == plain.content
        assert plain.headers["vary"] == zipped.headers["vary"] == "Accept-Encoding"
        assert "content-encoding" not in plain.headers
    font = site.get("/assets/font-Ab3_x-9Z.woff2", Accept_Encoding="gzip")
    assert "content-encoding" not in font.headers
    assert font.content == (folder / "assets" / "font-Ab3_x-9Z.woff2").read_bytes()


@pytest.mark.parametrize(
    "path",
    [
        *"/assets/../../secret.txt /assets/..%2f..%2fsecret.txt /assets/%2e%2e/%2e%2e/secret.txt /assets/%00".split(),
        *r"/assets/..\..\secret.txt /assets/%5c..%5c..%5csecret.txt /assets//../index.html /secret.txt".split(),
        *"/../secret.txt /assets/../index.html /assets/ /assets /assets/plain.css%00.js".split(),
        *"/one.html //index.html /index.html/".split(),
    ],
)
def test_nothing_but_the_page_is_served(site, path: str) -> None:
    found = reply(site.send(get(path) + b"\r\n"))
    assert found.status == 404
    assert b"secret" not in found.content


def test_state_and_course(site) -> None:
    assert site.get("/api/state").json == {"models": 1, "title": "für"}
    assert site.get("/api/course?model=3&points=9").content == b"course 3 9"
    assert site.get("/api/course").content == b"course 0 600"
    for query in ("model=-1", "model=a", "points=1e3", "points=9999999", "model=%C2%B2", "model="):
        reply = site.get(f"/api/course?{query}")
        assert reply.status == 400
        assert "an integer" in reply.json["error"]
        assert reply.json["where"] == query.partition("=")[0]
    assert site.get("/api/course?points=0").content == b"course 0 0"  # what answers refuses it


def test_an_answer_is_bytes(site) -> None:
    reply = site.post("/api/look", {"said": "ö"})
    assert (reply.status, reply.content.decode()) == (200, "ö")
    assert reply.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize("name", ["look.svg", 'a"b; c.svg', "Müller\r\nX-A: b.svg"])
def test_an_export_is_a_file_to_keep(site, name: str) -> None:
    reply = site.post("/api/export", {"name": name})
    assert reply.content == b"<svg/>"
    assert reply.headers["content-type"] == "image/svg+xml"
    kind, _, said = reply.headers["content-disposition"].partition("; filename*=UTF-8''")
    assert (kind, unquote(said)) == ("attachment", name)
    assert "x-a" not in reply.headers


def test_written_is_a_line_a_token(site) -> None:
    reply = site.post("/api/write", {"most": 3})
    assert reply.headers["content-type"] == "application/x-ndjson"
    assert lines(reply.content) == [*({"id": n, "piece": "ö"} for n in range(3)), {"done": True, "text": "all"}]
    assert site.answers.ended == ["written"]


def test_a_token_is_sent_when_it_is_decided(site) -> None:
    connection = site.begin("/api/write", {"most": 3, "slow": True})
    site.answers.token.release()
    seen = b""
    while b'{"id": 0' not in seen:
        seen += connection.recv(1000)
    assert site.answers.begun == ["token 0"]


@pytest.mark.parametrize(("kind", "status", "said"), [("usage", 400, "too long"), ("fail", 500, "unexpected error")])
def test_an_error_before_the_first_token_and_one_later(site, capfd, kind: str, status: int, said: str) -> None:
    first = site.post("/api/write", {"most": 3, kind: 0})
    assert first.status == status
    assert said in first.json["error"]
    later = site.post("/api/write", {"most": 3, kind: 2})
    assert later.status == 200
    *tokens, last = lines(later.content)
    assert [token["id"] for token in tokens] == [0, 1]
    assert last.keys() == {"error"}
    assert said in last["error"]
    assert capfd.readouterr().err.count("Traceback") == (2 if status == 500 else 0)


def test_whoever_leaves_ends_what_is_written(site) -> None:
    connection = site.begin("/api/write", {"most": 10_000, "slow": True})
    site.answers.token.release(2)
    until(lambda: len(site.answers.begun) == 2)
    connection.recv(100)
    connection.close()
    until(lambda: site.answers.token.release() or site.answers.ended)
    assert site.answers.ended == ["written"]
    assert len(site.answers.begun) < 10_000
    assert site.post("/api/look").status == 200


def test_the_page_is_answered_while_something_is_computed(site) -> None:
    waiting = site.occupy()
    for path in ("/", "/assets/plain.css", "/api/state", "/api/course"):
        assert site.get(path).status == 200
    assert site.post("/api/nothing").status == 404
    assert site.answers.ended == []
    site.answers.go.set()
    assert b"200 OK" in waiting.recv(1000)


def test_the_state_is_told_while_a_long_log_is_read(site) -> None:
    number = site.answers.LONG
    waiting = site.send(get(f"/api/course?model={number}") + b"\r\n")
    until(lambda: site.answers.begun == ["course"])
    assert site.get("/api/state").status == 200
    assert site.post("/api/look").status == 200
    site.answers.go.set()
    assert reply(waiting).content == f"course {number} 600".encode()


def test_one_thing_is_computed_at_a_time_in_order(site) -> None:
    connections = [site.begin("/api/wait", {"said": "0"})]
    for number in range(1, 4):
        connections.append(site.begin("/api/look", {"said": str(number)}))
        until(lambda number=number: site.queued() == number)
    assert site.answers.begun == ["0"]
    site.answers.go.set()
    assert [reply(connection).content for connection in connections] == [b"0", b"1", b"2", b"3"]
    assert site.answers.begun == site.answers.ended == ["0", "1", "2", "3"]
    assert len(site.answers.threads) == 1


def test_too_many_are_refused_and_those_who_left_make_room(site) -> None:
    site.occupy()
    waiting = [site.begin("/api/look", {"said": str(number)}) for number in range(WAITING)]
    until(lambda: site.queued() == WAITING)
    for path in ("/api/look", "/api/write", "/api/export"):
        refused = site.post(path, {"most": 1})
        assert refused.status == 503
        assert "at once" in refused.json["error"]
    for connection in waiting[:5]:
        connection.close()
    until(lambda: site.queued() == WAITING - 5)
    last = site.begin("/api/look", {"said": "last"})
    site.answers.go.set()
    assert reply(last).content == b"last"
    assert sorted(site.answers.ended) == sorted(["wait", *map(str, range(5, WAITING)), "last"])


def test_whoever_leaves_while_it_is_computed_harms_nobody(site, capfd) -> None:
    site.occupy().close()
    site.answers.go.set()
    assert site.post("/api/look").content == b"look"
    assert site.answers.ended == ["wait", "look"]
    assert capfd.readouterr().err == ""


def test_whoever_leaves_while_asking_asks_nothing(site, capfd) -> None:
    site.send(POST + b"Content-Length: 9\r\n\r\n{").close()
    site.send(POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n").close()
    assert site.get("/").status == 200
    assert site.answers.begun == []
    assert capfd.readouterr().err == ""


def test_questions_on_one_connection_are_answered_in_order(site) -> None:
    connection = site.send(HEAD + b"\r\n" + get("/assets/plain.css") + b"\r\n")
    stream = b""
    while b"p{}" not in stream:
        stream += connection.recv(10_000)
    assert stream.index(b"models") < stream.index(b"p{}")
    assert stream.count(b"HTTP/1.1 200 OK") == 2


def test_the_end_comes_at_once_and_whoever_waits_is_told(own_site) -> None:
    site = own_site
    stream = site.begin("/api/write", {"most": 100, "slow": True})
    site.answers.token.release()
    until(lambda: site.answers.begun == ["token 0"])
    waiting = site.begin("/api/look", {})
    until(lambda: site.queued() == 1)
    slow = site.send(POST)
    half = site.send(POST + b"Content-Length: 9\r\n\r\n{")
    assert site.get("/").status == 200  # which came after all these
    before = time.monotonic()
    site.server.should_exit = True
    assert lines(reply(stream).content)[-1] == {"error": ENDING}
    told = reply(waiting)
    assert (told.status, told.json["error"]) == (503, ENDING)
    assert slow.recv(100) == b""
    assert b"200 OK" not in half.recv(100)
    assert time.monotonic() - before < 3  # which is generous: it is a quarter of a second
    assert site.answers.begun == ["token 0"]
