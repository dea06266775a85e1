"""What the tests of the page rest on: the watch sees errors, and the models have learned what they were taught."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from regard.runs.demo.grammar import words_of
from tests.page.language import pairs
from tests.page.models import LESSONS, logged, made
from tests.page.view import Watch, serving


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address and the folder of a server of files."""
    folder = tmp_path_factory.mktemp("site")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", folder
        server.shutdown()


def put(folder: Path, script: str) -> None:
    (folder / "favicon.ico").touch()
    (folder / "index.html").write_text(f"<!doctype html><p>here</p><script>{script}</script>", encoding="utf-8")


def noted(watch: Watch, address: str) -> None:
    """Open the page, and wait for what it has to complain of."""
    shown = watch(address)
    while not watch.errors:
        shown.wait_for_timeout(10)


def closed(watch: Watch) -> str:
    """What was noted."""
    with pytest.raises(AssertionError) as raised:
        watch.close()
    return str(raised.value)


@pytest.mark.parametrize(
    "script",
    ["console.error('broken glass')", "throw new Error('broken glass')", "Promise.reject(new Error('broken glass'))"],
)
def test_errors_are_seen(site: tuple[str, Path], browser: Any, script: str) -> None:
    put(site[1], script)
    watch = Watch(browser)
    noted(watch, site[0])
    assert "broken glass" in closed(watch)


def test_what_is_missing_is_an_error(site: tuple[str, Path], browser: Any) -> None:
    put(site[1], "new Image().src = 'none.png'")
    watch = Watch(browser)
    noted(watch, site[0])
    assert "404" in closed(watch)


@pytest.mark.parametrize("elsewhere", ["https://example.org/a.png", "http://localhost:9/a.png"])
def test_requests_to_others_are_seen(site: tuple[str, Path], browser: Any, elsewhere: str) -> None:
    put(site[1], f"new Image().src = '{elsewhere}'")
    watch = Watch(browser)
    noted(watch, site[0])
    watch.errors.clear()
    assert elsewhere in closed(watch)


def test_a_command_that_does_not_serve_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match=str(tmp_path / "none")),
        serving(tmp_path / "none", log=tmp_path / "stderr"),
    ):
        pass


def test_what_is_tested_was_not_learned_from() -> None:
    learned, tested = ({one.combinations for one in pairs(s)} for s in ("train", "test"))
    assert len(pairs("train")) > 1500
    assert len(pairs("test")) == 200
    assert not learned & tested
    words = [{word for one in pairs(split) for word in words_of(one.source)} for split in ("train", "test")]
    assert words[1] <= words[0]


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize("name", LESSONS)
def test_models_have_learned(name: str, page_models: Path) -> None:
    assert logged(made(name, page_models), "valid")[-1]["loss"] < LESSONS[name].loss
