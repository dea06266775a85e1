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
from tests.page.numbers import check_gaze, check_looks, shows
from tests.page.odd import LETTERS
from tests.page.reading import BEFORE, TaskOf, Visit, address, names_of, opened, rows
from tests.page.view import Shown, Watch

if TYPE_CHECKING:
    from playwright.sync_api import Locator

pytestmark = pytest.mark.long(minutes=0.1)

LONG = {
    **{name: " ".join([text] * 12) for name, text in BEFORE.items()},
    **{name: " ".join(pair.source for pair in pairs("test")[:12]) for name in ("translator", "classifier", "tagger")},
}
"""Far more than the 48 tokens that these models learned from at once."""
SEEN = {
    "Equation": ".ledger tbody tr",
    "Writing": ".steps p.text .piece",
    "Positions": "canvas, .orders",
    "Words": "canvas",
    "Soft dictionary": ".dictionary",
    "Compare": ".two .columns canvas",
    "Heads": ".columns canvas",
}
"""What is to be seen in a view that is not empty."""


def part(shown: Shown) -> str:
    """Which part of the text is looked at."""
    return shown.get_by_role("group", name="Sentence: which part of the text").get_by_role("status").inner_text()


def tokens(column: Locator) -> list[str]:
    return [name.removeprefix("·") for name in column.locator(".token").all_inner_texts()]


def check_head(shown: Shown, told: Any, kind: str, layer: int, head: int) -> None:
    """All tokens of the part stand there, and one that is pointed at looks where the model looks."""
    names = [names_of(told.queries(kind)), names_of(told.keys(kind))]
    columns = shown.locator(".columns ol")
    shown.soon(lambda: [tokens(column) for column in columns.all()], lambda found: found == names)
    shown.point(2)
    check_looks(shown.gaze(), names[0][2], names[1], told.head(kind, layer, head)[2])


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
    for label in filter(SEEN.get, shown.views()):
        shown.soon(shown.locator(SEEN[label]).count)
        assert not shown.alerts() + shown.problems(), label
        assert label == "Soft dictionary" or part(shown).startswith(f"part {one.number} of ")
    if name != "recurrent":  # without positions there is nothing to exchange
        shown.turn_to("Compare")
        for choice in ("with and without", "beside the gradient"):
            shown.choose("What is compared", choice)
            shown.settled()
            shown.soon(lambda: shown.locator(".two .columns canvas, .rows .column").count())
            assert not shown.problems(), choice


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
    shown.soon(lambda: part(shown), lambda said: said.startswith(f"part {number} of {count} "))
    shown.settled()
    kind = "cross" if name == "translator" else "decoder" if name == "writer" else "encoder"
    check_head(shown, record(task(name), found.window(number).text), kind, 1, 1)
    assert parse_qs(urlsplit(shown.url).fragment)["window"] == [str(number)]
    slider = group.get_by_role("slider")
    slider.press("Home")
    shown.soon(lambda: part(shown), lambda said: said.startswith("part 1 of "))
    slider.press("End")
    shown.soon(lambda: part(shown), lambda said: said.startswith(f"part {count} of "))
    shown.settled()
    assert later.is_disabled()
    shown.soon(lambda: parse_qs(urlsplit(shown.url).fragment).get("window"), lambda said: said == [str(count)])
    again = view(served, f"#{urlsplit(shown.url).fragment}")
    again.settled()
    assert part(again) == part(shown)
    assert again.get_by_label("Sentence: what the model reads").input_value() == LONG[name]


@pytest.mark.long(minutes=0.2)
def test_what_is_typed_may_become_too_long_and_short_again(visit: Visit, task: TaskOf) -> None:
    """Nothing goes blank on the way; a part that is no longer there is the last; an example begins anew."""
    shown = visit("translator", layer=1, head=1)
    box = shown.get_by_label("Sentence: what the model reads")
    for length in (3, 12, 7):
        box.fill(" ".join(pair.source for pair in pairs("test")[:length]))
        shown.settled()
        shown.soon(lambda: part(shown), lambda said, length=length: f" of {length} " in said)
        if length == 12:
            shown.get_by_role("slider", name="Part").press("End")
            shown.soon(lambda: part(shown), lambda said: said.startswith("part 12 of 12"))
    shown.soon(lambda: part(shown), lambda said: said.startswith("part 7 of 7"))
    assert shown.locator(".columns canvas").count() == 1
    shown.locator(".examples button").first.click()
    shown.settled()
    shown.soon(shown.get_by_role("group", name="Sentence: which part of the text").count, lambda count: count == 0)
    assert "window" not in shown.url
    assert not shown.problems()


@pytest.mark.long(minutes=0.2)
def test_what_it_is_made_to_write_may_be_too_long(visit: Visit, task: TaskOf) -> None:
    """Then its beginning is written, which is said; another part of what is read is translated by the model again."""
    shown = visit("translator", text=LONG["translator"], layer=1, head=1)
    shown.get_by_role("button", name="make it write something else").click()
    box = shown.get_by_label("what the model is made to write")
    box.fill("Der Fuchs sang. " * 20)
    shown.soon(shown.locator(".output").inner_text, lambda said: "of which it takes the first " in said)
    shown.settled()
    assert shown.locator(".columns canvas").count() == 1
    shown.get_by_role("button", name="later").click()
    shown.soon(lambda: part(shown), lambda said: said.startswith("part 2 of "))
    assert not box.count()
    told = record(task("translator"), windows(task("translator"), LONG["translator"]).window(2).text)
    shown.soon(shown.locator(".written").inner_text, lambda said: said.startswith(told.target_text))


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
    shown.soon(add.count, lambda there: there == 0)
    shown.settled()
    shown.get_by_role("button", name="later").click()
    shown.settled()
    before = shown.get_by_label("Sentence: what the model reads").input_value()
    add.click()
    shown.settled()
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
    shown.settled()
    wide = shown.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    box = shown.get_by_role("group", name="Sentence: which part of the text").bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= width
    assert box["height"] < 100


def test_two_models_read_the_same_part(visit: Visit, task: TaskOf) -> None:
    """Beside one another, though each reads as much as it learned to."""
    shown = visit("translator", text=LONG["translator"], view="compare", window=4)
    shown.choose("What is compared", "two models")
    told = windows(task("translator"), LONG["translator"]).window(4).text
    wanted = "".join(names_of(record(task("translator"), told).source))
    columns = shown.locator(".two .columns ol.keys")
    shown.soon(lambda: ["".join(tokens(column)) for column in columns.all()], lambda found: found == [wanted] * 2)


TOKENS = 512
TEXT = " ".join(LETTERS[(n * n) % len(LETTERS)] for n in range(TOKENS - 2))


@pytest.fixture(scope="module")
def model(odd: dict[str, Path]) -> Any:
    return regard.load(odd["long"], device="cpu")


def looked_at(view: Watch, served: str, /, **more: Any) -> Shown:
    shown = view(served, "#" + urlencode({"model": 0, "text": TEXT, "layer": 2, "head": 3, **more}))
    shown.settled()
    return shown


def check_said(shown: Shown, place: int, names: list[str], weight_QK: Any) -> None:
    """What is said of the token that is pointed at."""

    shown.holds(lambda: check_looks(shown.gaze(), names[place], names, weight_QK[place]))


@pytest.mark.long(minutes=0.2)
def test_a_head(served_odd: str, view: Watch, model: Any) -> None:
    """As running text, as lines, and merged; what was not sent at once is asked for."""
    shown, told = looked_at(view, served_odd), record(model, TEXT)
    names = names_of(told.source)
    assert len(names) == TOKENS
    words = shown.locator("p.text button")
    assert words.count() == TOKENS
    for place in (1, 300, 511):
        words.nth(place).hover()
        check_said(shown, place, names, told.head("encoder", 2, 3))
    words.nth(300).click()
    pictures = shown.get_by_role("group", name="Heads").get_by_role("button")
    shown.soon(pictures.first.inner_text)
    for picture, weight_QK in zip(pictures.all(), np.concatenate(told.weights["encoder"]), strict=True):
        check_gaze(" ".join(picture.inner_text().split()), names, weight_QK[300], 1)
    with shown.expect_response("**/api/head"):
        shown.choose("Heads shown", "rollout")
    words.nth(40).hover()
    check_said(shown, 40, names, rollout(told.weights["encoder"]))
    with shown.expect_response("**/api/head"):
        shown.choose("Heads shown", "maximum")
    shown.choose("Drawn as", "lines")
    shown.locator(".columns ol").first.get_by_role("button").nth(500).hover()
    check_said(shown, 500, names, np.concatenate(told.weights["encoder"]).max(axis=0))


def test_the_matrix_is_magnified(served_odd: str, view: Watch, model: Any) -> None:
    """By its buttons, by the wheel and by keys; the cell under the pointer is told, and keys walk to the last."""
    shown, told = looked_at(view, served_odd), record(model, TEXT)
    names = names_of(told.source)
    shown.choose("Drawn as", "matrix")
    matrix = shown.get_by_role("img", name=f"The weights as a matrix of {TOKENS} rows and {TOKENS} columns.")
    cell = shown.locator(".matrix output")

    seen = []
    for magnified in range(4):
        if magnified:
            shown.get_by_role("button", name="Magnify").click()
        matrix.hover(position={"x": 200, "y": 200})
        shown.drawn()
        assert re.fullmatch(r"\S+ → \S+ [\d.< ]+", cell.inner_text())
        seen.append(pixels(matrix))
    assert len(set(seen)) == 4
    shown.keyboard.down("Control")
    shown.mouse.wheel(0, -300)
    shown.keyboard.up("Control")
    shown.drawn()
    assert pixels(matrix) not in seen
    for key in ("Escape", *["ArrowRight"] * 3, *["ArrowDown"] * 2):
        matrix.press(key)
    begins = f"{names[2]} → {names[2]} "
    assert cell.inner_text().startswith(begins)
    assert shows(cell.inner_text().removeprefix(begins), float(told.head("encoder", 2, 3)[2, 2]))
    matrix.press("0")
    shown.drawn()
    assert len(set(pixels(matrix))) > 1


def pixels(canvas: Locator) -> str:
    """What is drawn."""
    return canvas.evaluate("canvas => canvas.toDataURL()")


def test_the_equation(served_odd: str, view: Watch, model: Any) -> None:
    """The strongest keys alone at first, all of them on demand, of which those in sight are made."""
    shown = looked_at(view, served_odd, view="equation", token=7)
    found = equation(text_inputs(model, TEXT), "encoder", 2, 3)
    table = shown.locator(".ledger table")
    shown.soon(lambda: len(rows(table)), lambda count: count == 12)
    order = np.argsort(-found.weight_LM[7], kind="stable")
    for row, key in zip(rows(table), order, strict=False):
        assert shows(row[-1], found.weight_LM[7, key])
    shown.get_by_role("button", name=f"all {TOKENS} in their order").click()
    shown.locator(".ledger").evaluate("box => box.scrollTo(0, box.scrollHeight)")
    last = shown.soon(lambda: rows(table)[-1], lambda row: row[0].startswith("</s>"))
    assert shows(last[1], found.score_LM[7, -1])
    assert len(rows(table)) < 40
    for _ in shown.views():
        assert not shown.alerts()
