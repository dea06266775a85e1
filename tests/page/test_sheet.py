"""Every head of every kind on one sheet: as many as the model has, and each opens where it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.page.reading import opened, settled
from tests.page.view import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


def picture(shown: Page, name: str) -> Locator:
    """The small picture of a head."""
    return shown.get_by_role("button", name=re.compile(f"^{name}:"))


@pytest.mark.long(minutes=0.1)
def test_every_head_opens(served_translator: str, view: Watch) -> None:
    """Three kinds of two layers with four heads; a click shows the head, by pointer or by keys."""
    shown = opened(view, served_translator, "translator", view="sheet")
    assert shown.locator(".kinds canvas").count() == 3 * 2 * 4
    picture(shown, "decoder head 2·3").click()
    settled(shown)
    assert shown.get_by_role("heading", name="Decoder head 2·3").is_visible()
    shown.go_back()
    picture(shown, "encoder head 1·1").focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        shown.keyboard.press(key)
    assert shown.get_by_role("heading", name="Encoder head 2·2").is_visible()


@pytest.mark.long(minutes=0.1)
def test_heads_lie_over_one_another(served_translator: str, view: Watch) -> None:
    """Two of one kind; a head of another kind begins anew, and a second click takes it away."""
    shown = opened(view, served_translator, "translator", view="sheet")
    shown.get_by_role("radio", name="a click lays it over others").click()
    for name in ("encoder head 1·1", "encoder head 2·3"):
        picture(shown, name).click()
    legend = shown.get_by_role("list", name="Heads over one another").get_by_role("listitem")
    assert legend.count() == 2
    assert picture(shown, "encoder head 2·3").get_attribute("aria-pressed") == "true"
    over = shown.get_by_role("region", name="Over one another")
    over.locator("ol button").first.hover()
    assert "“" in legend.first.inner_text()
    picture(shown, "decoder head 1·1").click()
    assert legend.count() == 1
    picture(shown, "decoder head 1·1").click()
    assert over.count() == 0
