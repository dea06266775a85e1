"""LibreTranslate's clients, unchanged, and requests as others send them."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from libretranslatepy import LibreTranslateAPI

from regard.serving.core import ServiceError, TranslationRequest
from regard.serving.interfaces import libretranslate
from regard.serving.interfaces.libretranslate import INTERFACE, routes
from tests.serving.interfaces.conftest import EMPTY, KEY, LANGUAGES, Site, multipart, running


@pytest.fixture(scope="module")
def server() -> Iterator[Site]:
    with running(lambda service: routes(service, key_needed=True)) as site:
        yield site


@pytest.fixture
def site(server: Site) -> Site:
    server.service.__init__()  # type: ignore[misc]
    return server


def test_its_client_translates_detects_and_lists(site: Site) -> None:
    client = LibreTranslateAPI(site.url, KEY)
    assert client.translate("Grüße, %s & 1+1!", "de", "en") == "GRÜSSE, %S & 1+1!"
    assert site.service.asked[-1] == TranslationRequest(("Grüße, %s & 1+1!",), "en", "de")
    assert client.detect("Hello") == [{"confidence": 75.0, "language": "en"}, {"confidence": 12.5, "language": "de"}]
    assert client.languages() == [
        {"code": code, "name": name, "targets": list(to)} for code, (name, to) in LANGUAGES.items()
    ]
    assert site.service.calls[-1].key.name == "team"


def test_a_list_is_translated_at_once_and_each_text_may_be_guessed(site: Site) -> None:
    found = site.json(
        "/translate", {"q": ["one", "👍🏽 12", "two"], "source": "auto", "target": "de", "alternatives": "2"}
    )
    assert found.json == {
        "translatedText": ["ONE", "👍🏽 12", "TWO"],
        "detectedLanguage": [
            {"confidence": 75.0, "language": "en"},
            {"confidence": 0.0, "language": "en"},
            {"confidence": 75.0, "language": "en"},
        ],
        "alternatives": [["ONE 1", "ONE 2"], [], ["TWO 1", "TWO 2"]],
    }
    assert site.service.asked == [TranslationRequest(("one", "two"), "de", None, alternatives=2)]
    assert site.json("/translate", {"q": "👍", "source": "auto", "target": "de", "alternatives": 1}).json == {
        "translatedText": "👍",
        "detectedLanguage": {"confidence": 0.0, "language": "en"},
        "alternatives": [],
    }
    assert site.json("/detect", {"q": "👍"}).json == [{"confidence": 0.0, "language": "en"}]


def test_codes_with_script_and_region_are_taken(site: Site) -> None:
    assert site.json("/translate", {"q": "a", "source": "en", "target": "zh-Hans"}).json == {"translatedText": "A"}
    assert site.json("/translate", {"q": "a", "source": "pt-BR", "target": "en"}).json == {"translatedText": "A"}


def test_weblate_sends_lists_and_an_empty_key(site: Site) -> None:
    """``weblate/machinery/libretranslate.py`` of WeblateOrg/weblate; LTEngine sends one text."""
    assert [one["code"] for one in site.ask("GET", "/languages").json] == list(LANGUAGES)
    body = {"api_key": "", "q": ["Hello, %s!", "World"], "source": "en", "target": "de"}
    assert site.json("/translate", body).json == {"translatedText": ["HELLO, %S!", "WORLD"]}
    assert site.json("/translate", body | {"q": "Hello"}).json == {"translatedText": "HELLO"}
    assert site.service.calls[-1].key.id == 0


def test_mastodon_sends_html_of_unknown_language(site: Site) -> None:
    """``app/lib/translation_service/libre_translate.rb`` of mastodon/mastodon."""
    html = '<p>So <em>nice</em> &amp; <a href="https://example.org/x">good</a></p>'
    body = {"q": html, "source": "auto", "target": "de", "format": "html", "api_key": KEY}
    assert site.json("/translate", body).json["translatedText"] == (
        '<p>SO <em>NICE</em> &amp; <a href="https://example.org/x">GOOD</a></p>'
    )
    assert site.service.asked[-1].markup == "html"
    site.service.refusals += [ServiceError(429, "too much waits", 3)]
    busy = site.json("/translate", body)
    assert (busy.status, busy.headers["retry-after"], busy.json) == (429, "3", {"error": "too much waits"})
    assert site.json("/translate", body | {"api_key": EMPTY}).status == 403


def test_searxng_asks_for_three_alternatives(site: Site) -> None:
    """``searx/engines/libretranslate.py`` of searxng/searxng."""
    found = site.json("/translate", {"q": "word", "source": "en", "target": "de", "alternatives": 3}).json
    assert found == {"translatedText": "WORD", "alternatives": ["WORD 1", "WORD 2", "WORD 3"]}


def test_omegat_sends_a_form_in_the_order_of_the_alphabet(site: Site) -> None:
    """``LibreTranslate.java`` of omegat-org/omegat-libre-translate, by ``HttpConnectionUtils.post``."""
    body = urlencode({"q": "Press <b0/> <f1>now & x<y</f1>", "source": "en", "target": "de"})
    assert site.form("/translate", body).json == {"translatedText": "PRESS <b0/> <f1>NOW & X<Y</f1>"}


def test_a_document_waits_until_it_is_done_and_is_read_at_its_address(site: Site) -> None:
    body, kind = multipart(
        ("source", "", b"en"),
        ("target", "", b"de"),
        ("api_key", "", KEY.encode()),
        ("file", "a report.txt", b"Some text"),
    )
    found = site.ask("POST", "/translate_file", body, kind).json
    assert (site.service.asked[-1].kind, site.service.asked[-1].source, site.service.polls) == ("text", "en", 2)
    address = found["translatedFileUrl"]
    assert address.startswith(f"{site.url}/download_file/")
    with urlopen(address) as answer:
        assert answer.read() == b"SOME TEXT"
        assert answer.headers["Content-Disposition"] == "attachment; filename*=UTF-8''a%20report.txt"
    assert site.ask("GET", "/download_file/other").json == {"error": "there is no such document"}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [("a.exe", b"MZ", "file format not supported"), ("a.docx", b"broken", "line 1: is no such document")],
)
def test_what_is_no_document_is_told(site: Site, name: str, content: bytes, said: str) -> None:
    body, kind = multipart(("source", "", b"auto"), ("target", "", b"de"), ("file", name, content))
    found = site.ask("POST", "/translate_file", body, kind)
    assert found.status == 400
    assert said in found.json["error"]


def test_a_document_may_take_too_long(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libretranslate, "PATIENCE", -1.0)
    body, kind = multipart(("source", "", b"en"), ("target", "", b"de"), ("file", "a.md", b"text"))
    assert site.ask("POST", "/translate_file", body, kind).status == 504


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"source": "en", "target": "de"}, "Invalid request: missing q parameter"),
        ({"q": "a", "target": "de"}, "Invalid request: missing source parameter"),
        ({"q": "a", "source": "en"}, "Invalid request: missing target parameter"),
        ({"q": "", "source": "en", "target": "de"}, "q"),
        ({"q": [], "source": "en", "target": "de"}, "q"),
        ({"q": [1], "source": "en", "target": "de"}, "q"),
        ({"q": "a", "source": "en", "target": "de", "format": "xml"}, "format"),
        ({"q": "a", "source": "en", "target": "de", "alternatives": -1}, "alternatives"),
        ({"q": "a", "source": "en", "target": "de", "alternatives": "many"}, "alternatives"),
        ({"q": "a", "source": "en", "target": "xx"}, "no model translates from en to xx"),
    ],
)
def test_what_is_wrong_is_an_error_of_400(site: Site, body: dict[str, Any], said: str) -> None:
    found = site.json("/translate", body)
    assert found.status == 400
    assert found.json.keys() == {"error"}
    assert said in found.json["error"]


def test_a_missing_key_is_400_and_a_wrong_one_403(site: Site) -> None:
    site.service.open = False
    body = {"q": "a", "source": "en", "target": "de"}
    assert site.json("/translate", body).json == {"error": "a key is needed"}
    assert site.json("/translate", body).status == 400
    assert site.json("/translate", body | {"api_key": "other"}).status == 403
    assert site.ask("GET", "/languages").status == 200


def test_what_a_page_asks_first(site: Site) -> None:
    assert site.ask("GET", "/health").json == {"status": "ok"}
    settings = site.ask("GET", "/frontend/settings").json
    assert settings["language"] == {
        "source": {"code": "auto", "name": "Auto Detect"},
        "target": {"code": "de", "name": "German"},
    }
    assert (settings["keyRequired"], settings["suggestions"], settings["charLimit"]) == (True, False, -1)
    assert {".txt", ".docx", ".html", ".srt"} <= set(settings["supportedFilesFormat"])
    refused = site.form("/suggest", "q=a&s=b&source=en&target=de")
    assert (refused.status, refused.json) == (403, {"error": "Suggestions are disabled on this server."})
    spec = site.ask("GET", "/spec").json
    assert spec["info"] == {"title": "LibreTranslate", "version": "1.9.6"}
    parameters = {one["name"]: one for one in spec["paths"]["/translate"]["post"]["parameters"]}
    assert {name for name, one in parameters.items() if one["required"]} == {"q", "source", "target"}
    assert parameters["format"]["schema"] == {"enum": ["text", "html"], "default": "text", "type": "string"}
    assert "base_url" not in json.dumps(spec)
    assert not INTERFACE.owns("/v2/translate")
