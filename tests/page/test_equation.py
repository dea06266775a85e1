"""The equation on the page shows the model's numbers in every step, also without scaling or mask."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from regard.inspection.forward.record import ModelInputs, image_inputs, text_inputs
from regard.inspection.questions.layers import EquationSteps, equation
from tests.page.language import digits
from tests.page.numbers import clean, like, number, places, weight
from tests.page.reading import BEFORE, FRAME, TaskOf, Visit, flipped, rows, settled

if TYPE_CHECKING:
    from playwright.sync_api import Page

HEADS = [
    ("translator", "cross", 2, 1, 4),
    ("translator", "decoder", 1, 2, 3),
    ("recurrent", "cross", 1, 1, 5),
    ("reader", "pool", 1, 1, 0),
    ("words", "encoder", 1, 4, 8),
    ("writer", "decoder", 2, 3, 2),
    ("spans", "encoder", 2, 2, 6),
    ("spans", "decoder", 1, 1, 2),
    ("digits", "encoder", 2, 1, 7),
]
NUMBER = r"(−?[\d.,]+(?:e−?\d+)?)"


def softmax(score_M: NDArray[Any]) -> NDArray[Any]:
    power_M = np.exp(score_M - score_M.max())
    return power_M / power_M.sum()


def check_ledger(
    shown: Page, found: EquationSteps, query: int, entering_M: NDArray[Any], more_M: NDArray[Any] | None
) -> None:
    """Every column of every row.

    Args:
        found: of all queries.
        query: who looks.
        entering_M: what the softmax is taken of, −∞ where nothing is to be seen.
        more_M: the weights in the last column, without what was taken away.
    """
    score_M, bias_M = found.score_LM[query], found.bias_LM[query]
    most = entering_M.max()
    power_M = np.exp(entering_M - (most if abs(most) > 9 else 0))
    for key, (_, *cells) in enumerate(rows(shown.locator(".ledger table"))):
        assert cells.pop(0) in like(places, score_M[key])
        if found.divisor != 1:
            assert cells.pop(0) in like(places, score_M[key] / found.divisor)
        if bias_M.any():
            assert cells.pop(0).removeprefix("+") in like(places, bias_M[key])
        if bias_M.any() or found.hidden_LM.any():  # a column of the mask, though it may hide nothing from this token
            *_, last = cells.pop(0).split()
            assert last in like(places, entering_M[key])
        assert cells.pop(0) in (like(number, power_M[key]) if power_M[key] else {"0"})
        assert cells.pop(0) in like(weight, found.weight_LM[query, key])
        if more_M is not None:
            assert cells.pop(0) in like(weight, more_M[key])
        assert not cells


def told(shown: Page, drawing: str, steps: int) -> list[str]:
    """The numbers in what a drawing says of its number so many steps to the right."""
    lines = shown.get_by_role("img", name=drawing)
    for _ in range(steps):
        lines.press("ArrowRight")
    shown.evaluate(FRAME)
    return re.findall(NUMBER, lines.locator("xpath=following-sibling::p").inner_text())


def scaled(found: EquationSteps, query: int) -> NDArray[Any]:
    """What the softmax of a query is taken of; minus infinity where nothing must be seen."""
    score_M = found.score_LM[query] / found.divisor + found.bias_LM[query]
    return np.where(found.hidden_LM[query], -np.inf, score_M)


def seen_by(task: Any, name: str) -> ModelInputs:
    return image_inputs(task, digits("test")[0][0]) if name == "digits" else text_inputs(task, BEFORE[name])


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize(("name", "kind", "layer", "head", "query"), HEADS, ids=[f"{n}-{k}" for n, k, *_ in HEADS])
def test_every_step(visit: Visit, task: TaskOf, name: str, kind: str, layer: int, head: int, query: int) -> None:
    seen = seen_by(task(name), name)
    found = equation(seen, kind, layer, head)
    more = {"image": 0} if name == "digits" else {}
    shown = visit(name, view="equation", kind=kind, layer=layer, head=head, token=query, **more)
    shown.locator(".ledger").wait_for()
    check_ledger(shown, found, query, scaled(found, query), None)

    best = int(found.weight_LM[query].argmax())
    keys = seen.target if kind == "decoder" else seen.source
    takes = shown.locator("p.whole").inner_text()
    assert any(
        f"takes {share} of the value of {called(keys[best].text)}" in takes.replace("“·", "“")
        for share in like(weight, found.weight_LM[query, best])
    )
    at = 2
    q, k = found.query_LK[query], found.key_MK[best]
    wanted = [
        q[at],
        k[at],
        *([np.tanh(q + k)[at]] if kind == "pool" or name == "recurrent" else [(q * k)[at], (q * k)[: at + 1].sum()]),
    ]
    for said, value in zip(told(shown, "The query, the key of", at + 1)[1:], wanted, strict=True):
        assert said in like(number, value) | like(fine, value)
    share, value = found.weight_LM[query, best], found.value_MU[best, at]
    said = told(shown, "the same times its weight", at + 1)[1:]
    wanted = [like(weight, share), *(like(number, one) for one in (value, share * value, found.context_LU[query, at]))]
    assert all(one in some for one, some in zip(said, wanted, strict=True)), (said, wanted)


def called(piece: str) -> str:
    """As a sentence has it: a patch of an image by its place."""
    row, _, column = piece.partition(",")
    return f"the patch in row {row}, column {column}" if row.isdigit() and column.isdigit() else f"“{clean(piece)}”"


def fine(value: float) -> str:
    return number(value, 4)


@pytest.mark.long(minutes=0.1)
@pytest.mark.parametrize(("name", "kind", "token"), [("translator", "decoder", 4), ("writer", "decoder", 1)])
def test_without_scaling_and_without_the_mask(visit: Visit, task: TaskOf, name: str, kind: str, token: int) -> None:
    """What the weights would be is softmax without the division, or of what is hidden as well."""
    found = equation(text_inputs(task(name), BEFORE[name]), kind, 2, 2)
    shown = visit(name, view="equation", kind=kind, layer=2, head=2, token=token)
    score_M, hidden_M = found.score_LM[token], found.hidden_LM[token]
    assert hidden_M.any()
    unscaled_M = np.where(hidden_M, -np.inf, score_M)
    unmasked_M = score_M / found.divisor
    for switch, entering_M in (("without scaling", unscaled_M), ("without the mask", unmasked_M)):
        flipped(shown, switch)
        shown.evaluate(FRAME)
        assert shown.locator(".ledger th").last.count()
        check_ledger(shown, found, token, entering_M, softmax(entering_M))
        assert shown.get_by_role("switch", checked=True).count() == 1
    flipped(shown, "without the mask")
    check_ledger(shown, found, token, scaled(found, token), None)


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize(
    ("name", "kind", "query"),
    [
        ("translator", "cross", 3),
        ("translator", "decoder", 2),
        ("translator", "decoder", None),
        ("spans", "encoder", 2),
        ("spans", "cross", 0),
        ("recurrent", "cross", 2),
        ("reader", "pool", 0),
    ],
)
def test_its_steps_are_numbered_without_a_hole(visit: Visit, name: str, kind: str, query: int | None) -> None:
    """In the headings, the columns, and below the parts of the formula; also where the mask hides nothing."""
    shown = visit(name, view="equation", kind=kind, token=0 if query is None else query)
    if query is None:
        shown.get_by_role("radiogroup", name="The token that looks").get_by_role("radio").last.click()
        settled(shown)
    headings = [re.match(r"[\d–]+", text) for text in shown.locator("h3[id^=step]").all_inner_texts()]
    assert all(headings)
    ranges = [[int(one) for one in found[0].split("–")] for found in headings if found]
    numbered = [number for first, *last in ranges for number in range(first, (last or [first])[0] + 1)]
    assert numbered == list(range(1, len(numbered) + 1))
    columns = [int(one) for one in shown.locator(".ledger th small").all_inner_texts()]
    assert columns == [2, *range(3, numbered[-2])]
    parts = [int(one) for text in shown.locator(".formula small").all_inner_texts() for one in text.split(" · ")]
    assert sorted(parts) == numbered
