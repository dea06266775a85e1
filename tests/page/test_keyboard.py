"""Accessibility: every control is reachable by keyboard, visibly focused, and named."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from regard.inspection.forward.record import record
from tests.page.language import pairs
from tests.page.numbers import check_looks, clean
from tests.page.reading import FRAME, address, settled, soon
from tests.page.view import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOCUSED = """() => { const one = document.activeElement, style = getComputedStyle(one); return {
    what: one === document.body ? '' :
        one.getAttribute('aria-label') || one.innerText || one.labels?.[0]?.innerText || '?',
    seen: one.matches(':focus-visible') && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1,
}}"""
MOST = 60
"""Stops of the Tab key on a view, at most."""


def focused(shown: Page) -> str:
    """What has the focus, by name; and one sees that it has."""
    found = shown.evaluate(FOCUSED)
    assert not found["what"] or found["seen"], f"one does not see that {found['what']!r} has the focus"
    return str(found["what"])


def tab_to(shown: Page, name: str, key: str = "Tab") -> None:
    """Go on by the Tab key until something has the focus whose name begins so."""
    passed: list[str] = []
    for _ in range(MOST):
        shown.keyboard.press(key)
        if focused(shown).startswith(name):
            return
        passed.append(focused(shown))
    raise AssertionError(f"{name!r} is not among {passed}")


@pytest.mark.long(minutes=0.1)
def test_from_the_sentence_to_a_head(served: str, view: Watch, task: Callable[[str], Any]) -> None:
    """Type a sentence, choose a view, walk the heads and the tokens, hear where they look, keep one, let it go."""
    shown, text = view(served, address("translator", layer=2, head=1)), pairs("test")[11].source
    settled(shown)
    told = record(task("translator"), text)
    tab_to(shown, "Sentence: what the model reads")
    shown.keyboard.press("Control+A")
    shown.keyboard.type(text)
    shown.keyboard.press("Enter")
    soon(shown, shown.locator(".written").inner_text, lambda said: said.startswith(told.target_text))
    settled(shown)
    tab_to(shown, "Equation")
    shown.keyboard.press("Enter")
    shown.locator("p.whole").wait_for()
    tab_to(shown, "Heads", "Shift+Tab")
    shown.keyboard.press("Space")
    tab_to(shown, "layer 2 head 1:")
    shown.keyboard.press("ArrowRight")
    shown.keyboard.press("ArrowUp")
    assert focused(shown).startswith("layer 1 head 2:")
    assert shown.get_by_role("heading", name="Encoder–decoder head 1·2").is_visible()
    heard = shown.locator(".gaze[aria-live=polite]")
    tab_to(shown, clean(told.written[0].text))
    for place in (0, 1, 2):
        shown.evaluate(FRAME)
        names, weight_QK = [clean(token.text) for token in told.source], told.head("cross", 1, 2)
        check_looks(heard.inner_text(), clean(told.written[place].text), names, weight_QK[place])
        shown.keyboard.press("ArrowDown")
    shown.keyboard.press("Enter")
    pressed = shown.locator(".columns").get_by_role("button", pressed=True)
    assert pressed.count() == 1
    shown.keyboard.press("Escape")
    assert pressed.count() == 0


@pytest.mark.long(minutes=0.1)
def test_the_equation_and_the_search(served: str, view: Watch) -> None:
    """Another token looks, another key is followed; a switch; the search is walked from token to token."""
    shown = view(served, address("translator", view="equation", token=3))
    shown.locator("p.whole").wait_for()
    before = shown.locator("p.whole").inner_text()
    token = shown.get_by_role("radiogroup", name="The token that looks").get_by_role("radio", checked=True)
    tab_to(shown, token.inner_text())
    shown.keyboard.press("ArrowRight")
    soon(shown, shown.locator("p.whole").inner_text, lambda said: said != before)
    tab_to(shown, "without scaling")
    shown.keyboard.press("Space")
    assert "Without the division" in shown.get_by_role("status").all_inner_texts()[-1]
    key = shown.locator(".ledger tr.chosen button")
    followed = key.inner_text()
    tab_to(shown, followed)
    shown.keyboard.press("ArrowUp" if followed == "</s>" else "ArrowDown")
    soon(shown, key.inner_text, lambda now: now != followed)

    tab_to(shown, "Writing", "Shift+Tab")
    shown.keyboard.press("Enter")
    shown.get_by_role("img", name="The search as a tree").wait_for()
    tab_to(shown, "The search as a tree")
    shown.keyboard.press("ArrowRight")
    first = soon(shown, shown.locator(".prefix").inner_text, bool)
    shown.keyboard.press("ArrowRight")
    soon(shown, shown.locator(".prefix").inner_text, lambda now: now != first)


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize("name", ["translator", "words", "classifier", "reader", "digits"])
def test_every_stop_of_every_view(served: str, view: Watch, name: str) -> None:
    """Whatever the Tab key reaches has a name, and one sees where one is; and nothing holds the focus fast."""
    shown = view(served, address(name))
    settled(shown)
    session = shown.context.new_cdp_session(shown)
    for tab in shown.get_by_role("navigation").get_by_role("button").all():
        tab.click()
        settled(shown)
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
        assert not [node["role"]["value"] for node in nodes if focusable(node) and not node["name"]["value"].strip()]
        stops = 0
        tab.focus()
        while stops < MOST and (shown.keyboard.press("Tab"), focused(shown))[1]:
            assert focused(shown) != "?"
            stops += 1
        assert 0 < stops < MOST


def focusable(node: dict[str, Any]) -> bool:
    """Whether something on the page can have the focus, as those are told who do not see it."""
    held = {one["name"] for one in node.get("properties", []) if one["value"].get("value") is True}
    return not node["ignored"] and "focusable" in held and node["role"]["value"] != "RootWebArea"
