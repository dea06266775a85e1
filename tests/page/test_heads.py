"""Every head on the page is the head that Python hears: where it looks, how it is measured and merged, by word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from page_language import digits
from page_numbers import check_gaze, clean, like, number, percent, weight
from page_reading import BEFORE, FRAME, chosen, flipped, opened
from page_view import Watch
from regard.explore.measures import measures, rollout
from regard.explore.record import Kind, Record, record, recorded
from regard.explore.scene import image_scene
from regard.explore.tokens import Token, by_word, words

if TYPE_CHECKING:
    from playwright.sync_api import Page

TABS = {"encoder": "encoder", "decoder": "decoder", "cross": "encoder–decoder"}
LINES = """() => { const [left, right] = document.querySelectorAll('.columns ol'); return {
    said: document.querySelector('.gaze').innerText,
    rows: [...left.children].map(row => row.firstElementChild.textContent),
    columns: [...right.children].map(key => key.firstElementChild.textContent),
    values: [...right.children].map(key => key.lastElementChild.textContent),
}}"""


def check_row(shown: Page, place: int, weight_QK: NDArray[Any], names: Sequence[Sequence[str]]) -> None:
    """Point at one of those who look: the sentence, and the values beside all that it looks at."""
    shown.locator(".columns ol").first.get_by_role("button").nth(place).hover()
    shown.evaluate(FRAME)
    seen = shown.evaluate(LINES)
    assert [len(seen["rows"]), len(seen["columns"])] == list(weight_QK.shape)
    assert [text.lstrip("·") for text in seen["columns"]] == list(names[1])
    who, said = seen["said"].split(" looks at ", 1)
    assert who == names[0][place] == seen["rows"][place].lstrip("·")
    check_gaze(f"looks at {said}", names[1], weight_QK[place])
    for shown_value, value in zip(seen["values"], map(float, weight_QK[place]), strict=True):
        assert shown_value in (
            {""} if value < 0.004999 else like(weight, value) | {""} if value < 0.005001 else like(weight, value)
        )


def names(tokens: Sequence[Token]) -> list[str]:
    return [clean(token.text) for token in tokens]


def check_measures(shown: Page, weight_HQK: NDArray[Any], head: int, keys: Sequence[Token]) -> None:
    found = measures(weight_HQK, [token.start == token.end for token in keys])
    entropy, distance, special = shown.locator("dl.measures dd").all_inner_texts()
    assert entropy.removesuffix(" bits") in like(number, float(found.entropy_H[head - 1]))
    assert distance.removesuffix(" tokens") in like(number, float(found.distance_H[head - 1]))
    assert special in like(percent, float(found.special_H[head - 1]))


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize("name", BEFORE)
def test_every_head(served: str, view: Watch, task: Callable[[str], Any], name: str) -> None:
    """Each looks where it does in Python, at one token or another, and its measures are those."""
    shown, told = opened(view, served, name), record(task(name), BEFORE[name])
    place = 0
    for kind, layers in told.weights.items():
        if len(told.weights) > 1:
            chosen(shown, "Use of attention", TABS[kind])
        queries, keys = told.queries(kind), told.keys(kind)
        for layer, weight_HQK in enumerate(layers, 1):
            for head, weight_QK in enumerate(weight_HQK, 1):
                shown.get_by_role("button", name=f"layer {layer} head {head}:").click()
                check_row(shown, place := (place + 3) % len(queries), weight_QK, (names(queries), names(keys)))
                check_measures(shown, weight_HQK, head, keys)
    assert not shown.get_by_role("alert").count()


@pytest.mark.long(minutes=0.1)
def test_many_heads_as_one(served: str, view: Watch, task: Callable[[str], Any]) -> None:
    """Mean and maximum over the heads of a layer and of all, and their rollout up to each layer."""
    shown, told = opened(view, served, "classifier", kind="encoder"), record(task("classifier"), BEFORE["classifier"])
    layers, tokens = told.weights["encoder"], names(told.source)
    every = np.concatenate(layers)
    wanted = {
        "mean": {"0": every.mean(axis=0), "1": layers[0].mean(axis=0)},
        "maximum": {"0": every.max(axis=0), "2": layers[1].max(axis=0)},
        "rollout": {"0": rollout(layers), "1": rollout(layers[:1])},
    }
    for merge, each in wanted.items():
        chosen(shown, "Heads shown", merge)
        for layer, weight_QK in each.items():
            shown.locator(".one select").select_option(layer)
            for place in (1, 6):
                check_row(shown, place, weight_QK, (tokens, tokens))


@pytest.mark.long(minutes=0.1)
@pytest.mark.parametrize(("name", "kind"), [("translator", "cross"), ("writer", "decoder")])
def test_whole_words(served: str, view: Watch, task: Callable[[str], Any], name: str, kind: Kind) -> None:
    """Weights between words are summed over a key word's pieces and averaged over a query word's."""
    text = "The schoolmaster didn't understand because he was overtired."
    shown, told = opened(view, served, name, text=text, kind=kind), record(task(name), text)
    flipped(shown, "whole words")
    sides = sides_of(told, kind)
    assert len(sides[1]) < len(told.keys(kind))
    weight_QK = by_word(told.head(kind, 2, 1), *([places for _, places in side] for side in sides))
    for place in range(0, len(sides[0]), 3):
        check_row(shown, place, weight_QK, [[clean(word) for word, _ in side] for side in sides])


def sides_of(told: Record, kind: Kind) -> list[list[tuple[str, list[int]]]]:
    """Who looks and what is looked at, in words."""
    texts = (
        told.source_text if kind == "encoder" else told.target_text,
        told.target_text if kind == "decoder" else told.source_text,
    )
    return [words(tokens, text) for tokens, text in zip((told.queries(kind), told.keys(kind)), texts, strict=True)]


@pytest.mark.long(minutes=0.1)
def test_patches_of_an_image(served: str, view: Watch, task: Callable[[str], Any]) -> None:
    """Who looks is chosen by arrow keys over the image; the sentence names patches by row and column."""
    shown = opened(view, served, "digits", image=3)
    told = recorded(image_scene(task("digits"), digits("test")[0][3]))
    image = shown.get_by_role("img", name="The image in 4 by 4 patches; arrow keys choose who looks.")
    for layer, head, steps in ((1, 2, ("ArrowDown", "ArrowRight")), (2, 4, ("ArrowDown", "ArrowLeft"))):
        shown.get_by_role("button", name=f"layer {layer} head {head}:").click()
        shown.get_by_role("button", name="The class token looks").click()
        place, weight_QK = 0, told.head("encoder", layer, head)
        for step in ("", *steps):
            if step:
                image.press(step)
            place += {"": 0, "ArrowDown": 4, "ArrowRight": 1, "ArrowLeft": -1}[step]
            shown.evaluate(FRAME)
            who, said = shown.locator(".gaze").inner_text().split(" looks at ", 1)
            assert who == told.source[place].text
            check_gaze(f"looks at {said}", names(told.source), weight_QK[place])
            share = shown.get_by_text("where it looks, the strongest ink most").inner_text().split("; ")[1]
            assert share.removesuffix(" to the class token") in like(percent, float(weight_QK[place, 0]))
        check_measures(shown, told.layer("encoder", layer), head, told.source)
