"""DeepL's client, unchanged, and requests as others send them."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import deepl
import pytest
from deepl.api_data import MultilingualGlossaryDictionaryEntries

from regard.serving.core import ServiceError
from regard.serving.interfaces.deepl import INTERFACE, routes
from regard.serving.store import Store
from tests.serving.interfaces.conftest import EMPTY, KEY, Site, multipart, running

AUTH = {"Authorization": f"DeepL-Auth-Key {KEY}"}
BODY = {"text": ["Hello"], "target_lang": "DE"}


@pytest.fixture(scope="module")
def server() -> Iterator[Site]:
    store = Store.open(None)
    with store.database.write() as connection:
        connection.execute("INSERT INTO keys (id, name, hash, created) VALUES (1, 'team', x'00', '')")
    with running(lambda service: routes(service, store.glossaries)) as site:
        yield site
    store.close()


@pytest.fixture
def site(server: Site) -> Site:
    server.service.__init__(open=False)  # type: ignore[misc]
    return server


@pytest.fixture
def client(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[deepl.DeepLClient]:
    monkeypatch.setattr(deepl.http_client.time, "sleep", lambda seconds: None)
    made = deepl.DeepLClient(KEY, server_url=site.url)
    yield made
    made.close()


def test_its_client_translates(site: Site, client: deepl.DeepLClient) -> None:
    found = client.translate_text("Hello!", target_lang="DE")
    assert (found.text, found.detected_source_lang, found.billed_characters) == ("HELLO!", "EN", 6)
    asked = site.service.asked[-1]
    assert (asked.texts, asked.target, asked.source, asked.markup, asked.split) == (
        ("Hello!",),
        "DE",
        None,
        "text",
        True,
    )
    several = client.translate_text(
        ["one\ntwo", ""],
        source_lang="EN",
        target_lang="ZH-HANS",
        split_sentences="nonewlines",
        preserve_formatting=True,
        formality="prefer_less",
        context="no more",
        model_type="latency_optimized",
        extra_body_parameters={"new_field": [1]},
    )
    assert [(one.text, one.model_type_used, one.billed_characters) for one in several] == [
        ("ONE TWO", "latency_optimized", 7), ("", "latency_optimized", 0),
    ]  # fmt: skip
    client.translate_text("a", target_lang="DE", split_sentences="0")
    assert not site.service.asked[-1].split


def test_tags_are_handled_as_its_client_asks(site: Site, client: deepl.DeepLClient) -> None:
    text = "<doc><title>A <i>title</i></title><par>See <x>this</x></par></doc>"
    found = client.translate_text(text, target_lang="DE", tag_handling="xml", ignore_tags=["x", "y"])
    assert found.text == "<doc><title>A <i>TITLE</i></title><par>SEE <x>this</x></par></doc>"
    client.translate_text(
        text, target_lang="DE", tag_handling="xml", outline_detection=False, splitting_tags="par,title",
        non_splitting_tags="i",
    )  # fmt: skip
    asked = site.service.asked[-1]
    assert (asked.splitting_tags, asked.non_splitting_tags, asked.outline) == ({"par", "title"}, {"i"}, False)
    html = client.translate_text("<p>one<br>Two", target_lang="DE", tag_handling="html", tag_handling_version="v1")
    assert html.text == "<p>ONE<br>TWO"
    with pytest.raises(deepl.DeepLException, match="the tags of a text cannot be read"):
        client.translate_text("<b>one", target_lang="DE", tag_handling="xml")


def test_what_cannot_be_met_is_named_and_the_rest_ignored(site: Site) -> None:
    for name, value in {"style_id": "x", "custom_instructions": ["be kind"], "translation_memory_id": "x"}.items():
        found = site.json("/v2/translate", BODY | {name: value}, **AUTH)
        assert (found.status, name in found.json["message"]) == (400, True)
    assert site.json("/v2/translate", BODY | {"formality": "more"}, **AUTH).status == 400
    both = BODY | {"source_lang": "EN", "glossary_id": "a", "glossary_ids": ["b"]}
    assert "exclude" in site.json("/v2/translate", both, **AUTH).json["message"]
    assert "source_lang" in site.json("/v2/translate", BODY | {"glossary_id": "a"}, **AUTH).json["message"]
    many = BODY | {"source_lang": "EN", "glossary_ids": list("abcdef")}
    assert "at most 5" in site.json("/v2/translate", many, **AUTH).json["message"]
    ignored = {"custom_instructions": [], "style_id": "", "enable_beta_languages": 1, "formality": "prefer_more"}
    assert site.json("/v2/translate", BODY | ignored, **AUTH).json["translations"][0]["text"] == "HELLO"


def test_its_client_lists_languages_and_usage(client: deepl.DeepLClient) -> None:
    assert [(one.code, one.name) for one in client.get_source_languages()] == [
        ("DE", "German"), ("EN", "English"), ("PT", "Portuguese"), ("ZH", "Chinese"),
    ]  # fmt: skip
    targets = client.get_target_languages()
    assert [(one.code, one.supports_formality) for one in targets] == [("DE", False), ("EN", False), ("ZH-HANS", False)]
    assert {(one.source_lang, one.target_lang) for one in client.get_glossary_languages()} >= {
        ("en", "de"),
        ("de", "en"),
    }
    client.translate_text("Hello!", target_lang="DE")
    usage = client.get_usage()
    assert (usage.character.count, usage.character.limit, usage.any_limit_reached) == (6, 1000, False)


def test_languages_of_version_3(site: Site) -> None:
    found = {one["lang"]: one for one in site.ask("GET", "/v3/languages?resource=translate_text", **AUTH).json}
    assert (found["de"]["usable_as_source"], found["de"]["usable_as_target"]) == (True, True)
    assert (found["pt-BR"]["usable_as_source"], found["pt-BR"]["usable_as_target"]) == (True, False)
    assert found["en"]["features"]["tag_handling"] == {"status": "stable"}
    assert site.ask("GET", "/v3/languages?resource=voice", **AUTH).json == []
    assert site.ask("GET", "/v3/languages?resource=other", **AUTH).status == 400
    assert site.ask("GET", "/v3/languages", **AUTH).json == {"message": "Parameter 'resource' not specified."}
    assert [one["name"] for one in site.ask("GET", "/v3/languages/resources", **AUTH).json] == [
        "translate_text", "translate_document", "glossary",
    ]  # fmt: skip


def test_its_client_translates_documents(site: Site, client: deepl.DeepLClient, tmp_path: Path) -> None:
    given, written = tmp_path / "a.txt", tmp_path / "b.txt"
    given.write_bytes(b"Some text")
    status = client.translate_document_from_filepath(given, written, target_lang="DE", source_lang="EN")
    assert (written.read_bytes(), status.done, status.billed_characters) == (b"SOME TEXT", True, 9)
    asked = site.service.asked[-1]
    assert (asked.name, asked.kind, asked.source, asked.target) == ("a.txt", "text", "EN", "DE")
    broken = client.translate_document_upload(b"broken", target_lang="DE", filename="a.docx")
    found = client.translate_document_get_status(broken)
    assert (found.ok, found.error_message) == (False, "line 1: is no such document")
    with pytest.raises(deepl.DeepLException, match="file format not supported"):
        client.translate_document_upload(b"MZ", target_lang="DE", filename="a.exe")
    with pytest.raises(deepl.DeepLException, match="no such document"):
        client.translate_document_get_status(deepl.DocumentHandle("other", "key"))


def test_a_document_that_is_not_done_is_503_and_tells_what_remains(site: Site, client: deepl.DeepLClient) -> None:
    handle = client.translate_document_upload(b"text", target_lang="DE", filename="a.md", glossary_ids=None)
    early = site.json(f"/v2/document/{handle.document_id}/result", {"document_key": handle.document_key}, **AUTH)
    assert (early.status, early.headers["retry-after"]) == (503, "1")
    site.service.polls = 0
    status = client.translate_document_get_status(handle)
    assert (status.status.value, status.seconds_remaining) == ("translating", 1)
    body, kind = multipart(("target_lang", "", b"DE"), ("output_format", "", b"pdf"), ("file", "a.md", b"x"))
    assert "output_format" in site.ask("POST", "/v2/document", body, kind, **AUTH).json["message"]


def test_its_client_keeps_glossaries_of_version_2(site: Site, client: deepl.DeepLClient) -> None:
    made = client.create_glossary("ours", "EN", "DE", {"server": "Server", "key": "Schlüssel"})
    assert (made.name, made.source_lang.upper(), made.target_lang.upper(), made.entry_count, made.ready) == (
        "ours", "EN", "DE", 2, True,
    )  # fmt: skip
    assert client.get_glossary(made.glossary_id).creation_time == made.creation_time
    assert client.get_glossary_entries(made) == {"server": "Server", "key": "Schlüssel"}
    client.translate_text("the key", source_lang="EN", target_lang="DE", glossary=made.glossary_id)
    assert [one.source for one in site.service.asked[-1].terms.terms.entries] == ["server", "key"]
    other = client.create_glossary_from_csv("csv", "EN", "DE", 'key,"Taste, Schlüssel"\ndoor,Tür,en,de\n')
    assert client.get_glossary_entries(other) == {"key": "Taste, Schlüssel", "door": "Tür"}
    client.translate_text("a", source_lang="EN", target_lang="DE", glossary_ids=[made.glossary_id, other.glossary_id])
    assert len(site.service.asked[-1].terms.terms.entries) == 3
    assert [one.name for one in client.list_glossaries()] == ["ours", "csv"]
    for one in (made, other):
        client.delete_glossary(one)
    assert client.list_glossaries() == []
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_glossary(made.glossary_id)


def test_its_client_keeps_glossaries_of_version_3(client: deepl.DeepLClient) -> None:
    def entries(source: str, target: str, terms: dict[str, str]) -> MultilingualGlossaryDictionaryEntries:
        return MultilingualGlossaryDictionaryEntries(source, target, terms)

    def terms() -> str:
        (found,) = client.get_multilingual_glossary_entries(made, "EN", "DE").dictionaries
        return str(found.entries)

    made = client.create_multilingual_glossary(
        "both", [entries("EN", "DE", {"a": "b"}), entries("DE", "EN", {"b": "a"})]
    )
    assert {(one.source_lang, one.target_lang, one.entry_count) for one in made.dictionaries} == {
        ("EN", "DE", 1), ("DE", "EN", 1),
    }  # fmt: skip
    assert client.list_glossaries() == []
    renamed = client.update_multilingual_glossary_name(made, "two")
    assert renamed.name == "two"
    client.update_multilingual_glossary_dictionary(made, entries("EN", "DE", {"c": "d"}))
    assert terms() == "a\tb\nc\td"
    replaced = client.replace_multilingual_glossary_dictionary(made, entries("EN", "DE", {"e": "f"}))
    assert (replaced.entry_count, terms()) == (1, "e\tf")
    client.delete_multilingual_glossary_dictionary(made, source_lang="DE", target_lang="EN")
    assert len(client.get_multilingual_glossary(made.glossary_id).dictionaries) == 1
    assert [one.name for one in client.list_multilingual_glossaries()] == ["two"]
    client.delete_multilingual_glossary(made)
    assert client.list_multilingual_glossaries() == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"entries": "a"}, "entries, line 1: expected a source and a target, not 1 parts"),
        ({"entries": "a\tb\n\na\tc"}, "entries, line 3: there are two terms 'a'"),
        ({"entries": '"a', "entries_format": "csv"}, "entries"),
        ({"entries": "a\tb", "entries_format": "xls"}, "entries_format"),
        ({"entries": ""}, "one term"),
        ({"entries": "a\tb", "name": ""}, "name"),
        ({"entries": "a\tb", "source_lang": "?"}, "language"),
    ],
)
def test_what_is_no_glossary_is_refused(site: Site, fields: dict[str, str], said: str) -> None:
    body = {"name": "x", "source_lang": "en", "target_lang": "de", **fields}
    found = site.json("/v2/glossaries", body, **AUTH)
    assert (found.status, said in found.json["message"]) == (400, True), found.json


def test_weblate_sends_placeholders_to_be_ignored(site: Site) -> None:
    """``weblate/machinery/deepl.py`` of WeblateOrg/weblate."""
    sources = site.ask("GET", "/v2/languages?enable_beta_languages=1&type=source", **AUTH).json
    targets = site.ask("GET", "/v2/languages?enable_beta_languages=1&type=target", **AUTH).json
    assert "EN" in {one["language"] for one in sources}
    assert {"language": "DE", "name": "German", "supports_formality": False} in targets
    body = {
        "text": ['Remove <x id="7"></x> of <x id="30"></x> files &amp; folders?'],
        "source_lang": "EN",
        "target_lang": "DE",
        "formality": "default",
        "tag_handling": "xml",
        "ignore_tags": ["x"],
        "context": "a program",
    }
    found = site.json("/v2/translate", body, **AUTH).json["translations"]
    assert found[0]["text"] == 'REMOVE <x id="7"></x> OF <x id="30"></x> FILES &amp; FOLDERS?'
    pairs = site.ask("GET", "/v2/glossary-language-pairs", **AUTH).json["supported_languages"]
    assert {"source_lang": "en", "target_lang": "de"} in pairs
    glossary = {
        "name": "weblate:1:EN:DE:0",
        "source_lang": "EN",
        "target_lang": "DE",
        "entries": "file\tDatei",
        "entries_format": "tsv",
    }
    assert site.json("/v2/glossaries", glossary, **AUTH).status == 201
    (listed,) = site.ask("GET", "/v2/glossaries", **AUTH).json["glossaries"]
    assert site.json("/v2/translate", body | {"glossary_id": listed["glossary_id"]}, **AUTH).status == 200
    assert site.ask("DELETE", f"/v2/glossaries/{listed['glossary_id']}", **AUTH).status == 204
    assert site.ask("DELETE", f"/v2/glossaries/{listed['glossary_id']}", **AUTH).status == 404


def test_mastodon_sends_a_form_of_html(site: Site) -> None:
    """``app/lib/translation_service/deepl.rb`` of mastodon/mastodon; the http gem writes lists as repeated fields."""
    fields = [
        ("text", "<p>one</p>"),
        ("text", "two"),
        ("source_lang", ""),
        ("target_lang", "de"),
        ("tag_handling", "html"),
    ]
    found = site.form("/v2/translate", urlencode(fields), **AUTH).json
    assert found == {
        "translations": [
            {"detected_source_language": "EN", "text": text, "tag_handling_version": "v2"}
            for text in ("<p>ONE</p>", "TWO")
        ]
    }


def test_omegat_sends_a_form_with_numbered_tags(site: Site) -> None:
    """``machinetranslators/deepl`` of omegat-org/omegat, by ``HttpConnectionUtils.post``."""
    fields = {"text": "Press <b0/> <f1>now</f1> & go", "target_lang": "DE", "source_lang": "EN", "split_sentences": "0"}
    found = site.form("/v2/translate", urlencode(fields), **AUTH).json["translations"]
    assert found == [{"detected_source_language": "EN", "text": "PRESS <b0/> <f1>NOW</f1> & GO"}]


def test_errors_have_its_shapes_and_its_client_tries_again(site: Site, client: deepl.DeepLClient) -> None:
    site.service.refusals += [ServiceError(429, "too much waits", 1), ServiceError(503, "the server is busy")]
    assert client.translate_text("Hello", target_lang="DE").text == "HELLO"
    assert len(site.service.asked) == 3
    with pytest.raises(deepl.AuthorizationException, match="not known"):
        deepl.DeepLClient("other", server_url=site.url).translate_text("a", target_lang="DE")
    with pytest.raises(deepl.QuotaExceededException):
        deepl.DeepLClient(EMPTY, server_url=site.url).translate_text("a", target_lang="DE")
    with pytest.raises(deepl.DeepLException, match="no model translates from en to FR"):
        client.translate_text("a", target_lang="FR")
    missing = site.json("/v2/translate", BODY)
    assert (missing.status, missing.json) == (403, {"message": "a key is needed"})
    assert missing.headers["x-trace-id"]
    assert site.json("/v2/translate", BODY | {"auth_key": KEY}).status == 200
    assert (
        site.json("/v2/translate", {"target_lang": "DE"}, **AUTH).json["message"] == "Parameter 'text' not specified."
    )
    assert INTERFACE.owns("/v3/nothing")
