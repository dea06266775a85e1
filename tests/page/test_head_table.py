"""What heads do over many texts, on the page: its numbers are those of Python; keyboard; narrow window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from regard.inspection.folders.folder import Folder
from regard.inspection.forward.head_functions import FUNCTIONS, MEASURES
from regard.inspection.questions.heads import folder_texts
from tests.page.models import made
from tests.page.reading import opened, soon
from tests.page.view import Watch

ASK = "where does each head look?"


@pytest.mark.long(minutes=0.3)
def test_the_table_is_that_of_python(served: str, view: Watch, task: Callable[[str], Any], page_models: Any) -> None:
    shown = opened(view, served, "translator", kind="encoder")
    shown.get_by_role("button", name=ASK).click()
    section = shown.get_by_role("region", name="Over many texts")
    section.locator("td button").first.wait_for()
    soon(shown, section.inner_text, lambda text: "are read so far" not in text)
    model = task("translator")
    origin, texts = folder_texts(Folder(made("translator", page_models)), model)
    assert origin in ("demo", "validation")
    found = model.heads([one.source for one in texts], [one.target for one in texts])
    heads = [head for head in found if head.kind == "encoder"]
    names = [name for name in heads[0].estimates if name in FUNCTIONS or name in MEASURES]
    cells = section.locator("td button").all_inner_texts()
    assert len(cells) == len(heads) * len(names)
    wanted = [head.estimates[name].mean * (1 if name in MEASURES else 100) for head in heads for name in names]
    for said, value in zip(map(float, cells), wanted, strict=True):
        assert abs(said - value) < 0.51
    assert section.locator("tbody .does").all_inner_texts() == [head.label for head in heads]


@pytest.mark.long(minutes=0.2)
def test_by_keyboard_and_in_a_narrow_window(served: str, view: Watch) -> None:
    shown = opened(view, served, "translator", kind="encoder")
    shown.set_viewport_size({"width": 390, "height": 800})
    shown.get_by_role("button", name=ASK).click()
    section = shown.get_by_role("region", name="Over many texts")
    section.locator("td button").first.wait_for()
    assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
    section.locator("td button").first.focus()
    shown.keyboard.press("ArrowRight")
    shown.keyboard.press("ArrowDown")
    told = section.locator(".told").inner_text()
    assert told.startswith("Encoder head 1·2 · next token")
    assert "95 % interval" in told
    shown.keyboard.press("Enter")
    soon(shown, shown.locator("h2").first.inner_text, lambda text: text == "Encoder head 1·2")
    assert section.locator("tr.chosen th").inner_text() == "1·2"
