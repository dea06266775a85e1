"""The tour comes once, where no view was asked for, beside what it explains; it can be left and begun again."""

from __future__ import annotations

import pytest

from tests.page.reading import settled
from tests.page.view import Watch

COVERED = """card => {
    const own = card.getBoundingClientRect()
    const others = [...document.querySelectorAll('button, p, h2, h3, textarea, canvas, select, nav')]
    return others.filter(one => !card.contains(one) && one.checkVisibility() && !one.contains(card)).filter(one => {
        const { left, right, top, bottom, width, height } = one.getBoundingClientRect()
        const over = Math.min(right, own.right) - Math.max(left, own.left)
        return width > 1 && height > 1 && over > 1 && Math.min(bottom, own.bottom) - Math.max(top, own.top) > 1
    }).map(one => one.outerHTML.slice(0, 80))
}"""
"""What a card lies on."""


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_tour_comes_once(served_translator: str, view: Watch, width: int, height: int) -> None:
    """It covers nothing, and stays where the heads are; Escape ends it, and the button begins it again."""
    shown = view(served_translator, tour=True, width=width, height=height)
    tour = shown.get_by_role("region", name="A short tour")
    tour.wait_for()
    settled(shown)
    assert tour.evaluate(COVERED) == []
    shown.get_by_role("button", name="next").click()
    assert "2 of 4" in tour.inner_text()
    assert tour.evaluate(COVERED) == []
    shown.keyboard.press("Escape")
    assert tour.count() == 0
    shown.goto("about:blank")
    shown.goto(served_translator)
    settled(shown)
    assert tour.count() == 0
    shown.get_by_role("button", name="Soft dictionary").click()
    shown.get_by_role("button", name="A short tour").click()
    for _ in range(3):
        assert tour.evaluate(COVERED) == []
        assert tour.evaluate("card => document.activeElement === card")
        shown.get_by_role("button", name="next").click()
    top, bottom = tour.evaluate("card => [card.getBoundingClientRect().top, card.getBoundingClientRect().bottom]")
    assert top >= 0
    assert bottom <= height
    shown.get_by_role("button", name="done").click()
    assert tour.count() == 0


@pytest.mark.long(minutes=0.1)
def test_the_tour_does_not_follow(served_translator: str, view: Watch) -> None:
    """Once it was seen it comes no more by itself, left or not."""
    shown = view(served_translator, tour=True)
    tour = shown.get_by_role("region", name="A short tour")
    tour.wait_for()
    shown.get_by_role("button", name="Soft dictionary").click()
    assert tour.count() == 0
    shown.get_by_role("button", name="Heads", exact=True).click()
    settled(shown)
    assert tour.count() == 0


@pytest.mark.long(minutes=0.1)
def test_no_tour_where_a_view_was_asked_for(served_translator: str, view: Watch) -> None:
    shown = view(served_translator, "#view=words", tour=True)
    settled(shown)
    assert shown.get_by_role("region", name="A short tour").count() == 0
