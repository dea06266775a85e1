"""The page before a class: larger, one thing at a time, and led by the arrow keys."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from regard.inspection import SHIPPED
from tests.page.conftest import addresses
from tests.page.reading import ONE, Visit
from tests.page.view import Shown, Watch

pytestmark = pytest.mark.long(minutes=0.2)

SIZE = "one => parseFloat(getComputedStyle(one).fontSize) * document.body.style.zoom"
LEAST = 1080 / 50
"""Pixels of type that is read from the last row: a fiftieth of the screen's height."""


@pytest.fixture(scope="module")
def served_shipped(_chromium: None, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The address of a page with the finished model that comes with Regard, which has a walk."""
    yield from addresses(tmp_path_factory, SHIPPED[0])


def led(shown: Shown) -> str:
    """Where the class is: the step or the view."""
    return shown.get_by_role("region", name="Classroom").locator("h1").inner_text()


def leads(shown: Shown, key: str = "ArrowRight") -> str:
    shown.keyboard.press(key)
    shown.wait_for_load_state("networkidle")
    shown.drawn()
    return led(shown)


def test_arrow_keys_lead_through_walk_and_views(view: Watch, served_shipped: str) -> None:
    """All steps, then all views, each without a problem, type large enough, nothing wider than the screen; and back."""
    shown = view(served_shipped, "#view=walk&class=1", width=1920, height=1080)
    assert led(shown) == "What does “it” mean?"
    seen = [led(shown)]
    while shown.get_by_role("button", name="Next", exact=True).is_enabled():
        seen.append(leads(shown))
        assert not shown.problems()
        assert shown.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
        sizes = shown.locator("main :is(p, h2, h3, button):visible").evaluate_all(f"all => all.map({SIZE})")
        assert min(sizes) >= LEAST, seen[-1]
        assert not shown.get_by_role("banner").is_visible()
    assert shown.locator(".bar [role=status]").inner_text().endswith(f"{len(seen)} of {len(set(seen))}")
    assert [leads(shown, "ArrowLeft") for _ in seen[1:]] == seen[-2::-1]
    shown.set_viewport_size({"width": 390, "height": 844})
    shown.drawn()
    assert shown.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_the_switch_and_the_key(visit: Visit, task: Any) -> None:
    """Both turn it on and off; the address keeps it; the sentence is a line that opens, controls come on request."""
    shown = visit("translator")
    shown.set_viewport_size({"width": 1920, "height": 1080})
    shown.get_by_role("button", name="Classroom").click()
    shown.soon(lambda: parse_qs(urlsplit(shown.url).fragment).get("class") == ["1"])
    assert not shown.get_by_role("textbox").count()
    line = shown.get_by_role("button", name="Sentence")
    assert line.inner_text() == f"{ONE.source} → {task('translator').translate(ONE.source, beam=1)}"
    line.click()
    assert shown.textbox.input_value() == ONE.source
    assert not shown.tabs.first.is_visible()
    shown.get_by_role("button", name="Controls").click()
    assert shown.tabs.first.is_visible()
    shown.textbox.press("ArrowRight")  # moves in the text
    assert led(shown) == "Heads"
    shown.keyboard.press("Escape")
    shown.keyboard.press("Escape")
    shown.soon(lambda: "class" not in parse_qs(urlsplit(shown.url).fragment))
    assert shown.get_by_role("banner").is_visible()
    shown.keyboard.press("Alt+c")
    assert led(shown) == "Heads"


def test_pointing_at_what_is_drawn_larger(visit: Visit) -> None:
    """The middle of the plane is 0, 0, though a pixel of the drawing is several of the screen; it is as sharp."""
    shown = visit("translator", view="dictionary", **{"class": 1})
    shown.set_viewport_size({"width": 1920, "height": 1080})
    plane = shown.locator(".plane canvas")
    sharp = "one => Math.abs(one.width - one.getBoundingClientRect().width) <= 2"
    shown.soon(lambda: shown.evaluate("document.body.style.zoom > 1.7") and plane.evaluate(sharp))
    plane.click()
    queries = shown.get_by_role("spinbutton", name="Query").all()
    assert [abs(float(one.input_value())) < 0.03 for one in queries] == [True, True]
