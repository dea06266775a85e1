"""Markup in any input is shown as text: typed, in addresses, in names and in logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from tests.page.odd import HOSTILE
from tests.page.reading import alerts, chosen, opened, settled, soon, textbox
from tests.page.view import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Dialog, Page, Request


def trapped(shown: Page) -> Page:
    caught: list[str] = []

    def spoke(dialog: Dialog) -> None:
        caught.append(dialog.message)
        dialog.dismiss()

    def asked(request: Request) -> None:
        if not request.url.removeprefix(shown.url.split("#")[0]).startswith(("api/", "assets/")):
            caught.append(request.url)

    shown.on("dialog", spoke)
    shown.on("request", asked)
    shown.caught = caught  # type: ignore[attr-defined]
    return shown


def check(shown: Page) -> None:
    """It is there as text, and as nothing else."""
    assert HOSTILE in shown.locator("body").inner_text() + "".join(
        one.input_value() for one in shown.locator("textarea").all()
    )
    assert shown.locator("img, [onerror], script:not([src]), iframe").count() == 0
    assert not shown.caught  # type: ignore[attr-defined]


def every_view(shown: Page) -> None:
    for tab in shown.get_by_role("navigation").get_by_role("button").all():
        tab.click()
        settled(shown)
        check(shown)
        assert not alerts(shown)


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("name", ["translator", "tagger", "writer"])
def test_typed(served: str, view: Watch, name: str) -> None:
    """As the sentence, and in every view of it."""
    shown = trapped(opened(view, served, name))
    textbox(shown).fill(HOSTILE)
    soon(shown, lambda: "onerror" in shown.url, bool)
    every_view(shown)


@pytest.mark.long(minutes=0.1)
def test_typed_elsewhere(served: str, view: Watch) -> None:
    """As what is to be written, as key and query of the dictionary, as a word to look up, as a second sentence."""
    shown = trapped(opened(view, served, "translator"))
    shown.get_by_role("button", name="make it write something else").click()
    shown.get_by_role("textbox", name="what the model is made to write").fill(HOSTILE)
    settled(shown)
    check(shown)
    fields = {
        "Soft dictionary": ("Key 1", "The word that is asked for"),
        "Words": ("or a word", "second sentence"),
        "Compare": ("The second: what",),
    }
    for tab, names in fields.items():
        shown.get_by_role("navigation").get_by_role("button", name=tab).click()
        if tab == "Soft dictionary":
            chosen(shown, "Keys", "keys are words")
        for name in names:
            shown.get_by_role("textbox", name=name).fill(HOSTILE)
            shown.wait_for_timeout(250)
            settled(shown)
            check(shown)
    assert not alerts(shown)


@pytest.mark.long(minutes=0.1)
def test_in_an_address(served: str, view: Watch) -> None:
    """In every part of it."""
    names = "view kind layer head merge words token model snapshot text target image off without".split()
    names += ["text.2", "target.2", "off.2"]
    for more in ({}, {"view": "compare"}):
        shown = trapped(view(served, "#" + urlencode(dict.fromkeys(names, HOSTILE) | more)))
        settled(shown)
        every_view(shown)


@pytest.mark.long(minutes=0.1)
def test_in_names_and_logs(served_odd: str, view: Watch) -> None:
    """A model folder's name, a label, a score, sample outputs, the names of gradients."""
    shown = trapped(view(served_odd, "#" + urlencode({"model": 2, "text": "The animal", "view": "training"})))
    settled(shown)
    assert shown.title() == f"{HOSTILE} · Regard"
    assert shown.locator(".wrote").inner_text() == 2 * HOSTILE
    assert HOSTILE in shown.locator(".classes").inner_text()
    every_view(shown)
    with shown.expect_download() as found:
        shown.get_by_role("button", name="Save …").click()
        shown.get_by_role("button", name="Numbers (JSON)").click()
    assert found.value.suggested_filename == "img-src-x-onerror-alert-1-attention.json"
    check(shown)


@pytest.mark.long(minutes=0.1)
def test_in_what_the_server_says(served: str, view: Watch) -> None:
    """A sentence that tells what is wrong may hold what was asked."""
    shown = trapped(opened(view, served, "translator"))
    sentence: dict[str, Any] = {"error": f"there is no {HOSTILE}", "where": HOSTILE}
    shown.route("**/api/write", lambda route: route.fulfill(status=400, json=sentence))
    textbox(shown).fill("The fox")
    soon(shown, lambda: alerts(shown), lambda said: said == [f"T{sentence['error'][1:]}."])
    check(shown)
    view.forgive("400 (Bad Request)")
