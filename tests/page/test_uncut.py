"""No caption of a picture and no word of a text is cut off."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.page.reading import BEFORE, FRAME, address, settled, soon
from tests.page.view import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Locator

CUT = """() => [...document.querySelectorAll('.grid button .label, .grid button .label *')].filter(one => {
    const button = one.closest('button').getBoundingClientRect(), range = document.createRange()
    range.selectNodeContents(one)
    return [...range.getClientRects()].some(box => box.right > button.right + 1 || box.bottom > button.bottom + 1)
        || one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflow !== 'visible'
        || getComputedStyle(one).textOverflow === 'ellipsis'
}).map(one => one.textContent)"""


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("width", [1280, 390])
def test_no_caption_is_cut(served: str, view: Watch, width: int) -> None:
    """Whatever the numbers are: nothing below a picture is wider or higher than what is seen of it."""
    shown = view(served, address("translator", kind="cross", layer=1, head=1, token=6, words=1), width=width)
    settled(shown)
    for order in ("looks", "needs", "place", "special"):
        if order == "needs":
            shown.get_by_role("button", name="what does").click()
            soon(shown, shown.locator(".answer").inner_text, lambda said: "stayed the same" in said)
        else:
            shown.get_by_role("combobox", name="order").select_option(order)
        shown.evaluate(FRAME)
        assert shown.evaluate(CUT) == []
        assert len(shown.locator(".grid button .label").all()) >= 8


PLACES = """text => [...text.querySelectorAll('.piece')].map(one => {
    const boxes = [...one.getClientRects()], first = boxes[0]
    return { lines: boxes.length, left: first.left, right: boxes.at(-1).right, bottom: first.bottom }
})"""


def check_words(text: Locator, words: list[list[int]]) -> None:
    """The pieces of a word stand on one line, and one touches the next."""
    pieces = text.evaluate(PLACES)
    assert len(pieces) == sum(map(len, words))
    for places in words:
        found = [pieces[place] for place in places]
        assert all(piece["lines"] == 1 for piece in found), found
        for one, other in pairwise(found):
            assert other["left"] - one["right"] < 0.6, (one, other)
            assert abs(other["bottom"] - one["bottom"]) < 3, (one, other)


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("name", ["translator", "tagger", "writer"])
def test_no_word_is_torn_in_running_text(served: str, view: Watch, task: Callable[[str], Any], name: str) -> None:
    """At any width, in the text view and step by step: so it reads as the sentence does."""
    from regard.inspection.forward.inputs import words
    from regard.inspection.forward.record import record

    told = record(task(name), BEFORE[name])
    source = [places for _, places in words(told.source, told.source_text)]
    written = [places for _, places in words(told.written, told.target_text)]
    assert any(len(places) > 1 for places in source)
    for width in (390, 347, 1280):
        shown = view(served, address(name, drawn="text"), width=width)
        settled(shown)
        texts = shown.locator("p.text").all()
        sides = [written, source] if name == "translator" else [source]
        for text, side in zip(texts, sides, strict=True):
            check_words(text, side)
            assert " ".join(text.inner_text().split()) == spoken(told, side is written)
        shown = view(served, address(name, view="writing"), width=width)
        settled(shown)
        if name == "translator":
            read, wrote = shown.locator(".steps p.text").all()
            check_words(read, source)
            check_words(wrote, written)


def spoken(told: Any, written: bool) -> str:
    """A side as it reads: its text between its symbols."""
    tokens, text = (told.written, told.target_text) if written else (told.source, told.source_text)
    first, last = (tokens[at] for at in (0, -1))
    marks = [one.text if one.start == one.end else "" for one in (first, last)]
    return " ".join(filter(None, (marks[0], " ".join(text.split()), marks[1])))
