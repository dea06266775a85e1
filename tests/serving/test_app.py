"""A whole server: its own interface, who may ask, what it counts, how it ends."""

import asyncio
import json
import random
import shutil
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest

from regard.inspection import SHIPPED
from regard.serving.app import Access, listen
from regard.serving.core import Call, ServiceError, StaleModel
from regard.serving.interfaces.interface import SLOW
from regard.serving.service import LINE, STREAMED, Limits
from regard.serving.store.jobs import LARGEST
from regard.tasks.model_folder import open_without_torch
from tests.serving.conftest import PAIR, Reply, Running
from tests.serving.interfaces.test_fuzz import body, mutate
from tests.serving.search.test_threads import WORDS

TEXT = "The animal didn't cross the street because it was too tired."
TWO = f"{TEXT} The man sleeps."
TERMS = [{"source": "man", "target": "Kerl"}]


def put(running: Running, content: bytes, **fields: str):
    """A text file as a document."""
    parts = [(f'form-data; name="{name}"', value.encode()) for name, value in fields.items()]
    parts += [('form-data; name="file"; filename="a.txt"', content)]
    body = b"".join(b"--b\r\nContent-Disposition: %b\r\n\r\n%b\r\n" % (head.encode(), own) for head, own in parts)
    return running.post("/v1/documents", body + b"--b--\r\n", Content_Type="multipart/form-data; boundary=b")


def translate(running: Running, **fields):
    return running.post("/v1/translate", {"target": "de", **fields})


def test_a_translation_has_what_was_asked_for(running) -> None:
    [found] = translate(running, texts=[TWO], details=True).json["translations"]
    assert found["source"] == "en"
    assert found["guessed"] > 0.5
    task = open_without_torch(SHIPPED[0], "cpu")
    assert found["text"] == " ".join(task.translate([TEXT, "The man sleeps."]))
    first, second = found["sentences"]
    for one in (first, second):
        begin, end = one["target"]
        assert len(one["weights"]) == len(one["target_words"])
        assert {len(row) for row in one["weights"]} == {len(one["source_words"])}
        assert all(begin <= word["begin"] < word["end"] <= end for word in one["words"])
        assert all(0 <= i < len(one["source_words"]) and 0 <= j < len(one["target_words"]) for i, j in one["links"])
    assert TWO[slice(*second["source"])] == "The man sleeps."
    assert found["text"][slice(*second["target"])] == task.translate("The man sleeps.")


def test_a_plain_translation_says_no_more_than_it_must(running) -> None:
    [found] = translate(running, texts=["The man sleeps."], source="en").json["translations"]
    assert found == {"text": found["text"], "source": "en", "alternatives": [], "warnings": []}


def test_blank_texts_and_white_space_stay(running) -> None:
    texts = ["", "  ", "\n", "The man sleeps.\n\n  The man sleeps.\n"]
    found = [one["text"] for one in translate(running, texts=texts, source="en").json["translations"]]
    assert found[:3] == texts[:3]
    first, second = found[3].strip().split("\n\n  ")
    assert first == second
    assert found[3].endswith("\n")


def test_tags_go_where_their_words_went(running) -> None:
    text = 'The <b id="1">animal</b> was tired.'
    [found] = translate(running, texts=[text], markup="html").json["translations"]
    assert '<b id="1">Tier</b>' in found["text"]
    [found] = translate(running, texts=["The animal <x id='7'/> was tired."], markup="xml").json["translations"]
    assert found["text"].count("<x id='7'/>") == 1


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_text_has_the_same_translation_in_any_company(start, precision: str) -> None:
    running, draw = start(precision=precision), random.Random(4)
    lines = [" ".join(draw.choices(WORDS, k=draw.randrange(1, 14))) + "." for _ in range(40)]
    alone = {line: translate(running, texts=[line], source="en").json["translations"][0]["text"] for line in lines}
    texts = [draw.choices(lines, k=draw.choice([1, 1, 2, 9])) for _ in range(60)]
    with ThreadPoolExecutor(8) as clients:
        found = list(clients.map(lambda some: translate(running, texts=some, source="en").json["translations"], texts))
    assert [[one["text"] for one in own] for own in found] == [[alone[line] for line in some] for some in texts]


def test_terms_prefixes_and_alternatives(running) -> None:
    given = {"texts": ["The animal sleeps."], "source": "en"}
    [plain] = translate(running, **given, alternatives=2).json["translations"]
    assert len({plain["text"], *plain["alternatives"]}) == 3
    [found] = translate(running, **given, terms=[{"source": "animal", "target": "Hund"}]).json["translations"]
    assert "Hund" in found["text"]
    assert "Hund" not in plain["text"]
    [found] = translate(running, **given, prefixes=["Der"], details=True).json["translations"]
    assert found["text"].startswith("Der")
    assert found["sentences"][0]["weights"]


def test_each_text_has_its_own_prefix_where_languages_are_guessed(running) -> None:
    texts = ["Das Tier schlief, weil es sehr müde war.", "The man sleeps."]
    found = translate(running, texts=texts, prefixes=["Ein", "Der"]).json["translations"]
    assert [one["source"] for one in found] == ["de", "en"]
    assert found[1]["text"].startswith("Der")


def test_a_stream_has_every_text_once(running) -> None:
    texts = [TEXT, "The man sleeps.", ""]
    reply = translate(running, texts=texts, stream=True)
    assert reply.headers["content-type"].startswith("text/event-stream")
    *events, done = [line.removeprefix("data: ") for line in reply.content.decode().split("\n\n") if line]
    assert done == "[DONE]"
    found = {one["index"]: one["text"] for one in map(json.loads, events)}
    whole = [one["text"] for one in translate(running, texts=texts).json["translations"]]
    assert [found[place] for place in range(3)] == whole


def test_a_stream_leaves_room_for_others(start) -> None:
    running = start()
    texts = [f"{TEXT} {n}" for n in range(400)]
    streaming = threading.Thread(target=lambda: translate(running, texts=texts, source="en", stream=True))
    streaming.start()
    until = time.monotonic() + 20
    while not running.service.searching.counts().running:
        assert time.monotonic() < until
        time.sleep(0.001)
    assert running.sentences <= STREAMED
    assert translate(running, texts=["The man sleeps."], source="en").status == 200
    assert running.service.admission.calls == 1  # the stream still runs
    streaming.join(20)


@pytest.mark.parametrize("changes", [1, 2])
def test_a_call_begins_again_once_when_its_model_has_changed(running, changes: int) -> None:
    left = [StaleModel(503, "the model has changed; ask again in 2 s", 2)] * changes

    def work() -> str:
        if left:
            raise left.pop()
        return "done"

    with nullcontext() if changes == 1 else pytest.raises(StaleModel):
        assert asyncio.run(running.service._work(Call(), work)) == "done"


def test_a_wide_beam_counts_as_more_work(running, monkeypatch) -> None:
    admission, usual, entered = running.service.admission, running.service.models.beam, list[int]()
    enter = admission.enter
    monkeypatch.setattr(admission, "enter", lambda characters: entered.append(characters) or enter(characters))
    for fields in ({}, {"beam": 1}, {"beam": 4 * usual}, {"alternatives": 5}):
        assert translate(running, texts=["The man sleeps."], source="en", **fields).status == 200
    assert entered == [15, 15, 60, max(15, -(-15 * 6 // usual))]
    assert translate(running, texts=["The man sleeps.\n\n", "a"], source="en").status == 200
    assert entered[4:] == [18 + 2 * LINE]


def test_what_is_accepted_has_time_to_be_done(start) -> None:
    assert start(seconds=3.0).service.admission._seconds == 1.0
    assert start().service.admission._seconds == Limits().waiting


def test_text_in_the_language_that_is_asked_for_stays(running) -> None:
    text = "Der Mann schläft, weil er müde ist."
    for source in ("de", "DE", "de-AT"):
        assert put(running, text.encode(), source=source, target="de").status == 200
        assert translate(running, texts=[text], source=source).json["translations"][0]["text"] == text
    refused = running.post("/v1/score", {"texts": [text], "translations": ["a"], "target": "de"})
    assert refused.status == 400
    assert "through" not in refused.json["error"]
    for said in ({}, {"source": "de"}):  # which no model of this server reads
        [found] = translate(running, texts=[text], **said).json["translations"]
        assert (found["text"], found["source"]) == (text, "de")


def test_two_models_translate_where_none_does_by_the_languages_that_they_are_given(start, tmp_path) -> None:
    shutil.copytree(SHIPPED[0] / "model", tmp_path / "other")
    running, task = start(folders=[PAIR, f"de:fr={tmp_path / 'other'}"]), open_without_torch(SHIPPED[0], "cpu")
    asked = {"source": "en", "target": "fr"}
    expected = " ".join(task.translate(task.translate([TEXT, "The man sleeps."])))
    [found] = running.post("/v1/translate", {**asked, "texts": [TWO]}).json["translations"]
    assert found == {"text": expected, "source": "en", "through": "de", "alternatives": [], "warnings": []}
    tagged = running.post("/v1/translate", {**asked, "texts": [f"<b>{TWO}</b>"], "markup": "html"})
    [found] = tagged.json["translations"]
    assert (found["text"], found["through"]) == (f"<b>{expected}</b>", "de")
    for markup in ("text", "html"):
        refused = running.post("/v1/translate", {**asked, "texts": [TWO], "markup": markup, "terms": TERMS})
        assert (refused.status, refused.json) == (
            400,
            {"error": "terms need one model; en is translated into fr through de"},
        )
    refused = put(running, b"The man sleeps.", source="en", target="fr", terms=json.dumps(TERMS))
    assert refused.status == 400
    pairs = running.get("/v2/glossary-language-pairs").json["supported_languages"]
    assert [tuple(one.values()) for one in pairs] == [("de", "fr"), ("en", "de")]


def test_what_one_model_says(running) -> None:
    [pair] = translate(running, texts=[TEXT]).json["translations"]
    given = {"texts": [TEXT], "translations": [pair["text"]], "target": "de"}
    [score] = running.post("/v1/score", given).json["scores"]
    assert score["log_probability"] == pytest.approx(sum(score["log_probabilities"]), abs=1e-4)
    [links] = running.post("/v1/align", given).json["links"]
    assert [0, 0] in links
    attention = running.post("/v1/attention", {"text": TEXT, "target": "de"}).json
    assert attention["target"] == pair["text"]
    assert sum(attention["weights"][0]) == pytest.approx(1, abs=0.01)
    assert running.post("/v1/detect", {"text": "Der Mann."}).json["guesses"][0]["language"] == "de"
    missing = running.post("/v1/classify", {"texts": ["a"]})
    assert (missing.status, missing.json) == (404, {"error": "there is no model for this here"})


def test_a_memory_is_used_where_it_is_asked_for(running) -> None:
    pair = {"source": "en", "target": "de"}
    text = f"{TEXT} The man sleeps."
    assert running.post("/v1/memory", {**pair, "pairs": [["The man sleeps.", "Er ruht."]]}).json == {"texts": 1}
    [plain] = translate(running, texts=[text]).json["translations"]
    [found] = translate(running, texts=[text], memory=True).json["translations"]
    assert found["text"].endswith(" Er ruht.")
    assert not plain["text"].endswith("Er ruht.")
    assert running.ask("DELETE", "/v1/memory?source=en&target=de").status == 204
    assert running.get("/v1/memory?source=en&target=de").json == {"texts": 0}


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"texts": []}, 400, "texts"),
        ({"texts": "a"}, 400, "texts"),
        ({"texts": ["a"], "target": "fr"}, 400, "fr"),
        ({"texts": ["a"], "source": "xx"}, 400, "xx"),
        ({"texts": ["a"], "alternatives": 99}, 400, "alternatives"),
        ({"texts": ["a"], "beam": 99}, 400, "beam"),
        ({"texts": ["a"], "prefixes": ["a", "b"]}, 400, "prefixes"),
        ({"texts": ["a"], "terms": [{"source": "a\tb", "target": "c"}]}, 400, "terms"),
        ({"texts": ["a"] * 1025}, 413, "1,024 texts"),
        ({"texts": ["a" * 20_001]}, 413, "20,000 characters"),
        ({"texts": ["a" * 20_000] * 6}, 413, "100,000 characters"),
        ({"texts": ["<a"], "markup": "xml"}, 400, "XML"),
        ({"texts": ["a"], "markup": "html", "alternatives": 1}, 400, "alternatives"),
        ({"texts": ["a"], "markup": "html", "details": True}, 400, "details"),
        ({"texts": ["a"], "markup": "xml", "prefixes": ["Ein"]}, 400, "prefixes"),
    ],
)
def test_what_is_wrong_is_said(running, fields, status: int, said: str) -> None:
    reply = translate(running, **fields)
    assert reply.status == status
    assert said in reply.json["error"]


def put_document(running: Running) -> Reply:
    body = b"\r\n".join(
        [
            b"--b",
            b'Content-Disposition: form-data; name="file"; filename="a.html"',
            b"",
            b"<p>The <b>animal</b> sleeps.</p>",
            b"--b",
            b'Content-Disposition: form-data; name="target"',
            b"",
            b"de",
            b"--b--",
            b"",
        ]
    )
    return running.post("/v1/documents", body, Content_Type="multipart/form-data; boundary=b")


def test_a_document_is_a_job(running) -> None:
    name = put_document(running).json
    path, secret = f"/v1/documents/{name['id']}", {"Document_Secret": name["secret"]}
    until = time.monotonic() + 20
    while (job := running.get(path, **secret).json)["status"] not in ("done", "error"):
        assert time.monotonic() < until
        time.sleep(0.02)
    assert (job["status"], job["done"], job["segments"]) == ("done", 1, 1)
    result = running.get(f"{path}/result", **secret)
    assert b"<b>Tier</b>" in result.content
    assert "a.de.html" in result.headers["content-disposition"]
    assert running.get(path, Document_Secret="another").status == 404
    assert running.get(path).json == {"error": "the request lacks the header Document-Secret"}
    no_file = running.post("/v1/documents", {"file": "<p>a</p>", "target": "de"})
    assert (no_file.status, no_file.json) == (400, {"error": "file: expected one file in a form"})
    assert running.ask("DELETE", path, **secret).status == 204
    assert running.get(path, **secret).status == 404


FIELDS: dict[str, dict[str, Any]] = {
    "translate": {"texts": [TEXT, "<b>a"], "target": "de", "markup": "html", "alternatives": 2, "beam": 2},
    "detect": {"text": TEXT},
    "score": {"texts": [TEXT], "translations": ["Das Tier."], "target": "de", "source": "en"},
    "align": {"texts": [TEXT], "translations": ["Das Tier."], "target": "de"},
    "attention": {"text": TEXT, "target": "de"},
    "words": {"text": TEXT, "translation": "Das Tier.", "target": "de", "source": "en"},
    "generate": {"prompt": TEXT},
    "memory": {"source": "en", "target": "de", "pairs": [["a", "b"]]},
    "documents": {"file": "a.md", "target": "de"},
}


def test_a_request_to_any_model_has_no_more_characters_than_one_may(running) -> None:
    many = {"texts": ["a " * 9_000] * 6, "translations": ["b"] * 6, "target": "de", "source": "en"}
    reply = running.post("/v1/score", many)
    assert (reply.status, reply.json) == (413, {"error": "a request may have at most 100,000 characters"})


def test_mutated_requests_never_fail_unexpectedly(running) -> None:
    for number in range(150):
        draw = random.Random(number)
        name = draw.choice(list(FIELDS))
        content, kind = body(mutate(FIELDS[name], draw), draw)
        reply = running.post(f"/v1/{name}", content, Content_Type=kind)
        assert reply.status < 500, (number, name, content)


def test_state_metrics_and_description(running) -> None:
    assert running.get("/livez").json == {"status": "ok"}
    assert running.get("/readyz").json == {"status": "ready"}
    limits = running.get("/v1/settings").json["limits"]
    assert (limits["texts"], limits["model_texts"], limits["words_characters"]) == (1024, 128, 2000)
    english = {"code": "en", "name": "English", "targets": ["de"], "direct": ["de"]}
    assert running.get("/v1/languages").json["languages"] == [english]
    translate(running, texts=["The man sleeps."])
    lines = running.get("/metrics").content.decode().splitlines()
    assert 'regard_model_loaded{model="transformer"} 1.0' in lines
    assert "regard_calls_running 0.0" in lines
    assert "regard_characters_waiting 0.0" in lines
    assert any(line.startswith('regard_requests_total{path="/v1/translate",status="200"}') for line in lines)
    described = running.get("/openapi.json").json
    assert set(described["paths"]["/v1/documents/{id}"]) == {"get", "delete"}
    body = described["paths"]["/v1/score"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["required"]) == {"texts", "translations", "target"}


def test_without_its_data_folder_a_server_does_what_needs_none(start, tmp_path) -> None:
    running = start(data=tmp_path / "data")
    key = {"Authorization": f"Bearer {running.store.keys.make('team')}"}
    assert running.get("/readyz").status == 200
    shutil.rmtree(tmp_path / "data")
    said = "the data folder was removed or replaced; start the server anew"
    reply = running.get("/readyz")
    assert (reply.status, reply.json) == (503, {"status": said})
    for reply in (put_document(running), running.get("/v1/usage", **key)):
        assert (reply.status, reply.json) == (503, {"error": said})
    assert translate(running, texts=["The man sleeps."]).status == 200
    assert running.get("/metrics").status == running.get("/livez").status == 200


def test_every_answer_has_its_headers_and_the_page_is_there(running) -> None:
    page = running.get("/", Accept_Encoding="gzip")
    assert page.headers["content-encoding"] == "gzip"
    for reply in (page, running.get("/nothing"), running.get("/v1/nothing"), running.post("/translate", {})):
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in reply.headers
    assert running.get("/v1/nothing").json == {"error": "Not Found"}
    assert running.get("/v2/nothing").json == {"message": "Not Found"}


@pytest.mark.parametrize(
    ("path", "methods"),
    [("/v2/languages", "GET, HEAD, POST"), ("/v1/memory", "DELETE, GET, HEAD, POST"), ("/v1/translate", "POST")],
)
def test_a_wrong_method_is_told_all_right_ones(running, path: str, methods: str) -> None:
    reply = running.ask("PUT", path)
    assert (reply.status, reply.headers["allow"]) == (405, methods)


def test_what_is_no_http_is_answered_as_other_errors_are(running) -> None:
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as made:
        made.sendall(b"what is this\r\n\r\n")
        head, _, content = made.makefile("rb").read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert list(json.loads(content)) == ["error"]


def test_unknown_fields_are_ignored_by_all_operations(running) -> None:
    for name in ("translate", "score", "attention"):
        reply = running.post(f"/v1/{name}", {**FIELDS[name], "alternatives": 0, "unknown": 1}, Document_Secret="a")
        assert reply.status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost:1"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "null", "Sec_Fetch_Site": "same-origin"}, 200),
        ({"Origin": "http://localhost:1", "Host": "LOCALHOST:1"}, 200),
        ({"Origin": "chrome-extension://abc"}, 200),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}, 200),
        ({"Sec_Fetch_Site": "same-origin"}, 200),
    ],
)
def test_other_names_and_other_pages_are_refused(running, headers, status: int) -> None:
    assert running.get("/livez", **headers).status == status


def test_a_page_that_is_allowed_may_ask(start) -> None:
    running = start(Access(names=("translate.example",), origins=("https://wiki.example",)))
    asked = {"Host": "translate.example", "Origin": "https://wiki.example"}
    reply = running.post("/v1/detect", {"text": "a"}, **asked)
    assert reply.headers["access-control-allow-origin"] == "https://wiki.example"
    assert "Retry-After" in reply.headers["access-control-expose-headers"]
    before = running.ask("OPTIONS", "/v1/detect", **asked, Access_Control_Request_Headers="content-type")
    assert (before.status, before.headers["access-control-allow-headers"]) == (204, "content-type")
    assert running.post("/v1/detect", {"text": "a"}, **{**asked, "Origin": "https://other.example"}).status == 403


def test_a_key_is_needed_counts_and_may_be_revoked(start) -> None:
    running = start(needs_key=True)
    secret = running.store.keys.make("team", 40)
    key = {"Authorization": f"Bearer {secret}"}
    asked = {"texts": ["The man sleeps."], "target": "de"}
    assert running.post("/v1/translate", asked).status == 401
    assert running.post("/v1/translate", asked, Authorization="Bearer wrong").status == 403
    assert running.post("/v1/translate", asked, **key).status == 200
    assert running.post("/v1/attention", {"text": "A man.", "target": "de"}, **key).status == 200
    assert running.get("/v1/usage", **key).json == {"characters": 15 + 6, "limit": 40}
    assert running.post("/v1/translate", {**asked, "texts": ["a" * 26]}, **key).status == 456
    running.store.keys.revoke("team")
    assert running.post("/v1/translate", asked, **key).status == 403


def test_what_is_said_too_late_is_not_answered(running, monkeypatch) -> None:
    call = Call(deadline=time.monotonic() + 0.05)

    def say(found: object) -> str:
        while time.monotonic() < call.deadline:
            pass
        return "said"

    fields, _ = running.service.answers.kinds["attention"]
    monkeypatch.setitem(running.service.answers.kinds, "attention", (fields, say))
    with pytest.raises(ServiceError, match="time limit") as refused:
        asyncio.run(running.service.model_answer("attention", FIELDS["attention"], call))
    assert refused.value.status == 504


def test_what_a_model_writes_counts_and_needs_some_characters(start, monkeypatch) -> None:
    running = start(needs_key=True)
    key = {"Authorization": f"Bearer {running.store.keys.make('team', 10)}"}
    monkeypatch.setattr(running.service.answers, "generate", lambda asked: iter(["four", "teen more."]))
    for status, characters in ((200, 14), (456, 14)):
        assert running.post("/v1/generate", {"prompt": ""}, **key).status == status
        assert running.get("/v1/usage", **key).json["characters"] == characters


def test_the_largest_document_has_time_to_arrive(running) -> None:
    assert running.server.config.http.keywords["limits"].whole > SLOW * (LARGEST >> 20)


def test_a_key_has_no_more_characters_by_asking_at_once(start) -> None:
    running = start(needs_key=True)
    key = {"Authorization": f"Bearer {running.store.keys.make('team', 1000)}"}
    asked = {"texts": [TEXT] * 16, "target": "de", "source": "en"}
    late = {**asked, "seconds": 1e-9}
    assert running.post("/v1/translate", late, **key).status == 504
    assert running.post("/v1/generate", {"prompt": TEXT}, **key).status == 404
    assert running.get("/v1/usage", **key).json == {"characters": 0, "limit": 1000}
    with ThreadPoolExecutor(12) as clients:
        found = list(clients.map(lambda _: running.post("/v1/translate", asked, **key).status, range(12)))
    assert sorted(found) == [200] + [456] * 11
    assert running.get("/v1/usage", **key).json["characters"] == 16 * len(TEXT)
    some = {**asked, "texts": ["The man", "The"], "stream": True}
    assert b"[DONE]" in running.post("/v1/translate", some, **key).content
    assert running.get("/v1/usage", **key).json["characters"] == 16 * len(TEXT) + 10


def test_texts_are_never_logged(start, capfd) -> None:
    running = start(Access(log=True))
    assert translate(running, texts=["The secret animal."]).status == 200
    assert running.get("/translate?q=secret").status == 405
    assert running.get("/translate/en/de/secret").status == 404
    assert running.ask("PUT", "/v1/documents/secret").status == 405
    long = "secret " * 1_000
    for name, fields in (("attention", {"text": long}), ("score", {"texts": [long], "translations": ["a"]})):
        assert running.post(f"/v1/{name}", {**fields, "target": "de"}).status in (200, 400)
    said = capfd.readouterr().err
    assert "POST '/v1/translate' 200" in said
    assert "secret" not in said


def test_too_much_is_refused_until_there_is_room(start) -> None:
    running = start(waiting=0.0)
    with running.service.admission.enter(1000):
        for path, fields in (
            ("/v1/translate", {"texts": ["a"], "target": "de"}),
            ("/translate", {"q": "a", "source": "en", "target": "de"}),
        ):
            reply = running.post(path, fields)
            assert reply.status == 429
            assert int(reply.headers["retry-after"]) >= 1
    assert translate(running, texts=["The man sleeps."]).status == 200


def test_a_call_has_a_deadline(start) -> None:
    running = start()
    assert translate(running, texts=["The man sleeps."], seconds=1e-9).status == 504


def test_who_leaves_frees_all(running) -> None:
    content = json.dumps({"texts": [f"{TEXT} {n}" for n in range(200)], "target": "de", "source": "en"}).encode()
    lines = ("POST /v1/translate HTTP/1.1", "Host: localhost", "Content-Type: application/json")
    head = "\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""])
    made = socket.create_connection(("127.0.0.1", running.port))
    made.sendall(head.encode() + content)
    until = time.monotonic() + 20
    while not running.service.searching.counts().running:
        assert time.monotonic() < until
        time.sleep(0.001)
    made.close()
    while running.sentences or running.service.admission.calls:
        assert time.monotonic() < until
        time.sleep(0.001)


def test_sigterm_lets_calls_end_and_refuses_new_ones(start, monkeypatch) -> None:
    monkeypatch.setattr("regard.serving.app.GRACE", 0.5)
    running = start()
    translate(running, texts=["The man sleeps."])
    found = []
    asking = threading.Thread(
        target=lambda: found.append(translate(running, texts=[f"{TEXT} {n}" for n in range(60)], source="en"))
    )
    asking.start()
    until = time.monotonic() + 20
    while not running.service.searching.counts().running:
        assert time.monotonic() < until
        time.sleep(0.001)
    running.server.handle_exit(signal.SIGTERM, None)
    assert running.get("/readyz").status == 503
    assert translate(running, texts=["a"]).status == 503
    asking.join(20)
    assert found[0].status == 200
    running.thread.join(20)
    assert not running.thread.is_alive()


def test_a_second_signal_ends_all_at_once(start, monkeypatch) -> None:
    running, ended = start(), list[float]()
    end = running.service.end
    monkeypatch.setattr(running.service, "end", lambda seconds: ended.append(seconds) or end(seconds))
    with running.service.admission.enter(1000):
        running.server.handle_exit(signal.SIGTERM, None)
        running.server.handle_exit(signal.SIGTERM, None)
        running.thread.join(20)
        assert not running.thread.is_alive()
    assert ended == [0.0]


def test_an_answer_of_two_packets_waits_for_no_acknowledgement() -> None:
    with listen("127.0.0.1", 0) as found:
        assert found.proto == socket.IPPROTO_TCP  # else asyncio sets no TCP_NODELAY, and an answer takes 40 ms more
