"""The soft dictionary computes softmax, for keys that are points and keys that are words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.page.numbers import like, number, places, weight
from tests.page.reading import FRAME, chosen, opened, soon
from tests.page.view import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Page

ENTRIES = """table => [...table.tBodies[0].rows].map(row => [
    ...[...row.cells[0].querySelectorAll('input')].map(field => field.value),
    row.cells[1].innerText, row.cells[2].innerText, row.cells[3].firstElementChild.value])"""


def check(shown: Page, fits: NDArray[Any], sharpness: float, values: NDArray[Any]) -> NDArray[Any]:
    """The fit and the weight of each entry, and the answer; returns the weights."""
    power = np.exp(sharpness * (fits - fits.max()))
    shares = power / power.sum()
    for row, fit, share in zip(entries(shown), fits, shares, strict=True):
        assert row[-3] in like(places, float(fit))
        assert row[-2] in like(weight, float(share))
    assert shown.get_by_role("region", name="Answer").locator("p.large").inner_text() in like(
        number, float(shares @ values)
    )
    return shares


def entries(shown: Page) -> list[list[str]]:
    found: list[list[str]] = shown.get_by_role("region", name="Entries").get_by_role("table").evaluate(ENTRIES)
    return found


@pytest.mark.long(minutes=0.1)
@pytest.mark.parametrize(("name", "side"), [("translator", "target"), ("words", "source")])
def test_words(served: str, view: Watch, task: Callable[[str], Any], name: str, side: str) -> None:
    """By cosines of the model's own embeddings."""
    shown = opened(view, served, name, view="dictionary")
    chosen(shown, "Keys", "keys are words")
    model = task(name)
    words = ["Fuchs", "Hund", "Brücke", "müde"] if side == "target" else ["fox", "dog", "bridge", "tired"]
    if side == "target":
        chosen(shown, "Whose embeddings", "as it writes them")
    for at, word in enumerate(words[1:], 1):
        shown.get_by_role("textbox", name=f"Key {at}").fill(word)
    while len(entries(shown)) > 3:
        shown.get_by_role("button", name="Remove").last.click()
    shown.get_by_role("textbox", name="The word that is asked for").fill(words[0])
    tokenizer = model.vocabularies.target if name == "translator" else model.assets.tokenizer
    weight_VD = (model.model.decoder if side == "target" else model.model.encoder).input.tokens.weight.numpy()
    vectors = [weight_VD[shorter(tokenizer, word)].mean(axis=0) for word in words]
    unit = np.array([vector / np.linalg.norm(vector) for vector in vectors])
    fits = unit[1:] @ unit[0]
    soon(
        shown,
        lambda: entries(shown),
        lambda rows: all(row[-3] in like(places, float(fit)) for row, fit in zip(rows, fits, strict=True)),
    )
    for slider in ("0.667", "0.3"):
        shown.get_by_role("slider", name="sharpness").fill(slider)
        shown.evaluate(FRAME)
        rows = entries(shown)
        assert [row[0] for row in rows] == words[1:]
        check(shown, fits, 10 ** (3 * float(slider) - 1), np.array([float(row[-1]) for row in rows]))


def shorter(tokenizer: Any, word: str) -> list[int]:
    """A word's pieces, as in the midst of a sentence unless they are more there."""
    found: list[int] = min((tokenizer.encode(text).ids for text in (f" {word}", word)), key=len)
    return found
