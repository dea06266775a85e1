"""The tour comes once, where no view was asked for, and can be left and begun again."""

from __future__ import annotations

import pytest

from tests.page.reading import settled
from tests.page.view import Watch


@pytest.mark.long(minutes=0.1)
def test_the_tour_comes_once(served_translator: str, view: Watch) -> None:
    """Escape ends it, also for the next opening; the button begins it again."""
    shown = view(served_translator, tour=True)
    tour = shown.get_by_role("dialog", name="A short tour")
    tour.wait_for()
    shown.get_by_role("button", name="next").click()
    assert "2 of 4" in tour.inner_text()
    shown.keyboard.press("Escape")
    assert tour.count() == 0
    shown.goto("about:blank")
    shown.goto(served_translator)
    settled(shown)
    assert tour.count() == 0
    shown.get_by_role("button", name="A short tour").click()
    for _ in range(3):
        shown.get_by_role("button", name="next").click()
    shown.get_by_role("button", name="done").click()
    assert tour.count() == 0


@pytest.mark.long(minutes=0.1)
def test_no_tour_where_a_view_was_asked_for(served_translator: str, view: Watch) -> None:
    shown = view(served_translator, "#view=words", tour=True)
    settled(shown)
    assert shown.get_by_role("dialog").count() == 0
