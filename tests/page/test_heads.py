"""Heads on the page equal those recorded in Python, one by one, over many texts, switched off, and all on one sheet."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import partial
from operator import eq
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from regard.inspection.folders.folder import Folder
from regard.inspection.forward.head_functions import FUNCTIONS, MEASURES
from regard.inspection.forward.outputs import scores
from regard.inspection.forward.passes import probabilities
from regard.inspection.forward.record import (
    Kind,
    Token,
    by_word,
    image_inputs,
    measures,
    record,
    record_attention,
    text_inputs,
)
from regard.inspection.questions.attribution import explained_score
from regard.inspection.questions.heads import folder_texts
from regard.models.ablation import Ablations, Head
from tests.page.language import digits
from tests.page.models import made
from tests.page.numbers import apart, chance, check_looks, clean, like, number, percent, weight
from tests.page.reading import BEFORE, FRAME, ONE, TaskOf, Visit, alerts, chosen, flipped, gaze, settled, soon

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.long(minutes=0.1)

TABS = {"encoder": "encoder", "decoder": "decoder", "cross": "encoder–decoder", "pool": "pooling"}
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
    assert seen["rows"][place].lstrip("·") == names[0][place]
    check_looks(seen["said"], names[0][place], names[1], weight_QK[place])
    for shown_value, value in zip(seen["values"], map(float, weight_QK[place]), strict=True):
        assert shown_value in (
            {""} if value < 0.004999 else like(weight, value) | {""} if value < 0.005001 else like(weight, value)
        )


def names(tokens: Sequence[Token]) -> list[str]:
    return [clean(token.text) for token in tokens]


def check_measures(
    shown: Page, weight_HQK: NDArray[Any], head: int, keys: Sequence[Token], grid: tuple[int, int] | None = None
) -> None:
    found = measures(weight_HQK, [token.start == token.end for token in keys], grid)
    entropy, *others, special = shown.locator("dl.measures dd").all_inner_texts()
    assert entropy.removesuffix(" bits") in like(number, float(found.entropy_H[head - 1]))
    assert len(others) == (weight_HQK.shape[1] > 1)  # one query for a whole text stands nowhere in it
    for distance in others:
        assert distance.removesuffix(" patches" if grid else " tokens") in like(
            number, float(found.distance_H[head - 1])
        )
    assert special in like(percent, float(found.special_H[head - 1]))


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize("name", BEFORE)
def test_every_head(visit: Visit, task: TaskOf, name: str) -> None:
    """Each looks where it does in Python, at one token or another, and its measures are those."""
    shown, told = visit(name), record(task(name), BEFORE[name])
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
    assert not alerts(shown)


def test_patches_of_an_image(visit: Visit, task: TaskOf) -> None:
    """Who looks is chosen by arrow keys over the image; the sentence says in words where the patches are."""
    shown = visit("digits", image=3)
    told = record_attention(image_inputs(task("digits"), digits("test")[0][3]))
    spots = ["the class token"]
    spots += [f"the patch in row {row}, column {column}" for row in (1, 2, 3, 4) for column in (1, 2, 3, 4)]
    assert shown.get_by_text("What it is:").inner_text() == f"What it is: {digits('test')[1][3]}"
    image = shown.get_by_role("img", name="The image in 4 by 4 patches; arrow keys choose who looks.")
    for layer, head, steps in ((1, 2, ("ArrowDown", "ArrowRight")), (2, 4, ("ArrowDown", "ArrowLeft"))):
        shown.get_by_role("button", name=f"layer {layer} head {head}:").click()
        shown.get_by_role("button", name="let the class token look").click()
        place, weight_QK = 0, told.head("encoder", layer, head)
        for step in ("", *steps):
            if step:
                image.press(step)
            place += {"": 0, "ArrowDown": 4, "ArrowRight": 1, "ArrowLeft": -1}[step]
            shown.evaluate(FRAME)
            check_looks(gaze(shown), spots[place].replace("the ", "The ", 1), spots, weight_QK[place])
            assert shown.get_by_text("the framed patch looks").count() == (place > 0)
            assert shown.get_by_text("the class token looks, which stands for no patch").count() == (place == 0)
            most, share = shown.get_by_text("where it looks: full ink is").inner_text().split("; ")
            assert most.split(" is ")[1].split(",")[0] in like(weight, float(weight_QK[place, 1:].max()))
            assert share.removesuffix(" to the class token") in like(percent, float(weight_QK[place, 0]))
        check_measures(shown, told.layer("encoder", layer), head, told.source, (4, 4))


def captions(shown: Page) -> dict[tuple[int, int], str]:
    """What stands below each small picture, by layer and head, in the order in which they stand."""
    found = {}
    for one in shown.get_by_role("group", name="Heads").get_by_role("button").all():
        label = re.match(r"layer (\d+) head (\d+):", one.get_attribute("aria-label") or "")
        assert label is not None
        found[int(label[1]), int(label[2])] = plain(one.inner_text())
    return found


def plain(text: str) -> str:
    """In one line; without the dot before a piece that goes on with a word."""
    return re.sub(r"(?<![^ “])·", "", " ".join(text.split()))


@pytest.mark.parametrize("whole", [False, True])
def test_what_each_head_gives_from_a_kept_token(visit: Visit, task: TaskOf, whole: bool) -> None:
    """Below each picture; then ranked by it, four beside each other; the sentence names the sharpest."""
    shown, told = visit("translator", kind="cross"), record(task("translator"), ONE.source)
    if whole:
        flipped(shown, "whole words")
    queries, keys = (
        told.words("cross")
        if whole
        else [[(t, [n]) for n, t in enumerate(names(side))] for side in (told.written, told.source)]
    )
    shown.locator(".columns ol").first.get_by_role("button").nth(2).click()
    wanted = {}
    for layer, head in np.ndindex(2, 4):
        weight_QK = by_word(
            told.head("cross", layer + 1, head + 1), *([places for _, places in side] for side in (queries, keys))
        )
        at = int(weight_QK[2].argmax())
        wanted[layer + 1, head + 1] = clean(keys[at][0]), float(weight_QK[2, at])
    soon(shown, lambda: captions(shown)[1, 1], bool)
    for head, said in captions(shown).items():
        name, share = wanted[head]
        assert said in {f"{name} {one}" for one in like(percent, share)}
    shown.get_by_label("order").select_option("looks")
    ranked = captions(shown)
    assert list(ranked) == sorted(wanted, key=lambda head: (-wanted[head][1], head))
    assert all(said.startswith(f"{layer}·{head} ") for (layer, head), said in ranked.items())
    (layer, head), name = next(iter(ranked)), clean(queries[2][0])
    sentence, (key, share) = plain(shown.locator(".answer p").first.inner_text()), wanted[layer, head]
    begins = f"Of these heads encoder–decoder head {layer}·{head} looks most sharply from “{name}”: at “{key}” with "
    assert any(sentence.endswith(f"{begins}{one}.") for one in like(percent, share))
    boxes = [one.bounding_box() for one in shown.get_by_role("group", name="Heads").get_by_role("button").all()]
    assert max([box["y"] for box in boxes if box].count(box["y"]) for box in boxes if box) <= 4


NEEDED = [("translator", "cross", 3), ("translator", "decoder", 4), ("spans", "cross", 1), ("writer", "decoder", 2)]


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize(
    ("name", "kind", "row"),
    [
        *NEEDED,
        ("tagger", "encoder", 1),
        ("classifier", "encoder", None),
        ("reader", "pool", None),
        ("digits", "encoder", None),
    ],
)
def test_what_a_token_or_a_label_needs(visit: Visit, task: TaskOf, name: str, kind: Kind, row: int | None) -> None:
    """Every head of every kind off in turn, what was written forced; nothing else is said beside another kind."""
    image = {"image": 3} if name == "digits" else {}
    shown, model = visit(name, kind=kind, token=row, **image), task(name)
    seen = image_inputs(model, digits("test")[0][3]) if image else text_inputs(model, BEFORE[name])
    place = row + 1 if row is not None and name == "writer" else row
    score, section = explained_score(seen, place, None), model.recipe.model
    whole, left = float(score(seen.run())), {}
    for use, (layers, heads) in section.attention.items():
        for layer, head in np.ndindex(layers, heads):
            with Ablations((Head(use, layer + 1, head + 1),)).apply(section):
                left[use, layer + 1, head + 1] = float(score(seen.run()))
    shown.get_by_role("button", name="what does").click()
    said = plain(soon(shown, shown.locator(".answer").inner_text, lambda text: "stayed the same" in text))
    worst = min(left, key=lambda head: left[head])
    if whole - left[worst] > 0.06:
        use = TABS[worst[0]]
        assert said.startswith(f"Without {use} head {worst[1]}·{worst[2]} “"), said
        amounts = apart(chance, math.exp(whole), math.exp(left[worst]))
        assert any(f" from {a} to {b}" in said for a, b in amounts), said
    elif whole - left[worst] < 0.04:
        assert said.startswith("No head is needed alone")
    assert ("The only head" if len(left) == 1 else f"Every one of the {len(left)} heads") in said
    for (layer, head), caption in captions(shown).items():
        before, after = caption.split(" ", 1)[1].split(" → ")
        looks = after.split(" % ")
        now = f"{looks[0]} %" if len(looks) > 1 else after
        before = f"{before} %" if now.endswith(" %") else before
        assert (before, now) in apart(chance, math.exp(whole), math.exp(left[kind, layer, head]))
        assert (len(looks) > 1) == (row is not None or kind == "pool"), caption
    order = [left[kind, layer, head] for layer, head in captions(shown)]
    np.testing.assert_allclose(order, sorted(order), atol=1e-3)
    if name == "translator":
        chosen(shown, "Use of attention", "encoder")
        assert plain(shown.locator(".answer").inner_text()) == said
        assert len(captions(shown)) == 8


def test_where_a_word_is_written(visit: Visit, task: TaskOf) -> None:
    """A word that is kept is asked after in the decoder too, from the row that reads what stands before it."""
    shown, model = visit("translator", kind="cross", token=3), task("translator")
    told = record(model, ONE.source)
    word, before = clean(told.written[3].text), clean(told.target[3].text)
    chosen(shown, "Use of attention", "decoder")
    kept = shown.locator(".columns ol").first.get_by_role("button", pressed=True)
    assert soon(shown, kept.all_inner_texts, bool) == [before]
    shown.get_by_role("button", name=f"what does “{word}” need?").wait_for()
    (share,) = [one for place, one in enumerate(told_probability(model)) if place == 3]
    said = plain(shown.locator(".decided").inner_text())
    begins = f"Here “{word}” is about to be written: the model gives it "
    assert any(said.startswith(f"{begins}{one}; “") for one in like(chance, share)), said
    chosen(shown, "Use of attention", "encoder–decoder")
    assert soon(shown, kept.all_inner_texts, bool) == [word]


def told_probability(model: Any) -> list[float]:
    """Of each piece that is written, how probable it was."""
    seen = text_inputs(model, ONE.source)
    found = probabilities(seen, scores(seen))
    assert found is not None
    return [0.0 if one is None else one for one in found]


def test_a_head_that_is_off(visit: Visit) -> None:
    """It is grey, said to be off, and not counted with those that are switched off in turn; the result stands above."""
    shown = visit("translator", kind="cross", layer=1, head=2, token=3, off="cross.1.2")
    assert shown.get_by_role("status").filter(has_text="This head is switched off").count() == 1
    assert shown.locator(".one .silent").count() == 1
    result, lines = (shown.locator(one).first.bounding_box() for one in (".changed [role=status]", ".columns"))
    assert result is not None
    assert lines is not None
    assert result["y"] + result["height"] <= lines["y"]
    shown.get_by_role("button", name="what does").click()
    said = plain(soon(shown, shown.locator(".answer").inner_text, lambda text: "stayed the same" in text))
    assert re.search(r"Every one of the \d+ heads that were on was switched off", said), said
    assert list(captions(shown).items())[-1][1].startswith("1·2 off")
    shown.get_by_role("button", name="layer 1 head 1:").click()
    assert shown.locator(".one .silent").count() == 0


@pytest.mark.long(minutes=0.2)
def test_heads_switched_off_one_after_another(visit: Visit, task: TaskOf) -> None:
    """The output changes with them, and so do the heads above; at the end all is as it was."""
    shown, model, off = visit("translator", kind="cross", layer=1, head=1), task("translator"), []
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


def test_a_label_before_and_after(visit: Visit, task: TaskOf) -> None:
    shown, model = visit("classifier", without="positions"), task("classifier")
    before = model.classify(BEFORE["classifier"])
    with Ablations(positions=False).apply(model.recipe.model):
        after = model.classify(BEFORE["classifier"])
    first = plain(shown.locator(".moved li").first.inner_text())
    shares = apart(chance, before.probabilities[before.label], after.probabilities[before.label])
    assert first in {f"{before.label} {a} → {b}" for a, b in shares}


def test_without_the_mask_the_numbers_are_of_the_whole_line(visit: Visit) -> None:
    shown = visit("translator", without="mask")
    assert shown.get_by_text("the probabilities below are of the whole line read at once").count() == 1
    other = visit("translator", without="scaling")
    assert other.get_by_text("the whole line read at once").count() == 0


ASK = "where does each head look?"


@pytest.mark.long(minutes=0.3)
def test_the_table_is_that_of_python(visit: Visit, task: TaskOf, page_models: Any) -> None:
    shown = visit("translator", kind="encoder")
    shown.get_by_role("button", name=ASK).click()
    section = shown.get_by_role("region", name="Over many texts")
    section.locator("td button").first.wait_for()
    soon(shown, section.inner_text, lambda text: "are read so far" not in text)
    model = task("translator")
    origin, texts = folder_texts(Folder(made("translator", page_models)), model)
    assert origin in ("demo", "validation")
    found = model.heads([one.source for one in texts], [one.target for one in texts])
    heads = [head for head in found if head.kind == "encoder"]
    names = [name for name in heads[0].estimates if name in FUNCTIONS or name in MEASURES]
    cells = section.locator("td button").all_inner_texts()
    assert len(cells) == len(heads) * len(names)
    wanted = [head.estimates[name].mean * (1 if name in MEASURES else 100) for head in heads for name in names]
    for said, value in zip(map(float, cells), wanted, strict=True):
        assert abs(said - value) < 0.51
    assert section.locator("tbody .does").all_inner_texts() == [head.label for head in heads]


@pytest.mark.long(minutes=0.2)
def test_by_keyboard_and_in_a_narrow_window(visit: Visit) -> None:
    shown = visit("translator", kind="encoder")
    shown.set_viewport_size({"width": 390, "height": 800})
    shown.get_by_role("button", name=ASK).click()
    section = shown.get_by_role("region", name="Over many texts")
    section.locator("td button").first.wait_for()
    assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
    section.locator("td button").first.focus()
    shown.keyboard.press("ArrowRight")
    shown.keyboard.press("ArrowDown")
    told = section.locator(".told").inner_text()
    assert told.startswith("Encoder head 1·2 · next token")
    assert "95 % interval" in told
    shown.keyboard.press("Enter")
    soon(shown, shown.locator("h2").first.inner_text, lambda text: text == "Encoder head 1·2")
    assert section.locator("tr.chosen th").inner_text() == "1·2"


def picture(shown: Page, name: str) -> Locator:
    """The small picture of a head."""
    return shown.get_by_role("button", name=re.compile(f"^{name}:"))


def test_every_head_opens(visit_one: Visit) -> None:
    """Three kinds of two layers with four heads; a click shows the head, by pointer or by keys."""
    shown = visit_one("translator", view="sheet")
    assert shown.locator(".kinds canvas").count() == 3 * 2 * 4
    picture(shown, "decoder head 2·3").click()
    settled(shown)
    assert shown.get_by_role("heading", name="Decoder head 2·3").is_visible()
    shown.go_back()
    picture(shown, "encoder head 1·1").focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        shown.keyboard.press(key)
    assert shown.get_by_role("heading", name="Encoder head 2·2").is_visible()


def test_heads_lie_over_one_another(visit_one: Visit) -> None:
    """Two of one kind; a head of another kind begins anew, and a second click takes it away."""
    shown = visit_one("translator", view="sheet")
    shown.get_by_role("radio", name="a click lays it over others").click()
    for name in ("encoder head 1·1", "encoder head 2·3"):
        picture(shown, name).click()
    legend = shown.get_by_role("list", name="Heads over one another").get_by_role("listitem")
    assert legend.count() == 2
    assert picture(shown, "encoder head 2·3").get_attribute("aria-pressed") == "true"
    over = shown.get_by_role("region", name="Over one another")
    over.locator("ol button").first.hover()
    assert "“" in legend.first.inner_text()
    picture(shown, "decoder head 1·1").click()
    assert legend.count() == 1
    picture(shown, "decoder head 1·1").click()
    assert over.count() == 0
