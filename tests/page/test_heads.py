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

from regard.inspection.folders.folder import Folder
from regard.inspection.forward.head_functions import FUNCTIONS, MEASURES
from regard.inspection.forward.record import (
    NAMES,
    Kind,
    Token,
    Weights,
    by_word,
    image_inputs,
    measures,
    record,
    record_attention,
    text_inputs,
)
from regard.inspection.questions.attribution import explained_score, read_ablated
from regard.inspection.questions.heads import folder_texts
from regard.inspection.requests import AblationRequest
from regard.models.ablation import Ablations, Head
from tests.page.language import digits
from tests.page.models import made
from tests.page.numbers import check_looks, clean, shows
from tests.page.reading import BEFORE, ONE, TaskOf, Visit, names_of
from tests.page.view import Shown

if TYPE_CHECKING:
    from playwright.sync_api import Locator

pytestmark = pytest.mark.long(minutes=0.1)


def check_row(shown: Shown, place: int, weight_QK: Weights, names: Sequence[Sequence[str]]) -> None:
    """Point at one of those who look: the sentence, and the values beside all that it looks at."""
    shown.point(place)
    rows, columns = (column.get_by_role("listitem") for column in shown.locator(".columns ol").all())
    assert [rows.count(), columns.count()] == list(weight_QK.shape)
    assert rows.nth(place).locator(":scope > :first-child").inner_text().lstrip("·") == names[0][place]
    assert [text.lstrip("·") for text in columns.locator(":scope > :first-child").all_inner_texts()] == list(names[1])
    check_looks(shown.gaze(), names[0][place], names[1], weight_QK[place])
    values = columns.locator(":scope > :last-child").all_inner_texts()
    for said, value in zip(values, map(float, weight_QK[place]), strict=True):
        assert shows(said, value) if said else value < 0.005001


def check_measures(
    shown: Shown, weight_HQK: Weights, head: int, keys: Sequence[Token], grid: tuple[int, int] | None = None
) -> None:
    found = measures(weight_HQK, [token.start == token.end for token in keys], grid)
    somewhere = weight_HQK.shape[1] > 1  # one query for a whole text stands nowhere in it
    wanted = [found.entropy_H, *([found.distance_H] if somewhere else []), found.special_H]
    told = shown.locator("dl.measures dd").all_inner_texts()
    for said, value_H in zip(told, wanted, strict=True):
        assert shows(re.sub(" (bits|tokens|patches)$", "", said), float(value_H[head - 1]))


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize("name", BEFORE)
def test_every_head(visit: Visit, task: TaskOf, name: str) -> None:
    """Each looks where it does in Python, at one token or another, and its measures are those."""
    shown, told = visit(name), record(task(name), BEFORE[name])
    place = 0
    for kind in told.kinds:
        if len(told.kinds) > 1:
            shown.choose("Use of attention", NAMES[kind])
        names = names_of(told.queries(kind)), names_of(told.keys(kind))
        for layer, weight_HQK in enumerate(told.weights[kind], 1):
            for head, weight_QK in enumerate(weight_HQK, 1):
                shown.get_by_role("button", name=f"layer {layer} head {head}:").click()
                check_row(shown, place := (place + 3) % len(names[0]), weight_QK, names)
                check_measures(shown, weight_HQK, head, told.keys(kind))
    assert not shown.alerts()


def test_patches_of_an_image(visit: Visit, task: TaskOf) -> None:
    """Who looks is chosen by arrow keys over the image; the sentence says in words where the patches are."""
    shown = visit("digits", image=3)
    told = record_attention(image_inputs(task("digits"), digits("test")[0][3]))
    spots = ["the class token", *(f"the patch in row {at // 4 + 1}, column {at % 4 + 1}" for at in range(16))]
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
            shown.drawn()
            check_looks(shown.gaze(), spots[place].replace("the ", "The ", 1), spots, weight_QK[place])
            assert shown.get_by_text("the framed patch looks").count() == (place > 0)
            assert shown.get_by_text("the class token looks, which stands for no patch").count() == (place == 0)
            most, share = shown.get_by_text("where it looks: full ink is").inner_text().split("; ")
            assert shows(most.split(" is ")[1].split(",")[0], float(weight_QK[place, 1:].max()))
            assert shows(share.removesuffix(" to the class token"), float(weight_QK[place, 0]))
        check_measures(shown, told.layer("encoder", layer), head, told.source, (4, 4))


def captions(shown: Shown) -> dict[tuple[int, int], str]:
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
        shown.flip("whole words")
    sides = told.written, told.source
    queries, keys = told.words("cross") if whole else [[(t.text, [n]) for n, t in enumerate(side)] for side in sides]
    shown.locator(".columns ol").first.get_by_role("button").nth(2).click()
    wanted = {}
    for layer, head in np.ndindex(2, 4):
        weight_QK = told.head("cross", layer + 1, head + 1)
        weight_K = by_word(weight_QK, [queries[2][1]], [places for _, places in keys])[0]
        wanted[layer + 1, head + 1] = clean(keys[weight_K.argmax()][0]), float(weight_K.max())
    shown.soon(lambda: captions(shown)[1, 1])
    for head, said in captions(shown).items():
        name, share = wanted[head]
        assert said.startswith(f"{name} ")
        assert shows(said.removeprefix(f"{name} "), share)
    shown.get_by_label("order").select_option("looks")
    ranked = captions(shown)
    assert list(ranked) == sorted(wanted, key=lambda head: (-wanted[head][1], head))
    assert all(said.startswith(f"{layer}·{head} ") for (layer, head), said in ranked.items())
    layer, head = next(iter(ranked))
    looks = f"head {layer}·{head} looks most sharply from “{clean(queries[2][0])}”: at “{wanted[layer, head][0]}” with "
    assert f"Of these heads encoder–decoder {looks}" in plain(shown.locator(".answer p").first.inner_text())
    boxes = [one.bounding_box() for one in shown.get_by_role("group", name="Heads").get_by_role("button").all()]
    assert max([box["y"] for box in boxes if box].count(box["y"]) for box in boxes if box) <= 4


NEEDED = [("translator", "cross", 3), ("translator", "decoder", 4), ("spans", "cross", 1), ("writer", "decoder", 2)]
NEEDED += [("tagger", "encoder", 1), ("classifier", "encoder", None), ("reader", "pool", None)]


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize(("name", "kind", "row"), [*NEEDED, ("digits", "encoder", None)])
def test_what_a_token_or_a_label_needs(visit: Visit, task: TaskOf, name: str, kind: Kind, row: int | None) -> None:
    """Every head of every kind off in turn, what was written forced; nothing else is said beside another kind."""
    image = {"image": 3} if name == "digits" else {}
    shown, model = visit(name, kind=kind, token=row, **image), task(name)
    seen = image_inputs(model, digits("test")[0][3]) if image else text_inputs(model, BEFORE[name])
    score = explained_score(seen, row + 1 if row is not None and name == "writer" else row, None)

    def share(*off: tuple[Kind, int, int]) -> float:
        return math.exp(read_ablated(seen, AblationRequest(off=off), lambda hidden_TD: float(score(hidden_TD))))

    whole, sizes = share(), model.recipe.model.attention
    left = {(use, a + 1, b + 1): share((use, a + 1, b + 1)) for use, size in sizes.items() for a, b in np.ndindex(size)}
    shown.get_by_role("button", name="what does").click()
    said = plain(shown.soon(shown.locator(".answer").inner_text, lambda text: "stayed the same" in text))
    worst = min(left, key=lambda head: left[head])
    if math.log(whole / left[worst]) > 0.06:
        assert said.startswith(f"Without {NAMES[worst[0]]} head {worst[1]}·{worst[2]} “"), said
    elif math.log(whole / left[worst]) < 0.04:
        assert said.startswith("No head is needed alone")
    assert ("The only head" if len(left) == 1 else f"Every one of the {len(left)} heads") in said
    for (layer, head), caption in captions(shown).items():
        found = re.fullmatch(r"\S+ (.+?)( %)? → ((?:[<>] )?\S+)( %)?( .+)?", caption)
        assert found, caption
        before, _, after, percent, looks = found.groups()
        assert shows(f"{before}{percent or ''}", whole), caption
        assert shows(f"{after}{percent or ''}", left[kind, layer, head]), caption
        assert (looks is not None) == (row is not None or kind == "pool"), caption
    order = [left[kind, layer, head] for layer, head in captions(shown)]
    np.testing.assert_allclose(np.log(order), sorted(np.log(order)), atol=1e-3)
    if name == "translator":
        shown.choose("Use of attention", "encoder")
        assert plain(shown.locator(".answer").inner_text()) == said
        assert len(captions(shown)) == 8


def test_where_a_word_is_written(visit: Visit, task: TaskOf) -> None:
    """A word that is kept is asked after in the decoder too, from the row that reads what stands before it."""
    shown, told = visit("translator", kind="cross", token=3), record(task("translator"), ONE.source)
    word, before = clean(told.written[3].text), clean(told.target[3].text)
    shown.choose("Use of attention", "decoder")
    kept = shown.locator(".columns ol").first.get_by_role("button", pressed=True)
    assert shown.soon(kept.all_inner_texts) == [before]
    shown.get_by_role("button", name=f"what does “{word}” need?").wait_for()
    said = plain(shown.locator(".decided").inner_text())
    assert said.startswith(f"Here “{word}” is about to be written: the model gives it ")
    shown.choose("Use of attention", "encoder–decoder")
    assert shown.soon(kept.all_inner_texts) == [word]


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
    said = plain(shown.soon(shown.locator(".answer").inner_text, lambda text: "stayed the same" in text))
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
        shown.flip(f"head 1·{head}")
        off.append(Head("cross", 1, head))
        with Ablations(tuple(off)).apply(model.recipe.model):
            now = model.translate(ONE.source, beam=1)
        names = ", ".join(f"encoder–decoder head 1·{one.head}" for one in off)
        becomes = f"stays the same: {now}" if now == before else f"changes: {before} becomes {now}"
        wanted = f"Without {names}: the output, written greedily, {becomes}"
        shown.soon(lambda: [plain(text) for text in status.all_inner_texts()], partial(eq, [wanted]))
    assert now != before
    shown.get_by_role("button", name="layer 2 head 1:").click()
    with Ablations(tuple(off)).apply(model.recipe.model):
        told = record(model, ONE.source)
    check_measures(shown, told.layer("cross", 2), 1, told.source)
    shown.get_by_role("button", name="all as it was").click()
    shown.soon(status.count, lambda count: count == 0)
    shown.soon(shown.locator(".written").inner_text, lambda text: text.startswith(before))


def test_a_label_before_and_after(visit: Visit, task: TaskOf) -> None:
    shown, model = visit("classifier", without="positions"), task("classifier")
    before = model.classify(BEFORE["classifier"])
    with Ablations(positions=False).apply(model.recipe.model):
        after = model.classify(BEFORE["classifier"])
    first = plain(shown.locator(".moved li").first.inner_text())
    shares = first.removeprefix(f"{before.label} ").split(" → ")
    for share, verdict in zip(shares, (before, after), strict=True):
        assert shows(share, verdict.probabilities[before.label]), first


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
    shown.soon(section.inner_text, lambda text: "are read so far" not in text)
    model = task("translator")
    origin, texts = folder_texts(Folder(made("translator", page_models)), model)
    assert origin in ("demo", "validation")
    found = model.heads([one.source for one in texts], [one.target for one in texts])
    heads = [head for head in found if head.kind == "encoder"]
    names = [name for name in heads[0].estimates if name in FUNCTIONS or name in MEASURES]
    cells = section.locator("td button").all_inner_texts()
    wanted = [head.estimates[name].mean * (1 if name in MEASURES else 100) for head in heads for name in names]
    np.testing.assert_allclose(list(map(float, cells)), wanted, rtol=0, atol=0.51)
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
    shown.soon(shown.locator("h2").first.inner_text, lambda text: text == "Encoder head 1·2")
    assert section.locator("tr.chosen th").inner_text() == "1·2"


def picture(shown: Shown, name: str) -> Locator:
    """The small picture of a head."""
    return shown.get_by_role("button", name=re.compile(f"^{name}:"))


def test_every_head_opens(visit_one: Visit) -> None:
    """Three kinds of two layers with four heads; a click shows the head, by pointer or by keys."""
    shown = visit_one("translator", view="sheet")
    assert shown.locator(".kinds canvas").count() == 3 * 2 * 4
    picture(shown, "decoder head 2·3").click()
    shown.settled()
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
