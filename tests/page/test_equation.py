"""The equation on the page shows the model's numbers in every step, also without scaling or mask."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from regard.inspection.forward.record import Weights, image_inputs, text_inputs
from regard.inspection.questions.layers import EquationSteps, equation, softmax
from tests.page.language import digits
from tests.page.numbers import clean, shows
from tests.page.reading import BEFORE, TaskOf, Visit, rows
from tests.page.view import Shown

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


def check_ledger(shown: Shown, found: EquationSteps, query: int, entering_M: Weights, *more: Weights) -> None:
    """Every column of every row, and what enters the softmax: −∞ where nothing is to be seen.

    Args:
        found: of all queries.
        query: who looks.
        entering_M: what the softmax is taken of.
        more: weights in the last column, without what was taken away.
    """
    score_M, bias_M = found.score_LM[query], found.bias_LM[query]
    power_M = np.exp(entering_M - (entering_M.max() if abs(entering_M.max()) > 9 else 0))
    divided, biased = [score_M / found.divisor] * (found.divisor != 1), [bias_M] * bool(bias_M.any())
    # a column of the mask, though it may hide nothing from this token
    masked = [entering_M] * bool(biased or found.hidden_LM.any())
    wanted = [score_M, *divided, *biased, *masked, power_M, found.weight_LM[query], *more]
    for key, (_, *cells) in enumerate(rows(shown.locator(".ledger table"))):
        for cell, value_M in zip(cells, wanted, strict=True):
            last = re.split(r"(?<![<>])\s+", cell)[-1]  # behind what it was before the mask
            assert shows(last.removeprefix("+"), value_M[key]), (cell, value_M[key])


def told(shown: Shown, drawing: str, steps: int) -> list[str]:
    """The numbers in what a drawing says of its number so many steps to the right, but for which that is."""
    lines = shown.get_by_role("img", name=drawing)
    for _ in range(steps):
        lines.press("ArrowRight")
    shown.drawn()
    return re.findall(NUMBER, lines.locator("xpath=following-sibling::p").inner_text())[1:]


def scaled(found: EquationSteps, query: int) -> Weights:
    """What the softmax of a query is taken of; minus infinity where nothing must be seen."""
    score_M = found.score_LM[query] / found.divisor + found.bias_LM[query]
    return np.where(found.hidden_LM[query], -np.inf, score_M)


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize(("name", "kind", "layer", "head", "query"), HEADS, ids=[f"{n}-{k}" for n, k, *_ in HEADS])
def test_every_step(visit: Visit, task: TaskOf, name: str, kind: Any, layer: int, head: int, query: int) -> None:
    image = {"image": 0} if name == "digits" else {}
    seen = image_inputs(task(name), digits("test")[0][0]) if image else text_inputs(task(name), BEFORE[name])
    found = equation(seen, kind, layer, head)
    shown = visit(name, view="equation", kind=kind, layer=layer, head=head, token=query, **image)
    shown.locator(".ledger").wait_for()
    check_ledger(shown, found, query, scaled(found, query))

    best, at = int(found.weight_LM[query].argmax()), 2
    share, value = found.weight_LM[query, best], found.value_MU[best, at]
    key = (seen.target if kind == "decoder" else seen.source)[best].text
    patch = image and "," in key
    called = "the patch in row {}, column {}".format(*key.split(",")) if patch else f"“{clean(key)}”"
    said = shown.locator("p.whole").inner_text().replace("“·", "“")
    takes = re.search(rf"takes (\S+) of the value of {re.escape(called)}", said)
    assert takes, said
    assert shows(takes[1], share)
    q, k = found.query_LK[query], found.key_MK[best]
    made = [np.tanh(q + k)[at]] if kind == "pool" or name == "recurrent" else [(q * k)[at], (q * k)[: at + 1].sum()]
    numbers = told(shown, "The query, the key of", at + 1)
    numbers += told(shown, "the same times its weight", at + 1)
    wanted = [q[at], k[at], *made, share, value, share * value, found.context_LU[query, at]]
    assert all(shows(said, one) for said, one in zip(numbers, wanted, strict=True)), (numbers, wanted)


@pytest.mark.long(minutes=0.1)
@pytest.mark.parametrize(("name", "kind", "token"), [("translator", "decoder", 4), ("writer", "decoder", 1)])
def test_without_scaling_and_without_the_mask(visit: Visit, task: TaskOf, name: str, kind: str, token: int) -> None:
    """What the weights would be is softmax without the division, or of what is hidden as well."""
    found = equation(text_inputs(task(name), BEFORE[name]), kind, 2, 2)
    shown = visit(name, view="equation", kind=kind, layer=2, head=2, token=token)
    score_M, hidden_M = found.score_LM[token], found.hidden_LM[token]
    assert hidden_M.any()
    unscaled_M, unmasked_M = np.where(hidden_M, -np.inf, score_M), score_M / found.divisor
    for switch, entering_M in (("without scaling", unscaled_M), ("without the mask", unmasked_M)):
        shown.flip(switch)
        shown.drawn()
        check_ledger(shown, found, token, entering_M, softmax(entering_M))
        assert shown.get_by_role("switch", checked=True).count() == 1
    shown.flip("without the mask")
    check_ledger(shown, found, token, scaled(found, token))


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize(
    ("name", "kind", "query"),
    [("translator", "decoder", 2), ("translator", "decoder", None), ("spans", "encoder", 2), ("reader", "pool", 0)],
)
def test_its_steps_are_numbered_without_a_hole(visit: Visit, name: str, kind: str, query: int | None) -> None:
    """In the headings, the columns, and below the parts of the formula; also where the mask hides nothing."""
    shown = visit(name, view="equation", kind=kind, token=0 if query is None else query)
    if query is None:
        shown.get_by_role("radiogroup", name="The token that looks").get_by_role("radio").last.click()
        shown.settled()
    headings = [re.match(r"[\d–]+", text) for text in shown.locator("[id^=step]").all_inner_texts()]
    assert all(headings)
    ranges = [[int(one) for one in found[0].split("–")] for found in headings if found]
    numbered = [number for first, *last in ranges for number in range(first, (last or [first])[0] + 1)]
    assert numbered == list(range(1, len(numbered) + 1))
    columns = [int(one) for one in shown.locator(".ledger th small").all_inner_texts()]
    assert columns == [2, *range(3, numbered[-2])]
    parts = [int(one) for text in shown.locator(".formula small").all_inner_texts() for one in text.split(" · ")]
    assert sorted(parts) == numbered
