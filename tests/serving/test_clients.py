"""Clients of others, unchanged, with a server of a real model."""

import random
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace

import deepl
import pytest
import uvicorn
from libretranslatepy import LibreTranslateAPI

from regard.inspection import SHIPPED
from regard.serving.app import Access, ServiceSite
from regard.serving.models import ServedModels
from regard.serving.search.threads import SearchThreads
from regard.serving.service import TranslationService
from regard.serving.store import Store
from tests.serving.interfaces.conftest import PATIENCE, Site
from tests.serving.interfaces.test_fuzz import ask

TEXT = "The animal didn't cross the street because it was too tired."


@dataclass
class Served:
    """A server and its parts."""

    url: str
    port: int
    store: Store
    key: str


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    store = Store.open(None)
    key = store.keys.make("team", 100_000)
    searching = SearchThreads(1)
    models = ServedModels([f"en:de={SHIPPED[0]}"], searching=searching)
    service = TranslationService(models, store, searching)
    site = ServiceSite(service, Access())
    server = uvicorn.Server(uvicorn.Config(site.app, ws="none", lifespan="off", log_config=None))
    service.start()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield Served(f"http://127.0.0.1:{port}", port, store, key)
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            service.end(1.0)
    assert not thread.is_alive()


@pytest.fixture
def client(served: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[deepl.DeepLClient]:
    made = deepl.DeepLClient(served.key, server_url=served.url)
    yield made
    made.close()


def test_both_clients_get_the_same_translation_whoever_else_asks(served: Served, client: deepl.DeepLClient) -> None:
    free = LibreTranslateAPI(served.url, served.key)
    alone = free.translate(TEXT, "en", "de")
    assert alone.startswith("Das Tier")
    others = ["The dog is too big.", "The car didn't stop because it was too old.", "It was red."]

    def one(number: int) -> tuple[str, str]:
        text = [*others, TEXT][number % 4]
        if number % 2:
            return text, free.translate(text, "en", "de")
        return text, client.translate_text([text], source_lang="EN", target_lang="DE")[0].text

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(one, range(24)))
    assert len(set(found)) == 4
    assert dict(found)[TEXT] == alone


def test_placeholders_and_terms_are_kept(client: deepl.DeepLClient) -> None:
    text = 'The <b>animal</b> <x id="7"></x> was too tired &amp; old.\n<x id="30"></x> It was red.'
    found = client.translate_text(text, source_lang="EN", target_lang="DE", tag_handling="xml", ignore_tags="x").text
    assert [found.count(one) for one in ("<b>", "</b>", '<x id="7"></x>', '<x id="30"></x>')] == [1, 1, 1, 1]
    glossary = client.create_glossary("ours", "EN", "DE", {"animal": "Wesen"})
    with_terms = client.translate_text(TEXT, source_lang="EN", target_lang="DE", glossary=glossary).text
    assert "Wesen" in with_terms
    client.delete_glossary(glossary)


def test_a_document_is_translated_and_counted(client: deepl.DeepLClient, monkeypatch: pytest.MonkeyPatch) -> None:
    paused = threading.Event()
    monkeypatch.setattr(deepl.translator.time, "sleep", lambda seconds: paused.wait(0.02))
    before = client.get_usage().character.count or 0
    handle = client.translate_document_upload(TEXT, target_lang="DE", source_lang="EN", filename="a.md")
    status = client.translate_document_wait_until_done(handle, timeout_s=int(PATIENCE))
    assert (status.done, status.billed_characters) == (True, len(TEXT))
    assert (
        client.translate_document_download(handle).content.decode()
        == client.translate_text(TEXT, target_lang="DE").text
    )
    usage = client.get_usage().character
    assert (usage.count, usage.limit) == (before + 2 * len(TEXT), 100_000)


def test_a_key_that_is_none_and_a_language_that_is_not_served_are_told(
    served: Served, client: deepl.DeepLClient
) -> None:
    with pytest.raises(deepl.AuthorizationException):
        deepl.DeepLClient("other", server_url=served.url).get_usage()
    with pytest.raises(deepl.DeepLException, match="Bad request"):
        client.translate_text(TEXT, target_lang="FR")
    assert [one.code for one in client.get_target_languages()] == ["DE"]


def test_mutated_requests_never_fail_unexpectedly(served: Served) -> None:
    site = Site(SimpleNamespace(polls=0), served.port)  # type: ignore[arg-type]
    for number in range(60):
        ask(site, random.Random(number))


@pytest.mark.long(minutes=0.5)
def test_many_mutated_requests_never_fail_unexpectedly(served: Served) -> None:
    site = Site(SimpleNamespace(polls=0), served.port)  # type: ignore[arg-type]
    for number in range(1000, 4000):
        ask(site, random.Random(number))
