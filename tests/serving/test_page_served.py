"""The page as ``regard serve`` serves it, with a model that was trained."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import regard
from regard.inspection import SHIPPED
from tests.page.view import BROWSERS, Watch, browsing, chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.long(minutes=0.2)

TEXT = "The animal didn't cross the street because it was too tired."


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    pytest.importorskip("playwright")
    if chromium() is None:
        pytest.skip(f"needs a browser: install one of {', '.join(BROWSERS)}, or name it: REGARD_CHROMIUM")
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    options = ["--port", "0", "--data", str(folder / "data"), "--threads", "1", "--attention", "http://127.0.0.1:1/"]
    command = [sys.executable, "-m", "regard.cli", "serve", f"en:de={SHIPPED[0]}", *options]
    log = folder / "stderr"
    with log.open("w") as said, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("Serving en → de at http://127.0.0.1:"), line + log.read_text(encoding="utf-8")
            yield line.split()[5]
        finally:
            process.terminate()
            process.wait(30)
    assert "Traceback" not in log.read_text(encoding="utf-8")


def test_the_page_and_its_server_understand_each_other(browser: Browser, address: str) -> None:
    watch = Watch(browser)
    shown = watch(address)
    best = regard.load(SHIPPED[0], device="cpu").translate([TEXT])[0]
    shown.get_by_role("textbox", name="Text to translate").fill(TEXT)
    translation = shown.get_by_role("group", name="Translation", exact=True)
    shown.soon(translation.inner_text, lambda said: said == best)
    words = translation.get_by_role("button")
    assert [word for word in words.all_inner_texts() if word != "."] == best.removesuffix(".").replace(
        ",", " ,"
    ).split()
    words.nth(1).hover()
    assert "looked at “animal”" in shown.locator("#told").inner_text()
    assert TEXT.split()[1] in str(shown.get_by_role("link", name="Look inside").get_attribute("href"))

    words.nth(1).click()
    other = shown.get_by_role("menuitem").first
    chosen = other.locator(".word").inner_text()
    other.click()
    begun = f"{best.split()[0]} {chosen} "
    shown.soon(translation.inner_text, lambda said: said.startswith(begun))
    words.nth(2).click()  # other words of the translation that was steered
    shown.get_by_role("menuitem").first.wait_for()
    shown.keyboard.press("Escape")
    shown.get_by_role("button", name="Undo").click()
    shown.soon(translation.inner_text, lambda said: said == best)

    letter = {"name": "letter.txt", "mimeType": "text/plain", "buffer": f"{TEXT}\n".encode()}
    shown.locator("input[type=file]").set_input_files([letter])
    with shown.expect_download() as download:
        shown.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "letter.de.txt"
    assert download.value.path().read_text(encoding="utf-8") == f"{best}\n"
    shown.get_by_role("button", name="Remove letter.txt").click()
    watch.close()
