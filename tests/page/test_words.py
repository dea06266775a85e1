"""Embeddings on the page: neighbours, layer paths, positions, and the soft dictionary of points or words."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.inspection.folders.models import Models
from regard.inspection.forward.record import text_inputs
from regard.inspection.questions.answers import answer
from regard.inspection.questions.layers import softmax
from regard.inspection.questions.vectors import layer_cosines, layer_vectors
from tests.inspection.payloads import unpack
from tests.page.language import pairs
from tests.page.models import made
from tests.page.numbers import clean, shows
from tests.page.reading import BEFORE, TaskOf, Visit, names_of
from tests.page.view import Shown

pytestmark = pytest.mark.long(minutes=0.1)


@pytest.mark.parametrize(("name", "stack"), [("translator", "encoder"), ("writer", "decoder")])
def test_a_word_on_its_way_through_the_layers(visit: Visit, task: TaskOf, name: str, stack: str) -> None:
    """The cosine of a token in two sentences, as it enters and behind the last layer."""
    other = pairs("test")[7].source if name == "translator" else "The wolf couldn't cross"
    shown = visit(name, view="words")
    shown.get_by_role("textbox", name="second sentence").fill(other)
    seen = [text_inputs(task(name), text) for text in (BEFORE[name], other)]
    second = shown.get_by_role("group", name="Tokens of the second sentence").get_by_role("button")
    names = names_of(seen[1].source)
    shown.soon(second.all_inner_texts, lambda texts: [text.lstrip("·") for text in texts] == names)
    pair = (2, 3)
    shown.get_by_role("group", name="Tokens of the first sentence").get_by_role("button").nth(pair[0]).click()
    second.nth(pair[1]).click()
    alike = layer_cosines(*(layer_vectors(one, stack)[:, place] for one, place in zip(seen, pair, strict=True)))
    said = shown.get_by_text("How alike")
    names = [clean(one.source[place].text) for one, place in zip(seen, pair, strict=True)]
    wanted = rf"How alike ·?{names[0]} and ·?{names[1]} are: a cosine of (\S+) as they enter, (\S+) behind"
    told = shown.soon(said.inner_text, lambda text: re.match(wanted, text))
    found = re.match(wanted, told)
    assert found
    assert all(map(shows, found.groups(), (alike[0], alike[-1])))


def test_the_piece_to_begin_with(visit: Visit) -> None:
    """Of a sentence the word for a thing; where a word is kept in another view, that one."""
    text = "The fox crosses the street because it is tired."
    shown = visit("translator", view="words", text=text)
    pressed = shown.get_by_role("group", name="Tokens", exact=True).get_by_role("button", pressed=True)
    shown.soon(pressed.all_inner_texts, lambda said: [one.lstrip("·") for one in said] in (["fox"], ["street"]))
    kept = visit("translator", view="words", kind="encoder", layer=1, head=1, token=1, text=text)
    pressed = kept.get_by_role("group", name="Tokens", exact=True).get_by_role("button", pressed=True)
    kept.soon(pressed.all_inner_texts, lambda said: [one.lstrip("·") for one in said] == ["fox"])


def test_another_order_marks_no_two_words(visit: Visit) -> None:
    shown = visit("translator", view="positions")
    shown.get_by_text("The two marked words change places").wait_for()
    shown.get_by_role("button", name="another order").click()
    shown.get_by_text("stand in an order of chance").wait_for()
    assert shown.get_by_text("The two marked words change places").count() == 0


def test_the_nearest_words(visit: Visit, page_models: Path) -> None:
    """The answer's, by their cosines."""
    shown = visit("translator", view="words")
    shown.get_by_role("radio", name="what is written").click()
    shown.get_by_role("textbox", name="or a word").fill("Fuchs")
    heading = shown.get_by_role("heading", name="Nearest to")
    shown.soon(heading.inner_text, lambda text: text == "Nearest to Fuchs")
    asked = {"side": "target", "text": "Fuchs", "count": 12}
    values, _ = unpack(answer(Models([made("translator", page_models)]), "near", asked))
    items = heading.locator("xpath=..").locator("ol")
    seen = items.evaluate(
        "list => [...list.children].map(one => [one.children[0].innerText, one.children[2].innerText])"
    )
    for (piece, cosine), (_, name, value) in zip(seen, values["near"], strict=True):
        assert (piece.removeprefix("·"), shows(cosine, value)) == (clean(name), True)


def test_positions(visit: Visit) -> None:
    """A cell of the waves is told as keys walk to it; words that change places stand above them."""
    text = "The fox doesn't cross the street because it is too tired."
    shown = visit("translator", view="positions", text=text)
    section = shown.get_by_role("region", name="What is added", exact=True)
    for key in ("ArrowRight", "ArrowDown", "ArrowRight"):
        section.get_by_role("img", name="What is added at each position").press(key)
    shown.drawn()
    assert section.locator("output").first.inner_text() == f"position 1, dimension 1: {math.cos(1):.2f}"
    order = shown.get_by_role("region", name="Without positions", exact=True)
    boxes = [one.bounding_box() for one in (order, section)]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["y"] < boxes[1]["y"]
    for first, second in (("fox", "street"), ("street", "tired")):
        exchanged = text.replace(first, "?").replace(second, first).replace("?", second)
        read = shown.locator(".orders .read p")
        shown.soon(read.all_inner_texts, lambda found, exchanged=exchanged: found == [text, exchanged])
        told = order.locator("p.prose[role=status]").last
        shown.soon(told.inner_text, lambda said: "Without positions both orders are one and the same" in said)
        shown.get_by_role("group", name="The two words that change places").get_by_role("button", name="tired").click()


ENTRIES = """table => [...table.tBodies[0].rows].map(row => [
    ...[...row.cells[0].querySelectorAll('input')].map(field => field.value),
    row.cells[1].innerText, row.cells[2].innerText, row.cells[3].firstElementChild.value])"""


def entries(shown: Shown) -> list[list[str]]:
    return shown.get_by_role("region", name="Entries").get_by_role("table").evaluate(ENTRIES)


@pytest.mark.parametrize(("name", "side"), [("translator", "target"), ("words", "source")])
def test_words(visit: Visit, task: TaskOf, name: str, side: str) -> None:
    """By cosines of the model's own embeddings."""
    shown = visit(name, view="dictionary")
    shown.choose("Keys", "keys are words")
    model = task(name)
    words = ["Fuchs", "Hund", "Brücke", "müde"] if side == "target" else ["fox", "dog", "bridge", "tired"]
    if side == "target":
        shown.choose("Whose embeddings", "as it writes them")
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
    shown.soon(lambda: entries(shown), lambda rows: all(map(shows, [row[-3] for row in rows], fits)))
    for slider in ("0.667", "0.3"):
        shown.get_by_role("slider", name="sharpness").fill(slider)
        shown.drawn()
        rows, shares = entries(shown), softmax(10 ** (3 * float(slider) - 1) * fits)
        assert [row[0] for row in rows] == words[1:]
        assert all(map(shows, [row[-2] for row in rows], shares))
        answer = shown.get_by_role("region", name="Answer").locator("p.large").inner_text()
        assert shows(answer, float(shares @ [float(row[-1]) for row in rows]))


def shorter(tokenizer: Any, word: str) -> list[int]:
    """A word's pieces, as in the midst of a sentence unless they are more there."""
    found: list[int] = min((tokenizer.encode(text).ids for text in (f" {word}", word)), key=len)
    return found
