"""Long texts: of an over-long one every view shows a window, which can be moved; 512 tokens are drawn at once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
import pytest

import regard
from regard.inspection.forward.record import record, rollout, text_inputs
from regard.inspection.forward.text_windows import windows
from regard.inspection.questions.layers import equation
from tests.page.language import pairs
from tests.page.numbers import check_gaze, check_looks, clean, like, places, weight
from tests.page.odd import LETTERS
from tests.page.reading import (
    BEFORE,
    FRAME,
    TaskOf,
    Visit,
    address,
    alerts,
    chosen,
    gaze,
    holds,
    opened,
    rows,
    settled,
    soon,
)
from tests.page.view import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.long(minutes=0.1)

LONG = {
    **{name: " ".join([text] * 12) for name, text in BEFORE.items()},
    **{name: " ".join(pair.source for pair in pairs("test")[:12]) for name in ("translator", "classifier", "tagger")},
}
"""Far more than the 48 tokens that these models learned from at once."""
VIEWS = ("Equation", "Writing", "Positions", "Words", "Soft dictionary", "Compare", "Heads")
SEEN = {
    "Heads": ".columns canvas",
    "Equation": ".ledger tbody tr",
    "Writing": ".steps p.text .piece",
    "Positions": "canvas, .orders",
    "Words": "canvas",
    "Soft dictionary": ".dictionary",
    "Compare": ".two .columns canvas",
}
"""What is to be seen in a view that is not empty."""


def part(shown: Page) -> str:
    """Which part of the text is looked at."""
    return shown.get_by_role("group", name="Sentence: which part of the text").get_by_role("status").inner_text()


def check_head(shown: Page, told: Any, kind: str, layer: int, head: int) -> None:
    """All tokens of the part stand there, and one that is pointed at looks where the model looks."""
    names = [[clean(token.text) for token in side] for side in (told.queries(kind), told.keys(kind))]

    def check() -> None:
        left, right = (column.locator(".token").all_inner_texts() for column in shown.locator(".columns ol").all())
        assert [name.removeprefix("·") for name in left] == names[0]
        assert [name.removeprefix("·") for name in right] == names[1]

    holds(shown, check)
    shown.locator(".columns ol").first.get_by_role("button").nth(2).hover()
    shown.evaluate(FRAME)
    check_looks(gaze(shown), names[0][2], names[1], told.head(kind, layer, head)[2])


@pytest.mark.long(minutes=0.4)
@pytest.mark.parametrize("name", [name for name in LONG if name != "reader"])
def test_every_view_is_of_the_part(visit: Visit, task: TaskOf, name: str) -> None:
    """Of each family and task: the head is that of Python before the same part, and no view is empty or complains."""
    found = windows(task(name), LONG[name])
    assert len(found.texts) > 2
    shown = visit(name, text=LONG[name], layer=1, head=1)
    told = record(task(name), found.window().text)
    kind = next(kind for kind in ("cross", "encoder", "decoder") if kind in told.weights)
    check_head(shown, told, kind, 1, 1)
    one = found.window()
    assert part(shown).startswith(f"part {one.number} of {one.count} · tokens {one.first}–{one.last} of {one.total} · ")
    navigation = shown.get_by_role("navigation", name="Views")
    for label in VIEWS:
        button = navigation.get_by_role("button", name=label, exact=True)
        if not button.count():
            continue
        button.click()
        settled(shown)
        soon(shown, lambda label=label: shown.locator(SEEN[label]).count(), bool)
        assert not alerts(shown), (label, alerts(shown))
        assert not shown.locator(".problem").count(), (label, shown.locator(".problem").all_inner_texts())
        assert part(shown).startswith(f"part {one.number} of ")
    if name != "recurrent":  # without positions there is nothing to exchange
        navigation.get_by_role("button", name="Compare", exact=True).click()
        for choice in ("with and without", "beside the gradient"):
            chosen(shown, "What is compared", choice)
            settled(shown)
            soon(shown, lambda: shown.locator(".two .columns canvas, .rows .column").count(), bool)
            assert not shown.locator(".problem").count(), (choice, shown.locator(".problem").all_inner_texts())


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("name", ["translator", "tagger", "writer"])
def test_it_is_moved(served: str, view: Watch, task: TaskOf, name: str) -> None:
    """By buttons and by keys; the address says where, and so does an address that is opened."""
    found = windows(task(name), LONG[name])
    count, first = len(found.texts), found.begin
    shown = opened(view, served, name, text=LONG[name], layer=1, head=1)
    group = shown.get_by_role("group", name="Sentence: which part of the text")
    earlier, later = (group.get_by_role("button", name=one) for one in ("earlier", "later"))
    assert (earlier.is_disabled(), later.is_disabled()) == (first == 1, first == count)
    (later if first == 1 else earlier).click()
    number = 2 if first == 1 else first - 1
    soon(shown, lambda: part(shown), lambda said: said.startswith(f"part {number} of {count} "))
    settled(shown)
    kind = "cross" if name == "translator" else "decoder" if name == "writer" else "encoder"
    check_head(shown, record(task(name), found.window(number).text), kind, 1, 1)
    assert parse_qs(urlsplit(shown.url).fragment)["window"] == [str(number)]
    slider = group.get_by_role("slider")
    slider.press("Home")
    soon(shown, lambda: part(shown), lambda said: said.startswith("part 1 of "))
    slider.press("End")
    soon(shown, lambda: part(shown), lambda said: said.startswith(f"part {count} of "))
    settled(shown)
    assert later.is_disabled()
    soon(shown, lambda: parse_qs(urlsplit(shown.url).fragment).get("window"), lambda said: said == [str(count)])
    again = view(served, f"#{urlsplit(shown.url).fragment}")
    settled(again)
    assert part(again) == part(shown)
    assert again.get_by_label("Sentence: what the model reads").input_value() == LONG[name]


@pytest.mark.long(minutes=0.2)
def test_what_is_typed_may_become_too_long_and_short_again(visit: Visit, task: TaskOf) -> None:
    """Nothing goes blank on the way; a part that is no longer there is the last; an example begins anew."""
    shown = visit("translator", layer=1, head=1)
    box = shown.get_by_label("Sentence: what the model reads")
    for length in (3, 12, 7):
        box.fill(" ".join(pair.source for pair in pairs("test")[:length]))
        settled(shown)
        soon(shown, lambda: part(shown), lambda said, length=length: f" of {length} " in said)
        if length == 12:
            shown.get_by_role("slider", name="Part").press("End")
            soon(shown, lambda: part(shown), lambda said: said.startswith("part 12 of 12"))
    soon(shown, lambda: part(shown), lambda said: said.startswith("part 7 of 7"))
    assert shown.locator(".columns canvas").count() == 1
    shown.locator(".examples button").first.click()
    settled(shown)
    soon(shown, shown.get_by_role("group", name="Sentence: which part of the text").count, lambda count: count == 0)
    assert "window" not in shown.url
    assert not shown.locator(".problem").count()


@pytest.mark.long(minutes=0.2)
def test_what_it_is_made_to_write_may_be_too_long(visit: Visit, task: TaskOf) -> None:
    """Then its beginning is written, which is said; another part of what is read is translated by the model again."""
    shown = visit("translator", text=LONG["translator"], layer=1, head=1)
    shown.get_by_role("button", name="make it write something else").click()
    box = shown.get_by_label("what the model is made to write")
    box.fill("Der Fuchs sang. " * 20)
    soon(shown, shown.locator(".output").inner_text, lambda said: "of which it takes the first " in said)
    settled(shown)
    assert shown.locator(".columns canvas").count() == 1
    shown.get_by_role("button", name="later").click()
    soon(shown, lambda: part(shown), lambda said: said.startswith("part 2 of "))
    assert not box.count()
    told = record(task("translator"), windows(task("translator"), LONG["translator"]).window(2).text)
    soon(shown, shown.locator(".written").inner_text, lambda said: said.startswith(told.target_text))


@pytest.mark.long(minutes=0.2)
def test_a_language_model_goes_on_behind_its_part(visit: Visit, task: TaskOf) -> None:
    """At first behind the end of the text, and only there is it added; step by step as in a short text."""
    shown = visit("writer", text=LONG["writer"], view="writing")
    add = shown.get_by_role("button", name="add this to the text above")
    add.wait_for()
    steps = shown.get_by_role("region", name="Step by step")
    given = len(record(task("writer"), windows(task("writer"), LONG["writer"]).window().text).source)
    count = int(steps.locator(".count").inner_text().rsplit(" ", 1)[1])
    assert count > given
    shown.get_by_role("button", name="earlier").click()
    soon(shown, add.count, lambda there: there == 0)
    settled(shown)
    shown.get_by_role("button", name="later").click()
    settled(shown)
    before = shown.get_by_label("Sentence: what the model reads").input_value()
    add.click()
    settled(shown)
    after = shown.get_by_label("Sentence: what the model reads").input_value()
    assert after.startswith(before)
    assert len(after) > len(before)
    number, count = (int(word) for word in part(shown).split()[1:4:2])
    assert number == count


def test_what_is_taken_away_says_which_part_it_is(visit: Visit) -> None:
    shown = visit("translator", text=LONG["translator"], layer=1, head=1, window=3)
    told = part(shown).split(" · ")
    for form, saved in (("Numbers (JSON)", "json"), ("Drawing (SVG)", "svg"), ("Page that works alone (HTML)", "html")):
        shown.get_by_role("button", name="Save …").click()
        with shown.expect_download() as download:
            shown.get_by_role("button", name=form).click()
        text = download.value.path().read_text(encoding="utf-8")
        assert download.value.suggested_filename.endswith(saved)
        if saved == "json":
            window = json.loads(text)["window"]
            assert told[0] == f"part {window['number']} of {window['count']}"
        if saved == "svg":
            assert f"{told[0]} of the text, {told[1]}" in text
        if saved == "html":
            alone = shown.context.new_page()
            alone.set_content(text)
            alone.locator(".columns canvas").wait_for()
            assert " · ".join(told[:2]) in alone.locator("main").inner_text()
            assert not alone.get_by_role("button", name="later").count()
            alone.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_it_has_room(served: str, view: Watch, width: int) -> None:
    """On one line or two, never wider than the page."""
    shown = view(served, address("tagger", text=LONG["tagger"]), width=width)
    settled(shown)
    wide = shown.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    box = shown.get_by_role("group", name="Sentence: which part of the text").bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= width
    assert box["height"] < 100


def test_two_models_read_the_same_part(visit: Visit, task: TaskOf) -> None:
    """Beside one another, though each reads as much as it learned to."""
    shown = visit("translator", text=LONG["translator"], view="compare", window=4)
    chosen(shown, "What is compared", "two models")
    told = windows(task("translator"), LONG["translator"]).window(4).text
    names = [clean(token.text) for token in record(task("translator"), told).source]
    columns = shown.locator(".two .columns ol.keys")
    soon(shown, columns.count, lambda count: count == 2)

    def check() -> None:
        for column in columns.all():
            found = [one.removeprefix("·") for one in column.locator(".token").all_inner_texts()]
            assert "".join(found) == "".join(names)

    holds(shown, check)


TOKENS = 512
TEXT = " ".join(LETTERS[(n * n) % len(LETTERS)] for n in range(TOKENS - 2))


@pytest.fixture(scope="module")
def model(odd: dict[str, Path]) -> Any:
    return regard.load(odd["long"], device="cpu")


def looked_at(view: Watch, served: str, /, **more: Any) -> Page:
    shown = view(served, "#" + urlencode({"model": 0, "text": TEXT, "layer": 2, "head": 3, **more}))
    settled(shown)
    return shown


def check_said(shown: Page, place: int, names: list[str], weight_QK: Any) -> None:
    """What is said of the token that is pointed at."""

    def check() -> None:
        shown.evaluate(FRAME)
        check_looks(gaze(shown), names[place], names, weight_QK[place])

    holds(shown, check)


@pytest.mark.long(minutes=0.2)
def test_a_head(served_odd: str, view: Watch, model: Any) -> None:
    """As running text, as lines, and merged; what was not sent at once is asked for."""
    shown, told = looked_at(view, served_odd), record(model, TEXT)
    names = [clean(token.text) for token in told.source]
    assert len(names) == TOKENS
    tokens = shown.locator("p.text button")
    assert tokens.count() == TOKENS
    for place in (1, 300, 511):
        tokens.nth(place).hover()
        check_said(shown, place, names, told.head("encoder", 2, 3))
    tokens.nth(300).click()
    pictures = shown.get_by_role("group", name="Heads").get_by_role("button")
    soon(shown, pictures.first.inner_text, bool)
    for picture, weight_QK in zip(pictures.all(), np.concatenate(told.weights["encoder"]), strict=True):
        check_gaze(" ".join(picture.inner_text().split()), names, weight_QK[300], 1)
    with shown.expect_response("**/api/head"):
        chosen(shown, "Heads shown", "rollout")
    tokens.nth(40).hover()
    check_said(shown, 40, names, rollout(told.weights["encoder"]))
    with shown.expect_response("**/api/head"):
        chosen(shown, "Heads shown", "maximum")
    chosen(shown, "Drawn as", "lines")
    shown.locator(".columns ol").first.get_by_role("button").nth(500).hover()
    check_said(shown, 500, names, np.concatenate(told.weights["encoder"]).max(axis=0))


def test_the_matrix_is_magnified(served_odd: str, view: Watch, model: Any) -> None:
    """By its buttons, by the wheel and by keys; the cell under the pointer is told, and keys walk to the last."""
    shown, told = looked_at(view, served_odd), record(model, TEXT)
    names = [clean(token.text) for token in told.source]
    weight_QK = told.head("encoder", 2, 3)
    chosen(shown, "Drawn as", "matrix")
    matrix = shown.get_by_role("img", name=f"The weights as a matrix of {TOKENS} rows and {TOKENS} columns.")
    cell = shown.locator(".matrix output")

    def check_cell(said: str) -> None:
        found = re.fullmatch(r"(\S+) → (\S+) (.+)", said)
        assert found
        near = np.isin(names, [found[1]])[:, None] & np.isin(names, [found[2]])
        assert any(found[3] in like(weight, value) for value in weight_QK[near])

    seen = []
    for press in (None, "+", "+", "+"):
        if press:
            shown.get_by_role("button", name="Magnify").click()
        matrix.hover(position={"x": 200, "y": 200})
        shown.evaluate(FRAME)
        check_cell(cell.inner_text())
        seen.append(pixels(matrix))
    assert len(set(seen)) == 4
    shown.keyboard.down("Control")
    shown.mouse.wheel(0, -300)
    shown.keyboard.up("Control")
    shown.evaluate(FRAME)
    assert pixels(matrix) not in seen
    for key, times in (("Escape", 1), ("ArrowRight", 3), ("ArrowDown", 2)):
        for _ in range(times):
            matrix.press(key)
    assert cell.inner_text() in {f"{names[2]} → {names[2]} {one}" for one in like(weight, float(weight_QK[2, 2]))}
    matrix.press("0")
    shown.evaluate(FRAME)
    assert len(set(pixels(matrix))) > 1


def pixels(canvas: Locator) -> str:
    """What is drawn."""
    found: str = canvas.evaluate("canvas => canvas.toDataURL()")
    return found


def test_the_equation(served_odd: str, view: Watch, model: Any) -> None:
    """The strongest keys alone at first, all of them on demand, of which those in sight are made."""
    shown = looked_at(view, served_odd, view="equation", token=7)
    found = equation(text_inputs(model, TEXT), "encoder", 2, 3)
    table = shown.locator(".ledger table")
    soon(shown, lambda: len(rows(table)), lambda count: count == 12)
    order = np.argsort(-found.weight_LM[7], kind="stable")
    for row, key in zip(rows(table), order, strict=False):
        assert row[-1] in like(weight, float(found.weight_LM[7, key]))
    shown.get_by_role("button", name=f"all {TOKENS} in their order").click()
    shown.locator(".ledger").evaluate("box => box.scrollTo(0, box.scrollHeight)")
    last = soon(shown, lambda: rows(table)[-1], lambda row: row[0].startswith("</s>"))
    assert last[1] in like(places, found.score_LM[7, -1])
    assert len(rows(table)) < 40
    for name in ("Writing", "Positions", "Words", "Compare", "Training", "Heads"):
        shown.get_by_role("navigation").get_by_role("button", name=name, exact=True).click()
        settled(shown)
        assert not alerts(shown)
