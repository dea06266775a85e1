"""What is taken away on the page is taken away in the model: the output is what Python gets without it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import eq
from typing import Any

import numpy as np
import pytest

from page_language import digits
from page_numbers import clean, like, number
from page_reading import BEFORE, ONE, chosen, flipped, opened, settled, soon
from page_view import Watch
from regard.explore.owing import scored
from regard.explore.record import record
from regard.explore.said import said
from regard.explore.scene import image_scene, scene
from regard.models.changes import Changes, Head
from regard.models.saliency import gradient_times_input

IMAGE = 3


def makes(task: Any, changes: Changes) -> str:
    """What a model makes of its text or image while it does without something."""
    with changes.made(task.recipe.model):
        if task.name == "image-classification":
            return str(task.classify(digits("test")[0][IMAGE]).label)
        text = BEFORE[
            {"masked-lm": "words", "span-corruption": "spans", "language-model": "writer"}.get(task.name, "tagger")
        ]
        if task.name == "translation":
            return str(task.translate(text, beam=1))
        if task.name == "span-corruption":
            return record(task, text).target_text
        if task.name == "classification":
            return str(task.classify(text).label)
        if task.name == "masked-lm":
            return str(task.fill(text)[0][0].text)
        if task.name == "language-model":
            return f"… {clean(said(scene(task, text))[-1][0].piece)}"
        found = task.tag(text)
    return (
        " · ".join(f"{word} {tag}" for word, tag in zip(found.words, found.tags, strict=True) if tag != "O")
        or "no tags"
    )


def plain(text: str) -> str:
    """As it is seen: without spaces at its ends."""
    return " ".join(text.split())


def becomes(before: str, now: str) -> str:
    """How the page says it."""
    before, now = plain(before), plain(now)
    return f"the output stays the same: {now}" if before == now else f"{before} becomes {now}"


TAKEN = [
    ("recurrent", {"off": "cross.1.1"}, Changes((Head("cross", 1, 1),))),
    ("classifier", {"off": "encoder.1.2 encoder.2.3"}, Changes((Head("encoder", 1, 2), Head("encoder", 2, 3)))),
    ("classifier", {"without": "scaling"}, Changes(scaling=False)),
    ("tagger", {"without": "positions"}, Changes(positions=False)),
    ("words", {"without": "positions scaling"}, Changes(positions=False, scaling=False)),
    (
        "writer",
        {"off": "decoder.1.1 decoder.1.2", "without": "mask"},
        Changes((Head("decoder", 1, 1), Head("decoder", 1, 2)), mask=False),
    ),
    ("spans", {"without": "positions"}, Changes(positions=False)),
    ("digits", {"without": "positions", "image": IMAGE}, Changes(positions=False)),
]


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize(
    ("name", "given", "changes"),
    TAKEN,
    ids=[f"{n}-{'-'.join(g.values() if 'image' not in g else ['positions'])}" for n, g, _ in TAKEN],
)
def test_what_comes_of_it(
    served: str, view: Watch, task: Callable[[str], Any], name: str, given: dict[str, Any], changes: Changes
) -> None:
    shown = opened(view, served, name, **given)
    said = shown.locator(".changed").get_by_role("status").inner_text()
    heads = ", ".join(f"{one.kind} {one.layer}·{one.head}" for one in changes.off)
    before, now = makes(task(name), Changes()), makes(task(name), changes)
    assert said == (f"Without {heads}: " if heads else "") + becomes(before, now)


@pytest.mark.long(minutes=0.2)
def test_heads_switched_off_one_after_another(served: str, view: Watch, task: Callable[[str], Any]) -> None:
    """The output changes with them, and so do the heads above; at the end all is as it was."""
    shown, model, off = opened(view, served, "translator", kind="cross", layer=1, head=1), task("translator"), []
    before = makes(model, Changes())
    status = shown.locator(".changed").get_by_role("status")
    for head in (1, 2, 3, 4):
        shown.get_by_role("button", name=f"layer 1 head {head}:").click()
        flipped(shown, "this head is on")
        off.append(Head("cross", 1, head))
        now = makes(model, Changes(tuple(off)))
        names = ", ".join(f"cross 1·{one.head}" for one in off)
        soon(
            shown,
            status.all_inner_texts,
            partial(eq, [f"Without {names}: {becomes(before, now)}"]),
        )
    assert now != before
    shown.get_by_role("button", name="layer 2 head 1:").click()
    with Changes(tuple(off)).made(model.recipe.model):
        weight_QK = record(model, ONE.source).head("cross", 2, 1)
    positive_QK = np.where(weight_QK > 0, weight_QK, 1)
    entropy = float(-(positive_QK * np.log2(positive_QK)).sum(axis=1).mean())
    assert shown.locator("dl.measures dd").first.inner_text().removesuffix(" bits") in like(number, entropy)
    shown.get_by_role("button", name="all as it was").click()
    soon(shown, status.count, lambda count: count == 0)
    soon(shown, shown.locator(".written").inner_text, lambda text: text.startswith(before))


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("name", ["translator", "classifier", "spans"])
def test_another_order_with_and_without_positions(
    served: str, view: Watch, task: Callable[[str], Any], name: str
) -> None:
    """Four outputs, each of them what Python makes of the words in that order."""
    shown = opened(view, served, name, view="positions")
    shown.locator(".orders").wait_for()
    settled(shown)
    texts = shown.locator(".orders .read p").all_inner_texts()
    outputs = [plain(text) for text in shown.locator(".orders .said p:first-of-type").all_inner_texts()]
    assert texts[0] == BEFORE[name] != texts[1]
    wanted = []
    for text in texts:
        for changes in (Changes(), Changes(positions=False)):
            with changes.made(task(name).recipe.model):
                classifies = name == "classifier"
                made = str(task(name).classify(text).label) if classifies else record(task(name), text).target_text
                wanted.append(plain(made))
    assert outputs == wanted


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize(
    ("name", "place"),
    [("translator", 4), ("recurrent", 1), ("words", 8), ("classifier", None), ("tagger", 2), ("digits", None)],
)
def test_the_gradient(served: str, view: Watch, task: Callable[[str], Any], name: str, place: int | None) -> None:
    """Gradient times input of every token, for what was written there or the label that is said."""
    more = {"image": IMAGE} if name == "digits" else {}
    shown = opened(view, served, name, view="compare", **more)
    chosen(shown, "What is compared", "beside the gradient")
    if place is not None:
        shown.get_by_role("group", name="Tokens to be explained").get_by_role("button").nth(place).click()
    model = task(name)
    seen = image_scene(model, digits("test")[0][IMAGE]) if name == "digits" else scene(model, BEFORE[name])
    score = scored(seen, place, None)
    share_T = gradient_times_input(model.model, "encoder", lambda: score(seen.run())).tolist()
    settled(shown)
    labels = [
        one.get_attribute("aria-label")
        for one in shown.get_by_role("group", name="Tokens", exact=True).get_by_role("img").all()
    ]
    assert len(labels) == len(share_T)
    for label, share in zip(labels, share_T, strict=True):
        assert label is not None
        assert label.rsplit(" ", 1)[1] in like(lambda value: number(value, 2), share)
    whole = shown.get_by_text("Log-probability").inner_text().rsplit(" ", 1)[1]
    assert whole.removesuffix(".") in like(number, float(score(seen.run())))
