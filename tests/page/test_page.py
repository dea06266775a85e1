"""The whole way: a command, its page, what the page asks and shows; in light and dark, wide and narrow."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest

import regard
from page_language import pairs
from page_models import LESSONS, made
from page_view import Watch

PATIENCE = 30_000
"""Milliseconds within which what is asked is there, the model's first loading included."""


def test_a_translation_is_shown(page_models: Path, served_translator: str, view: Watch) -> None:
    """Of the sentence that the address asks for, as Python has it."""
    source = pairs("test")[0].source
    said = regard.load(made("translator", page_models), device="cpu").translate(source)
    shown = view(served_translator, "#" + urlencode({"text": source}))
    shown.locator("main").filter(has_text=said).wait_for(timeout=PATIENCE)
    assert "translator" in shown.title()
    assert source in shown.get_by_role("textbox").first.input_value()


@pytest.mark.long(minutes=1.5)
@pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 400)], ids=["light", "dark-narrow"])
@pytest.mark.parametrize("number", range(len(LESSONS)), ids=list(LESSONS))
def test_every_view_of_every_model(served: str, view: Watch, number: int, dark: bool, width: int) -> None:
    """Each has something to show, without an error, and nothing is wider than the window."""
    shown = view(served, f"#model={number}", dark=dark, width=width)
    tabs = shown.get_by_role("navigation").get_by_role("button")
    tabs.first.wait_for(timeout=PATIENCE)
    assert list(LESSONS)[number] in shown.title()
    for name in tabs.all_inner_texts():
        tabs.filter(has_text=name).click()
        shown.wait_for_load_state("networkidle", timeout=PATIENCE)
        assert shown.get_by_role("alert").all_inner_texts() == []
        assert shown.evaluate("document.scrollingElement.scrollWidth") <= width, f"{name} is too wide"
