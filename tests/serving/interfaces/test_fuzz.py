"""Whatever is sent to the interfaces of others, nothing fails unexpectedly."""

import json
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from regard.serving.interfaces import deepl, libretranslate, others
from regard.serving.store import Store
from tests.serving.interfaces.conftest import Site, multipart, running

DICTIONARY = {"source_lang": "en", "target_lang": "de", "entries": "a\tb\nc\td", "entries_format": "tsv"}
TRANSLATE = {
    "text": ["Hello <x>a</x>", "b"], "source_lang": "EN", "target_lang": "DE", "tag_handling": "xml",
    "ignore_tags": ["x"],
    "splitting_tags": "p,q", "outline_detection": 1, "split_sentences": "nonewlines", "show_billed_characters": True,
    "glossary_ids": ["a", "b"],
}  # fmt: skip
REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "POST",
        "/translate",
        {"q": ["Hello", "b"], "source": "auto", "target": "de", "format": "html", "alternatives": 2},
    ),
    ("POST", "/detect", {"q": "Hello"}),
    ("POST", "/translate_file", {"file": "a.md", "source": "en", "target": "de"}),
    ("GET", "/download_file/0.1.a", {}),
    ("GET", "/languages", {"api_key": "x"}),
    ("GET", "/frontend/settings", {}),
    ("GET", "/spec", {}),
    ("POST", "/v2/translate", TRANSLATE),
    ("POST", "/v2/translate", {"text": "<p>a", "target_lang": "DE", "tag_handling": "html", "splitting_tags": ["b"]}),
    ("POST", "/v2/document", {"file": "a.txt", "target_lang": "DE", "source_lang": "EN", "filename": "b.html"}),
    ("POST", "/v2/document/0", {"document_key": "0"}),
    ("POST", "/v2/document/0/result", {"document_key": "0"}),
    ("GET", "/v2/languages", {"type": "target"}),
    ("GET", "/v2/usage", {}),
    ("POST", "/v2/glossaries", {"name": "x", **DICTIONARY}),
    ("GET", "/v2/glossaries/0/entries", {}),
    ("POST", "/v3/glossaries", {"name": "x", "dictionaries": [DICTIONARY, {**DICTIONARY, "entries_format": "csv"}]}),
    ("PATCH", "/v3/glossaries/0", {"name": "y", "dictionaries": [DICTIONARY]}),
    ("PUT", "/v3/glossaries/0/dictionaries", DICTIONARY),
    ("DELETE", "/v3/glossaries/0/dictionaries", {"source_lang": "en", "target_lang": "de"}),
    ("GET", "/v3/languages", {"resource": "glossary"}),
    ("POST", "/language/translate/v2", {"q": ["a", "b"], "target": "de", "format": "text"}),
    ("POST", "/language/translate/v2/detect", {"q": "a"}),
    ("POST", "/deeplx", {"text": "a", "source_lang": "EN", "target_lang": "DE", "tag_handling": "html"}),
    ("POST", "/imme", {"text_list": ["a"], "source_lang": "en", "target_lang": "de"}),
    ("POST", "/kiss", {"texts": ["a"], "from": "en", "to": "de"}),
]
VALUES: list[Any] = [
    None, True, -1, 0, 1e308, 2**70, "", " ", "auto", "\0", "\ud7ff\U0010ffff", "<b>", "<" * 500, "a\tb\tc", "en",
    "xx-YY-zz",
    [], [[]], ["a", 1], [""], {}, {"a": []}, {"name": "x", "content": "y"}, "%s", "../../x", "a" * 400, ["x"] * 300,
    "9" * 400,
]  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Site]:
    store = Store.open(None)
    with running(
        lambda service: [
            *libretranslate.routes(service), *deepl.routes(service, store.glossaries), *others.routes(service),
        ]
    ) as site:  # fmt: skip
        yield site
    store.close()


def mutate(values: dict[str, Any], random: random.Random) -> dict[str, Any]:
    """Fields, some of which are others, or lack."""
    found = dict(values)
    for name in random.sample(list(found), random.randrange(min(len(found), 2) + 1)):
        if random.random() < 0.3:
            del found[name]
        else:
            found[name] = random.choice(VALUES)
    if random.random() < 0.2:
        found[random.choice(["base_url", "document_id", "style_id", "x", "key", ""])] = random.choice(VALUES)
    return found


def body(values: dict[str, Any], random: random.Random) -> tuple[bytes, str]:
    """Fields in one of the forms of requests, now and then with wrong bytes."""
    kind = random.choice(["json", "json", "form", "multipart"])
    if kind == "json":
        content, name = (
            json.dumps(values).encode(),
            random.choice(["application/json", "", "application/json; charset=x"]),
        )
    elif kind == "form":
        content, name = urlencode(values, doseq=True).encode("utf-8", "replace"), "application/x-www-form-urlencoded"
    else:
        parts = [(key, "a.md" if key == "file" else "", str(value).encode()) for key, value in values.items()]
        content, name = multipart(*parts)
    if random.random() < 0.15:
        at = random.randrange(len(content) + 1)
        content = content[:at] + random.choice([b"", b"\xff", b"\0", b"%", b"{", b'"', b"\r\n"]) + content[at + 1 :]
    return content, name


def ask(site: Site, random: random.Random) -> None:
    method, path, values = random.choice(REQUESTS)
    if random.random() < 0.1:
        path = path.rsplit("/", 1)[0] + "/" + quote(str(random.choice(VALUES)), safe="")[:500]
    content, kind = body(mutate(values, random), random)
    several = [{}, {"Authorization": "DeepL-Auth-Key "}, {"Authorization": "Bearer a b"}, {"Host": "[::1"}]
    headers = random.choices(several, (12, 1, 1, 1))[0]
    site.service.polls = random.randrange(3)
    reply = site.ask(method, path, content, kind, **headers)
    assert reply.status < 500 or (reply.status == 503 and "ready" in str(reply.json)), (method, path, content, kind)


def test_mutated_requests_never_fail_unexpectedly(server: Site, capfd: Any) -> None:
    for number in range(120):
        ask(server, random.Random(number))
    assert capfd.readouterr().err == ""


@pytest.mark.long(minutes=0.5)
def test_many_mutated_requests_never_fail_unexpectedly(server: Site, capfd: Any) -> None:
    for number in range(1000, 4000):
        ask(server, random.Random(number))
    assert capfd.readouterr().err == ""
