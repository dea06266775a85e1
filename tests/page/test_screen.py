"""What is seen first on any screen, by keyboard, uncut, and beside the tour."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from regard.inspection.folders.models import Models
from regard.inspection.forward.passes import forward_pass
from regard.inspection.forward.record import record, words
from regard.inspection.pictures.view import View
from regard.inspection.questions.look import first_head
from regard.inspection.requests import Request
from tests.page.language import pairs
from tests.page.numbers import check_looks, clean
from tests.page.reading import BEFORE, TaskOf, Visit, address, names_of
from tests.page.view import Shown, Watch

if TYPE_CHECKING:
    from playwright.sync_api import Locator

pytestmark = pytest.mark.long(minutes=0.1)


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("name", BEFORE)
def test_the_head_to_begin_with(visit: Visit, page_models: Path, name: str) -> None:
    """It does something for a word that matters, which is kept; words are whole; a head that was asked for stays."""
    models = Models([page_models / name])
    asked = Request(text=BEFORE[name])
    one = forward_pass(models, asked)
    kind = "cross" if "cross" in one.record.kinds else one.record.kinds[0]
    found = first_head(models, asked, one, kind)
    shown = visit(name, layer=None)
    assert shown.get_by_role("switch", name="whole words").is_checked()
    if found is None:  # a single query, or so few words that none stands behind another and its neighbour
        assert kind == "pool" or name == "writer"
        return
    shown.get_by_role("heading", name=f"head {found.layer}·{found.head}").wait_for()
    seen = View(one.record, kind, found.layer, found.head, whole=True)
    queries, keys = seen.labels()
    pressed = shown.locator(".columns [aria-pressed=true]").all_inner_texts()
    assert pressed == [clean(queries[found.query])]
    best = clean(keys[seen.heads()[1][0][found.query].argmax()])
    assert shown.gaze().startswith(f"{pressed[0]} looks at “{best}” ")
    kept = {"layer": found.layer, "head": found.head, "token": found.query, "words": 1}
    fragment = parse_qs(urlsplit(shown.url).fragment)
    assert {name: fragment[name] for name in kept} == {name: [str(value)] for name, value in kept.items()}
    last = len(one.record.weights[kind])
    again = visit(name, kind=kind, layer=last, head=1)
    again.get_by_role("heading", name=f"head {last}·1").wait_for()
    assert not again.get_by_role("switch", name="whole words").is_checked()
    assert not again.locator(".columns [aria-pressed=true]").count()


def test_back_at_the_beginning(visit: Visit) -> None:
    """The page's name leads there, whatever was chosen meanwhile, and for the text that is there now."""
    shown = visit("translator", layer=None)
    first = shown.url
    shown.get_by_role("button", name="layer 1 head 4:").click()
    shown.flip("whole words")
    shown.soon(lambda: shown.url, lambda url: "head=4" in url and "words" not in url)
    shown.get_by_role("link", name="Regard").click()
    shown.soon(lambda: shown.url, lambda url: url == first)
    assert shown.locator(".columns [aria-pressed=true]").count() == 1


SEEN = """() => {
    const { top, bottom, left, right } = document.querySelector('.columns canvas').getBoundingClientRect()
    return { pixels: Math.min(bottom, innerHeight) - top, left, right, scrolled: scrollY }
}"""
LEAST = 100
"""Pixels of the lines that are to be seen without scrolling: four tokens."""


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


def test_what_helps_with_the_text_comes_on_a_small_screen(visit_one: Visit) -> None:
    """The examples are hidden until one is in the text."""
    shown = visit_one("translator")
    shown.set_viewport_size({"width": 640, "height": 400})
    examples = shown.locator(".examples button").first
    assert not examples.is_visible()
    shown.textbox.focus()
    assert examples.is_visible()


FOCUSED = """() => { const one = document.activeElement, style = getComputedStyle(one); return {
    what: one === document.body ? '' :
        one.getAttribute('aria-label') || one.innerText || one.labels?.[0]?.innerText || '?',
    seen: one.matches(':focus-visible') && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1,
}}"""
MOST = 60
"""Stops of the Tab key on a view, at most."""


def focused(shown: Shown) -> str:
    """What has the focus, by name; and one sees that it has."""
    found = shown.evaluate(FOCUSED)
    assert not found["what"] or found["seen"], f"one does not see that {found['what']!r} has the focus"
    return str(found["what"])


def tab_to(shown: Shown, name: str, key: str = "Tab") -> None:
    """Go on by the Tab key until something has the focus whose name begins so."""
    passed = [""]
    while not passed[-1].startswith(name):
        assert len(passed) <= MOST, f"{name!r} is not among {passed}"
        shown.keyboard.press(key)
        passed.append(focused(shown))


def test_from_the_sentence_to_a_head(visit: Visit, task: TaskOf) -> None:
    """Type a sentence, choose a view, walk the heads and the tokens, hear where they look, keep one, let it go."""
    shown, text = visit("translator", layer=2, head=1), pairs("test")[11].source
    told = record(task("translator"), text)
    tab_to(shown, "Sentence: what the model reads")
    shown.keyboard.press("Control+A")
    shown.keyboard.type(text)
    shown.keyboard.press("Enter")
    shown.soon(shown.locator(".written").inner_text, lambda said: said.startswith(told.target_text))
    shown.settled()
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
        shown.drawn()
        who, looks_K = clean(told.written[place].text), told.head("cross", 1, 2)[place]
        check_looks(heard.inner_text(), who, names_of(told.source), looks_K)
        shown.keyboard.press("ArrowDown")
    shown.keyboard.press("Enter")
    pressed = shown.locator(".columns").get_by_role("button", pressed=True)
    assert pressed.count() == 1
    shown.keyboard.press("Escape")
    assert pressed.count() == 0


def test_the_equation_and_the_search(served: str, view: Watch) -> None:
    """Another token looks, another key is followed; a switch; the search is walked from token to token."""
    shown = view(served, address("translator", view="equation", token=3))
    shown.locator("p.whole").wait_for()
    before = shown.locator("p.whole").inner_text()
    token = shown.get_by_role("radiogroup", name="The token that looks").get_by_role("radio", checked=True)
    tab_to(shown, token.inner_text())
    shown.keyboard.press("ArrowRight")
    shown.soon(shown.locator("p.whole").inner_text, lambda said: said != before)
    tab_to(shown, "without scaling")
    shown.keyboard.press("Space")
    assert "Without the division" in shown.get_by_role("status").all_inner_texts()[-1]
    key = shown.locator(".ledger tr.chosen button")
    followed = key.inner_text()
    tab_to(shown, followed)
    shown.keyboard.press("ArrowUp" if followed == "</s>" else "ArrowDown")
    shown.soon(key.inner_text, lambda now: now != followed)

    tab_to(shown, "Writing", "Shift+Tab")
    shown.keyboard.press("Enter")
    shown.get_by_role("img", name="The search as a tree").wait_for()
    tab_to(shown, "The search as a tree")
    shown.keyboard.press("ArrowRight")
    first = shown.soon(shown.locator(".prefix").inner_text)
    shown.keyboard.press("ArrowRight")
    shown.soon(shown.locator(".prefix").inner_text, lambda now: now != first)


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize("name", ["translator", "words", "classifier", "reader", "digits"])
def test_every_stop_of_every_view(visit: Visit, name: str) -> None:
    """Whatever the Tab key reaches has a name, and one sees where one is; and nothing holds the focus fast."""
    shown = visit(name)
    session = shown.context.new_cdp_session(shown.page)
    for name in shown.views():
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
        assert not [node["role"]["value"] for node in nodes if focusable(node) and not node["name"]["value"].strip()]
        stops = 0
        shown.get_by_role("navigation").get_by_role("button", name=name, exact=True).focus()
        while stops < MOST and (shown.keyboard.press("Tab"), focused(shown))[1]:
            assert focused(shown) != "?"
            stops += 1
        assert 0 < stops < MOST


def focusable(node: dict[str, Any]) -> bool:
    """Whether something on the page can have the focus, as those are told who do not see it."""
    held = {one["name"] for one in node.get("properties", []) if one["value"].get("value") is True}
    return not node["ignored"] and "focusable" in held and node["role"]["value"] != "RootWebArea"


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
    shown.settled()
    for order in ("looks", "needs", "place", "special"):
        if order == "needs":
            shown.get_by_role("button", name="what does").click()
            shown.soon(shown.locator(".answer").inner_text, lambda said: "stayed the same" in said)
        else:
            shown.get_by_role("combobox", name="order").select_option(order)
        shown.drawn()
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
def test_no_word_is_torn_in_running_text(served: str, view: Watch, task: TaskOf, name: str) -> None:
    """At any width, in the text view and step by step: so it reads as the sentence does."""
    told = record(task(name), BEFORE[name])
    source = [places for _, places in words(told.source, told.source_text)]
    written = [places for _, places in words(told.written, told.target_text)]
    assert any(len(places) > 1 for places in source)
    for width in (390, 347, 1280):
        shown = view(served, address(name, drawn="text"), width=width)
        shown.settled()
        texts = shown.locator("p.text").all()
        sides = [written, source] if name == "translator" else [source]
        for text, side in zip(texts, sides, strict=True):
            check_words(text, side)
            assert " ".join(text.inner_text().split()) == spoken(told, side is written)
        shown = view(served, address(name, view="writing"), width=width)
        shown.settled()
        if name == "translator":
            read, wrote = shown.locator(".steps p.text").all()
            check_words(read, source)
            check_words(wrote, written)


def spoken(told: Any, written: bool) -> str:
    """A side as it reads: its text between its symbols."""
    tokens, text = (told.written, told.target_text) if written else (told.source, told.source_text)
    marks = [one.text if one.start == one.end else "" for one in (tokens[0], tokens[-1])]
    return " ".join(filter(None, (marks[0], " ".join(text.split()), marks[1])))


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
    shown.settled()
    assert tour.evaluate(COVERED) == []
    shown.get_by_role("button", name="next").click()
    assert "2 of 4" in tour.inner_text()
    assert tour.evaluate(COVERED) == []
    shown.keyboard.press("Escape")
    assert tour.count() == 0
    shown.goto("about:blank")
    shown.goto(served_translator)
    shown.settled()
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


def test_the_tour_does_not_follow(served_translator: str, view: Watch) -> None:
    """Once it was seen it comes no more by itself, left or not."""
    shown = view(served_translator, tour=True)
    tour = shown.get_by_role("region", name="A short tour")
    tour.wait_for()
    shown.get_by_role("button", name="Soft dictionary").click()
    assert tour.count() == 0
    shown.get_by_role("button", name="Heads", exact=True).click()
    shown.settled()
    assert tour.count() == 0


def test_no_tour_where_a_view_was_asked_for(served_translator: str, view: Watch) -> None:
    shown = view(served_translator, "#view=words", tour=True)
    shown.settled()
    assert shown.get_by_role("region", name="A short tour").count() == 0
