"""A text of 512 tokens: the page draws it, reacts to the pointer, and shows the model's numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np
import pytest

import regard
from regard.inspection.forward.head_measures import rollout
from regard.inspection.forward.inputs import text_inputs
from regard.inspection.forward.record import record
from regard.inspection.questions.equation import equation
from tests.page.numbers import check_gaze, check_looks, clean, like, places, weight
from tests.page.odd import LETTERS
from tests.page.reading import FRAME, alerts, chosen, gaze, holds, rows, settled, soon
from tests.page.view import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

TOKENS = 512
TEXT = " ".join(LETTERS[(n * n) % len(LETTERS)] for n in range(TOKENS - 2))


@pytest.fixture(scope="module")
def model(odd: dict[str, Path]) -> Any:
    return regard.load(odd["long"], device="cpu")


def opened(view: Watch, served: str, /, **more: Any) -> Page:
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
    shown, told = opened(view, served_odd), record(model, TEXT)
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


@pytest.mark.long(minutes=0.1)
def test_the_matrix_is_magnified(served_odd: str, view: Watch, model: Any) -> None:
    """By its buttons, by the wheel and by keys; the cell under the pointer is told, and keys walk to the last."""
    shown, told = opened(view, served_odd), record(model, TEXT)
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


@pytest.mark.long(minutes=0.1)
def test_the_equation(served_odd: str, view: Watch, model: Any) -> None:
    """The strongest keys alone at first, all of them on demand, of which those in sight are made."""
    shown = opened(view, served_odd, view="equation", token=7)
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
