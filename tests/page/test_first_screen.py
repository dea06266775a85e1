"""Attention is on the first screen: at 200 % zoom (a window of 640×400 pixels) and on a phone."""

from __future__ import annotations

import pytest

from tests.page.reading import opened
from tests.page.view import Watch

SEEN = """() => {
    const { top, bottom, left, right } = document.querySelector('.columns canvas').getBoundingClientRect()
    return { pixels: Math.min(bottom, innerHeight) - top, left, right, scrolled: scrollY }
}"""
LEAST = 100
"""Pixels of the lines that are to be seen without scrolling: four tokens."""


@pytest.mark.long(minutes=0.1)
@pytest.mark.parametrize(("width", "height"), [(640, 400), (390, 844), (1280, 800)])
def test_attention_is_on_the_first_screen(served_translator: str, view: Watch, width: int, height: int) -> None:
    """The lines of a head begin where they are seen, and nobody scrolled."""
    shown = view(served_translator, width=width, height=height)
    shown.locator(".columns canvas").wait_for()
    shown.wait_for_load_state("networkidle")
    seen = shown.evaluate(SEEN)
    assert seen["scrolled"] == 0
    assert seen["pixels"] >= LEAST, seen
    assert seen["left"] >= 0
    assert seen["right"] <= width


@pytest.mark.long(minutes=0.1)
def test_what_helps_with_the_text_comes_on_a_small_screen(served_translator: str, view: Watch) -> None:
    """The examples are hidden until one is in the text."""
    shown = opened(view, served_translator, "translator")
    shown.set_viewport_size({"width": 640, "height": 400})
    examples = shown.locator(".examples button").first
    assert not examples.is_visible()
    shown.get_by_role("textbox").first.focus()
    assert examples.is_visible()
