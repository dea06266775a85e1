"""Requests as clients of Google, DeepLX and two extensions of browsers send them."""

from collections.abc import Iterator

import pytest

from regard.serving.core import ServiceError
from regard.serving.interfaces.others import INTERFACES, routes
from tests.serving.interfaces.conftest import EMPTY, KEY, Site, running

GOOGLE = "/language/translate/v2"


@pytest.fixture(scope="module")
def server() -> Iterator[Site]:
    with running(routes) as site:
        yield site


@pytest.fixture
def site(server: Site) -> Site:
    server.service.__init__()  # type: ignore[misc]
    return server


def test_google_translates_html_where_nothing_else_is_said(site: Site) -> None:
    body = {"q": ["a <b>b</b> &amp; c", "two"], "target": "de"}
    assert site.json(f"{GOOGLE}?key={KEY}", body).json == {
        "data": {
            "translations": [
                {"translatedText": "A <b>B</b> &amp; C", "detectedSourceLanguage": "en"},
                {"translatedText": "TWO", "detectedSourceLanguage": "en"},
            ]
        }
    }
    assert site.service.calls[-1].key.name == "team"
    assert site.ask("GET", f"{GOOGLE}?q=a%20%3C%20b&q=two&source=en&target=de&format=text").json == {
        "data": {"translations": [{"translatedText": "A < B"}, {"translatedText": "TWO"}]}
    }


def test_google_detects_and_lists(site: Site) -> None:
    first = [{"language": "en", "confidence": 0.75, "isReliable": True}]
    assert site.json(f"{GOOGLE}/detect", {"q": ["a", "b"]}).json == {"data": {"detections": [first, first]}}
    assert site.json(f"{GOOGLE}/detect", {"q": ["a"] * 129}).status == 400
    listed = site.ask("GET", f"{GOOGLE}/languages?target=en").json["data"]["languages"]
    assert {"language": "de", "name": "German"} in listed


def test_googles_errors(site: Site) -> None:
    wrong = site.json(GOOGLE, {"q": "a", "target": "xx"})
    assert (wrong.status, wrong.json["error"]["code"]) == (400, 400)
    assert wrong.json["error"]["message"] == "no model translates from en to xx"
    assert site.json(f"{GOOGLE}?key={EMPTY}", {"q": "a", "target": "de"}).status == 403
    assert site.json(GOOGLE, {"target": "de"}).json["error"]["errors"][0]["reason"] == "invalid"


@pytest.mark.parametrize(
    ("status", "reason"),
    [(401, "forbidden"), (404, "notFound"), (413, "uploadTooLarge"), (429, "rateLimitExceeded"), (503, "backendError")],
)
def test_googles_errors_have_its_reasons(site: Site, status: int, reason: str) -> None:
    site.service.refusals.append(ServiceError(status, "is refused"))
    assert site.json(GOOGLE, {"q": "a", "target": "de"}).json["error"]["errors"][0]["reason"] == reason


@pytest.mark.parametrize("path", ["/deeplx", "/deeplx/translate"])
def test_deeplx(site: Site, path: str) -> None:
    """As its own documentation and ``src/controllers/plugins`` of xxnuo/MTranServer have it."""
    found = site.json(f"{path}?token={KEY}", {"text": "Hello", "source_lang": "auto", "target_lang": "DE"}).json
    assert found.pop("id") >= 0
    assert found == {
        "code": 200, "data": "HELLO", "alternatives": [], "source_lang": "EN", "target_lang": "DE", "method": "Free",
    }  # fmt: skip
    html = {"text": "<p>one</p>", "source_lang": "EN", "target_lang": "DE", "tag_handling": "html"}
    assert site.json(path, html, Authorization=f"Bearer {KEY}").json["data"] == "<p>ONE</p>"
    site.service.refusals += [ServiceError(429, "too much waits", 2)]
    assert site.json(path, html).json == {"code": 429, "message": "too much waits"}


def test_immersive_translate(site: Site) -> None:
    """The extension's documentation of custom interfaces: immersivetranslate.com/docs/services/custom."""
    body = {"source_lang": "auto", "target_lang": "zh-Hans", "text_list": ["Hello {0} world", "<b0>two</b0> & three"]}
    assert site.json("/imme", body).json == {
        "translations": [
            {"detected_source_lang": "en", "text": "HELLO {0} WORLD"},
            {"detected_source_lang": "en", "text": "<b0>TWO</b0> & THREE"},
        ]
    }
    assert site.json("/imme", body | {"text_list": []}).json == {"translations": []}
    assert site.json("/imme", body | {"text_list": [1]}).json.keys() == {"error"}


def test_kiss_translator(site: Site) -> None:
    """``custom-api_v2.md`` of fishjar/kiss-translator."""
    assert site.json("/kiss", {"texts": ["hello"], "from": "auto", "to": "zh-Hans"}).json == {
        "translations": [{"text": "HELLO", "src": "en"}]
    }
    assert site.json("/kiss", {"text": "hello", "from": "en", "to": "de"}).json == {"text": "HELLO", "src": "en"}
    assert site.json("/kiss", {"from": "en", "to": "de"}).json == {"error": "the request lacks texts"}
    assert site.json("/kiss", {"text": "a"}).json == {"error": "the request lacks to"}


def test_paths_belong_to_their_interface() -> None:
    owners = [[one.owns(path) for one in INTERFACES] for path in ("/language/x", "/deeplx/x", "/imme/x", "/other")]
    assert owners == [[True, False, False], [False, True, False], [False, False, True], [False, False, False]]
