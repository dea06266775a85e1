"""Ablations on the page are applied to the model: its output equals Python's."""

import math
from collections.abc import Callable
from functools import partial
from operator import eq
from typing import Any

import numpy as np
import pytest

from regard.inspection.forward.inputs import image_inputs, text_inputs
from regard.inspection.forward.outputs import beam_search, prepare_search, scores
from regard.inspection.forward.passes import probabilities
from regard.inspection.forward.record import record
from regard.inspection.questions.attribution import explained_score
from regard.models.ablation import Ablations, Head
from regard.models.captured_attention import gradient_times_input
from tests.inspection.forward.ranked import top_candidates
from tests.page.language import digits
from tests.page.numbers import apart, chance, clean, like, number
from tests.page.reading import BEFORE, ONE, against, chosen, flipped, holds, opened, settled, soon
from tests.page.view import Watch

IMAGE = 3
WRITERS = ("translator", "recurrent", "writer", "spans")


def makes(task: Any, changes: Ablations) -> str:
    """What a model makes of its text or image while it does without something."""
    with changes.apply(task.recipe.model):
        if task.name == "image-classification":
            return str(task.classify(digits("test")[0][IMAGE]).label)
        text = BEFORE[
            {"masked-lm": "words", "text-to-text": "spans", "language-model": "writer"}.get(task.name, "tagger")
        ]
        if task.name == "translation":
            return str(task.translate(text, beam=1))
        if task.name == "text-to-text":
            return str(task.ask(text, beam=1))
        if task.name == "classification":
            return str(task.classify(text).label)
        if task.name == "masked-lm":
            return str(task.fill(text)[0][0].text)
        if task.name == "language-model":
            return makes_of(task, text)
        found = task.tag(text)
    return (
        " · ".join(f"{word} {tag}" for word, tag in zip(found.words, found.tags, strict=True) if tag != "O")
        or "no tags"
    )


def goes_on(task: Any, text: str) -> list[int]:
    """What a language model goes on with, without the mark at its end."""
    (ids,) = (one.tokens for one in beam_search(prepare_search(task, text, 40), 1))
    return [id for id in ids if id != task.symbols.end]


def makes_of(task: Any, text: str) -> str:
    """How the page shows what a language model goes on with."""
    return f"… {task.assets.tokenizer.decode(goes_on(task, text)).strip() or '(ends here)'}"


def plain(text: str) -> str:
    """As it is seen: without spaces at its ends."""
    return " ".join(text.split())


def becomes(before: str, now: str, name: str) -> str:
    """How the page says it; of what is written it says how."""
    before, now = plain(before), plain(now)
    what = f"the output{', written greedily,' * (name in WRITERS)}"
    return f"{what} stays the same: {now}" if before == now else f"{what} changes: {before} becomes {now}"


def without(changes: Ablations) -> str:
    """What is taken away, as the page calls it."""
    uses = {"cross": "encoder–decoder", "pool": "pooling"}
    there = {"positions": changes.positions, "scaling": changes.scaling, "the mask": changes.mask}
    heads = [f"{uses.get(one.kind, one.kind)} head {one.layer}·{one.head}" for one in changes.off]
    return ", ".join([*heads, *(name for name, is_there in there.items() if not is_there)])


TAKEN = [
    ("recurrent", {"off": "cross.1.1"}, Ablations((Head("cross", 1, 1),))),
    ("classifier", {"off": "encoder.1.2 encoder.2.3"}, Ablations((Head("encoder", 1, 2), Head("encoder", 2, 3)))),
    ("reader", {"off": "pool.1.1"}, Ablations((Head("pool", 1, 1),))),
    ("classifier", {"without": "scaling"}, Ablations(scaling=False)),
    ("tagger", {"without": "positions"}, Ablations(positions=False)),
    ("words", {"without": "positions scaling"}, Ablations(positions=False, scaling=False)),
    (
        "writer",
        {"off": "decoder.1.1 decoder.1.2", "without": "mask"},
        Ablations((Head("decoder", 1, 1), Head("decoder", 1, 2)), mask=False),
    ),
    ("spans", {"without": "positions"}, Ablations(positions=False)),
    ("digits", {"without": "positions", "image": IMAGE}, Ablations(positions=False)),
]


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize(
    ("name", "given", "changes"),
    TAKEN,
    ids=[f"{n}-{'-'.join(g.values() if 'image' not in g else ['positions'])}" for n, g, _ in TAKEN],
)
def test_what_comes_of_it(
    served: str, view: Watch, task: Callable[[str], Any], name: str, given: dict[str, Any], changes: Ablations
) -> None:
    shown = opened(view, served, name, **given)
    said = shown.locator(".changed").get_by_role("status").inner_text()
    before, now = makes(task(name), Ablations()), makes(task(name), changes)
    assert plain(said) == f"Without {without(changes)}: {becomes(before, now, name)}"


@pytest.mark.long(minutes=0.2)
def test_heads_switched_off_one_after_another(served: str, view: Watch, task: Callable[[str], Any]) -> None:
    """The output changes with them, and so do the heads above; at the end all is as it was."""
    shown, model, off = opened(view, served, "translator", kind="cross", layer=1, head=1), task("translator"), []
    before = makes(model, Ablations())
    status = shown.locator(".changed").get_by_role("status")
    for head in (1, 2, 3, 4):
        shown.get_by_role("button", name=f"layer 1 head {head}:").click()
        flipped(shown, f"head 1·{head}")
        off.append(Head("cross", 1, head))
        now = makes(model, Ablations(tuple(off)))
        wanted = f"Without {without(Ablations(tuple(off)))}: {becomes(before, now, 'translator')}"
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
@pytest.mark.parametrize(("name", "row"), [("translator", 2), ("recurrent", 0), ("spans", 1), ("writer", 1)])
def test_the_same_output_before_and_after(
    served: str, view: Watch, task: Callable[[str], Any], name: str, row: int
) -> None:
    """What was written with all heads, forced upon the model without one: the kept token, then the most changed."""
    use = "decoder" if name == "writer" else "cross"
    shown = opened(view, served, name, kind=use, layer=1, head=1, token=row, off=f"{use}.1.1")
    model = task(name)
    more = goes_on(model, BEFORE[name]) if name == "writer" else None
    seen = text_inputs(model, BEFORE[name], more)
    begins = 0 if more is None else len(seen.written) - len(more)
    row += name == "writer"  # it looks where the next is written
    before = probabilities(seen, scores(seen))
    with Ablations((Head(use, 1, 1),)).apply(model.recipe.model):
        after = probabilities(seen, scores(seen))
        best = top_candidates(seen, 1)
    assert before is not None
    assert after is not None
    there = [place for place, share in enumerate(before) if share is not None and (place == row or place >= begins)]
    by = {place: abs(before[place] - after[place]) for place in there}
    shift = sorted((place for place in there if place != row and by[place] > 0.0051), key=lambda place: -by[place])
    items = [plain(text) for text in shown.locator(".moved li").all_inner_texts()]
    for place, item in zip([row, *shift][:4], items, strict=False):
        name_of = clean(seen.written[place].text)
        assert item.lstrip("·").startswith(f"{name_of} "), items
        assert any(f" {a} → {b}" in item for a, b in apart(chance, before[place], after[place])), item
        (rather,) = best[place - (name == "writer")]
        if rather.piece != seen.written[place].text:
            assert any(item.endswith(f"{clean(rather.piece)} {one}") for one in like(chance, rather.probability)), item


@pytest.mark.long(minutes=0.1)
def test_a_label_before_and_after(served: str, view: Watch, task: Callable[[str], Any]) -> None:
    shown, model = opened(view, served, "classifier", without="positions"), task("classifier")
    before = model.classify(BEFORE["classifier"])
    with Ablations(positions=False).apply(model.recipe.model):
        after = model.classify(BEFORE["classifier"])
    first = plain(shown.locator(".moved li").first.inner_text())
    shares = apart(chance, before.probabilities[before.label], after.probabilities[before.label])
    assert first in {f"{before.label} {a} → {b}" for a, b in shares}


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("name", ["translator", "classifier", "spans", "writer"])
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
        for changes in (Ablations(), Ablations(positions=False)):
            with changes.apply(task(name).recipe.model):
                model = task(name)
                made = str(model.classify(text).label) if name == "classifier" else record(model, text).target_text
                made = makes_of(model, text) if name == "writer" else made
                wanted.append(plain(made))
    assert outputs == wanted
    if name != "writer":
        return
    ids, logs = goes_on(task(name), texts[0]), []
    for text in texts:
        for changes in (Ablations(), Ablations(positions=False)):
            with changes.apply(task(name).recipe.model):
                seen = text_inputs(task(name), text, ids)
                shares = probabilities(seen, scores(seen)) or []
            logs.append(math.fsum(math.log(share or 1) for share in shares[-len(ids) :]))
    amounts = [plain(text) for text in shown.locator(".orders .said b").all_inner_texts()]
    for column in (0, 1):
        one, other = (math.exp(log) for log in logs[column::2])
        assert min(one, other) > 1e-5
        assert tuple(amounts[column::2]) in apart(chance, one, other)


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("translator", 4),
        ("recurrent", 1),
        ("words", 8),
        ("classifier", None),
        ("reader", None),
        ("tagger", 2),
        ("digits", None),
    ],
)
def test_the_gradient(served: str, view: Watch, task: Callable[[str], Any], name: str, place: int | None) -> None:
    """Gradient times input of every token, for what was written there or the label that is said."""
    more = {"image": IMAGE} if name == "digits" else {}
    shown = opened(view, served, name, view="compare", **more)
    chosen(shown, "What is compared", "beside the gradient")
    if place is not None:
        shown.get_by_role("group", name="Tokens to be explained").get_by_role("button").nth(place).click()
    shown.locator("p.seen").wait_for()
    against(shown)
    model = task(name)
    seen = image_inputs(model, digits("test")[0][IMAGE]) if name == "digits" else text_inputs(model, BEFORE[name])
    score = explained_score(seen, place, None)
    share_T = gradient_times_input(model.model, "encoder", lambda: score(seen.run())).tolist()
    whole = float(score(seen.run()))
    other = -math.expm1(whole)  # all else: what is shown is added to the odds

    def check() -> None:
        tokens = shown.get_by_role("group", name="Tokens", exact=True).get_by_role("img")
        labels = [one.get_attribute("aria-label") or "" for one in tokens.all()]
        assert len(labels) == len(share_T)
        for label, share in zip(labels, share_T, strict=True):
            assert label.rsplit(" ", 1)[1] in like(lambda value: number(value, 2), share / other)
        said = shown.get_by_text("log-odds").last.inner_text().rsplit(" ", 1)[1]
        assert said.removesuffix(".") in like(number, whole - math.log(other))

    holds(shown, check)


@pytest.mark.long(minutes=0.1)
@pytest.mark.parametrize("mask", [True, False])
def test_the_gradient_of_what_is_written(served: str, view: Watch, task: Callable[[str], Any], mask: bool) -> None:
    """Tokens before the one that is written; without the mask all, for it sees them too."""
    more = {} if mask else {"without": "mask"}
    shown, model, place = opened(view, served, "translator", view="compare", **more), task("translator"), 4
    chosen(shown, "What is compared", "beside the gradient")
    shown.get_by_role("group", name="Tokens to be explained").get_by_role("button").nth(place).click()
    against(shown)
    settled(shown)
    with Ablations(mask=mask).apply(model.recipe.model):
        seen = text_inputs(model, BEFORE["translator"])
        score = explained_score(seen, place, None)
        share_T = gradient_times_input(model.model, "decoder", lambda: score(seen.run())).tolist()
        other = -math.expm1(float(score(seen.run())))
    tokens = shown.get_by_role("group", name="Tokens that are written").get_by_role("img")
    labels = soon(
        shown,
        lambda: [one.get_attribute("aria-label") or "" for one in tokens.all()],
        lambda labels: len(labels) == (place + 1 if mask else len(seen.target)),
    )
    for label, share in zip(labels, share_T, strict=False):
        assert label.rsplit(" ", 1)[1] in like(lambda value: number(value, 2), share / other)


@pytest.mark.long(minutes=0.1)
def test_without_the_mask_the_numbers_are_of_the_whole_line(served: str, view: Watch) -> None:
    shown = opened(view, served, "translator", without="mask")
    assert shown.get_by_text("the probabilities below are of the whole line read at once").count() == 1
    other = opened(view, served, "translator", without="scaling")
    assert other.get_by_text("the whole line read at once").count() == 0
