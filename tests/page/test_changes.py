"""Ablations on the page are applied to the model: its output equals Python's."""

from collections.abc import Callable
from functools import partial
from operator import eq
from typing import Any

import numpy as np
import pytest

from regard.inspection.forward.record import record
from regard.models.ablation import Ablations, Head
from tests.page.numbers import apart, chance, like, number
from tests.page.reading import BEFORE, ONE, flipped, opened, soon
from tests.page.view import Watch

IMAGE = 3


def plain(text: str) -> str:
    """As it is seen: without spaces at its ends."""
    return " ".join(text.split())


@pytest.mark.long(minutes=0.2)
def test_heads_switched_off_one_after_another(served: str, view: Watch, task: Callable[[str], Any]) -> None:
    """The output changes with them, and so do the heads above; at the end all is as it was."""
    shown, model, off = opened(view, served, "translator", kind="cross", layer=1, head=1), task("translator"), []
    before = now = model.translate(ONE.source, beam=1)
    status = shown.locator(".changed").get_by_role("status")
    for head in (1, 2, 3, 4):
        shown.get_by_role("button", name=f"layer 1 head {head}:").click()
        flipped(shown, f"head 1·{head}")
        off.append(Head("cross", 1, head))
        with Ablations(tuple(off)).apply(model.recipe.model):
            now = model.translate(ONE.source, beam=1)
        names = ", ".join(f"encoder–decoder head 1·{one.head}" for one in off)
        becomes = f"stays the same: {now}" if now == before else f"changes: {before} becomes {now}"
        wanted = f"Without {names}: the output, written greedily, {becomes}"
        soon(shown, lambda: [plain(text) for text in status.all_inner_texts()], partial(eq, [wanted]))
    assert now != before
    shown.get_by_role("button", name="layer 2 head 1:").click()
    with Ablations(tuple(off)).apply(model.recipe.model):
        weight_QK = record(model, ONE.source).head("cross", 2, 1)
    positive_QK = np.where(weight_QK > 0, weight_QK, 1)
    entropy = float(-(positive_QK * np.log2(positive_QK)).sum(axis=1).mean())
    assert shown.locator("dl.measures dd").first.inner_text().removesuffix(" bits") in like(number, entropy)
    shown.get_by_role("button", name="all as it was").click()
    soon(shown, status.count, lambda count: count == 0)
    soon(shown, shown.locator(".written").inner_text, lambda text: text.startswith(before))


@pytest.mark.long(minutes=0.1)
def test_a_label_before_and_after(served: str, view: Watch, task: Callable[[str], Any]) -> None:
    shown, model = opened(view, served, "classifier", without="positions"), task("classifier")
    before = model.classify(BEFORE["classifier"])
    with Ablations(positions=False).apply(model.recipe.model):
        after = model.classify(BEFORE["classifier"])
    first = plain(shown.locator(".moved li").first.inner_text())
    shares = apart(chance, before.probabilities[before.label], after.probabilities[before.label])
    assert first in {f"{before.label} {a} → {b}" for a, b in shares}


@pytest.mark.long(minutes=0.1)
def test_without_the_mask_the_numbers_are_of_the_whole_line(served: str, view: Watch) -> None:
    shown = opened(view, served, "translator", without="mask")
    assert shown.get_by_text("the probabilities below are of the whole line read at once").count() == 1
    other = opened(view, served, "translator", without="scaling")
    assert other.get_by_text("the whole line read at once").count() == 0
