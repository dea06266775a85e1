"""Two heads side by side: distances equal Python's, across sentences, checkpoints and models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from regard.inspection.folders.models import Models
from regard.inspection.forward.outputs import scores
from regard.inspection.forward.passes import probabilities
from regard.inspection.forward.record import record, text_inputs
from regard.inspection.questions.attribution import affordable_passes, attribute, difference, pieces_score
from regard.inspection.requests import UNCHANGED
from regard.models.ablation import Ablations
from tests.inspection.forward.small_scenes import top_candidates
from tests.page.language import pairs
from tests.page.models import made
from tests.page.numbers import check_looks, clean, shows
from tests.page.reading import BEFORE, ONE, TaskOf, Visit, names_of
from tests.page.view import Shown

if TYPE_CHECKING:
    from playwright.sync_api import Request

pytestmark = pytest.mark.long(minutes=0.1)


def apart(first_QK: NDArray[Any], second_QK: NDArray[Any]) -> float:
    """The mean over the rows of half of what differs."""
    return float(np.abs(first_QK - second_QK).sum(axis=1).mean() / 2)


def check_distance(shown: Shown, first_QK: NDArray[Any], second_QK: NDArray[Any]) -> None:
    """The number on the page, as soon as it is there."""
    told, wanted = shown.get_by_text("How far apart:"), apart(first_QK, second_QK)
    shown.soon(told.all_inner_texts, lambda said: [shows(one.split()[3], wanted) for one in said] == [True])


def test_two_sentences(visit: Visit, task: TaskOf) -> None:
    """Each has its own picture; of the same tokens there is a difference, which is none for the same sentence."""
    other = pairs("test")[9].source
    shown = visit("classifier", view="compare", layer=1, head=3)
    typed = shown.get_by_role("textbox", name="The second")
    for text in (other, ONE.source):
        typed.fill(text)
        second = shown.get_by_role("region", name="The second")
        told = record(task("classifier"), text)
        tokens = names_of(told.source)
        keys = second.locator("ol.keys .token")
        shown.soon(keys.all_inner_texts, lambda texts, tokens=tokens: [one.lstrip("·") for one in texts] == tokens)
        shown.point(4, second)
        check_looks(shown.gaze(second), tokens[4], tokens, told.head("encoder", 1, 3)[4])
        assert shown.get_by_text("How far apart:").count() == (text == ONE.source)
        assert shown.get_by_text("that stand in both").count() == (text != ONE.source)
        assert shown.get_by_role("region", name="The difference").locator("canvas").count() == 1
    weight_QK = record(task("classifier"), ONE.source).head("encoder", 1, 3)
    check_distance(shown, weight_QK, weight_QK)


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize(("name", "kind", "layer", "head"), [("translator", "cross", 2, 2), ("words", "encoder", 1, 4)])
def test_two_checkpoints(
    visit: Visit, task: TaskOf, page_models: Path, name: str, kind: Any, layer: int, head: int
) -> None:
    """How a head learned: every kept moment against the finished weights, all before what those write."""
    shown = visit(name, view="compare", kind=kind, layer=layer, head=head)
    shown.choose("What is compared", "while it learned")
    models = Models([made(name, page_models)])
    finished = record(task(name), BEFORE[name])
    target = finished.target_text if name == "translator" else None

    def at(snapshot: str) -> NDArray[Any]:
        return record(models.load(0, snapshot).task, BEFORE[name], target).head(kind, layer, head)

    many = shown.get_by_role("group", name="The head at every kept moment").get_by_role("button")
    texts = shown.soon(many.all_inner_texts, lambda texts: len(texts) > 3 and "…" not in "".join(texts))
    (first, _), *kept = (text.split("\n") for text in texts[:-1])
    check_distance(shown, finished.head(kind, layer, head), at(first))
    for snapshot, told in kept:
        assert shows(told.removesuffix(" apart"), apart(finished.head(kind, layer, head), at(snapshot)))
    many.nth(2).click()
    check_distance(shown, finished.head(kind, layer, head), at(kept[1][0]))


def test_two_models(visit: Visit, task: TaskOf) -> None:
    """A Transformer's head beside the alignment of a recurrent network, which is made to write the same."""
    shown = visit("translator", view="compare", kind="cross", layer=2, head=3)
    shown.choose("What is compared", "two models")
    second = shown.get_by_role("combobox", name="The second model").locator("option:checked")
    assert second.inner_text().startswith("recurrent")
    shown.flip("the second is made to write what the first wrote")
    first = record(task("translator"), ONE.source)
    other = record(task("recurrent"), ONE.source, first.target_text)
    check_distance(shown, first.head("cross", 2, 3), other.head("cross", 1, 1))


def test_with_and_without(visit: Visit, task: TaskOf) -> None:
    """Without positions; then a head of the layer below is switched off as well."""
    shown = visit("tagger", view="compare", layer=2, head=4)
    shown.choose("What is compared", "with and without")
    model, whole = task("tagger"), record(task("tagger"), ONE.source).head("encoder", 2, 4)
    with Ablations(positions=False).apply(model.recipe.model):
        check_distance(shown, whole, record(model, ONE.source).head("encoder", 2, 4))
    shown.flip("scaling")
    with Ablations(positions=False, scaling=False).apply(model.recipe.model):
        check_distance(shown, whole, record(model, ONE.source).head("encoder", 2, 4))


def test_a_kept_word_is_kept_in_the_second_sentence(visit: Visit) -> None:
    """The same word, wherever it stands there."""
    shown = visit("translator", view="compare", kind="encoder", layer=1, head=1, token=1)
    first, second = (shown.get_by_role("region", name=f"The {which}") for which in ("first", "second"))
    word = ONE.source.split()[1]
    shown.soon(lambda: shown.gaze(first).split(" ", 1)[0], lambda said: said == word)
    for text in (f"Here the {word} sleeps.", f"The {word} sleeps."):
        shown.get_by_role("textbox", name="The second").fill(text)
        keys = second.locator("ol.keys .token")
        shown.soon(keys.count, lambda count, text=text: 0 < count < len(text))
        shown.soon(lambda: shown.gaze(second), lambda said: said.startswith(f"{word} looks at "))


def test_the_gradient_of_what_is_almost_certain(visit: Visit, task: TaskOf) -> None:
    """It is of the odds, so it is not blank where the model is sure; attention is said to be of what is read."""
    shown, seen = visit("translator", view="compare"), text_inputs(task("translator"), ONE.source)
    shown.choose("What is compared", "beside the gradient")
    shares = probabilities(seen, scores(seen))
    assert shares is not None
    places = [place for place, share in enumerate(shares) if share is not None]
    told = shown.locator("p.seen")
    colours = shown.get_by_role("group", name="Tokens", exact=True).locator("[role=img] > :last-child")
    for place in (max(places, key=lambda one: shares[one] or 0), min(places, key=lambda one: shares[one] or 1)):
        shown.get_by_role("group", name="Tokens to be explained").get_by_role("button").nth(place).click()
        begins = f"For writing “{clean(seen.written[place].text)}” rather than “"
        said = shown.soon(told.inner_text, lambda text, begins=begins: text.replace("·", "").startswith(begins))
        assert " attention gives most of what it reads to “" in said
        assert "by integrated gradients “" in said or "speaks most for “" in said, said
        shown.drawn()
        assert len(set(colours.evaluate_all("all => all.map(one => one.style.background)"))) > 3


@pytest.mark.long(minutes=0.2)
def test_one_output_rather_than_another(visit: Visit, task: TaskOf) -> None:
    """Of two candidates for one place, at first the most probable others, by both methods; the numbers are Python's."""
    model = task("translator")
    seen = text_inputs(model, ONE.source)
    place = [clean(token.text) for token in seen.written].index("weil") + 1
    ranked = top_candidates(text_inputs(model, ONE.source))[place]  # by a pass of its own, which leaves no gradients
    candidates = [one for one in ranked if one.id != seen.written_ids[place]]
    shown = visit("translator", view="compare", kind="cross", token=place)
    shown.choose("What is compared", "beside the gradient")
    choices = shown.get_by_role("combobox", name="rather than")
    names = choices.locator("option").all_inner_texts()
    assert [name.removeprefix("·") for name in names] == [*(clean(one.piece) for one in candidates), "anything else"]
    score = difference(pieces_score(seen, [place]), pieces_score(seen, [place], [candidates[1].id]))
    choices.select_option(label=names[1])
    for method, word in (("gradient × input", "gradient_x_input"), ("integrated gradients", "integrated_gradients")):
        whole, _, shares = attribute(seen, UNCHANGED, score, word, affordable_passes(seen))
        shown.choose("How it is attributed", method)
        told = shown.soon(
            shown.get_by_text("The log-odds of the two are").inner_text,
            lambda text, method=method: f"rust for “{names[1]}”" in text and method in text.lower(),
        )
        assert shows(told.partition("of the two are ")[2].split(" ")[0].removesuffix("."), whole)
        sides = {"Tokens": shares["source"], "Tokens that are written": shares["target"][: place + 1]}
        for group, share_T in sides.items():
            images = shown.get_by_role("group", name=group, exact=True).get_by_role("img")
            for image, share in zip(images.all(), share_T.tolist(), strict=True):
                assert shows((image.get_attribute("aria-label") or "").rsplit(" ", 1)[1], share)


def test_both_outputs_are_as_large(visit: Visit) -> None:
    """Though the second is made to write what the first wrote."""
    shown = visit("translator", view="compare", **{"model.2": 0, "off.2": "cross.1.1"})
    shown.choose("What is compared", "two models")
    shown.get_by_role("switch", name="made to write what the first wrote").click()
    sizes = "all => all.map(one => getComputedStyle(one).fontSize)"
    outputs = shown.locator(".two .written")
    shown.soon(outputs.count, lambda count: count == 2)
    shown.settled()
    first, second = outputs.evaluate_all(sizes)
    assert first == second


def test_the_moment_that_is_seen_comes_early(visit: Visit) -> None:
    """Of all kept moments the end is asked for first, as all are compared with it, then the one that is chosen."""
    shown, asked = visit("translator", view="compare"), list[object]()

    def heard(request: Request) -> None:
        if request.url.endswith("/api/head"):
            asked.append(request.post_data_json["snapshot"])

    shown.on("request", heard)
    shown.choose("What is compared", "while it learned")
    lit = shown.locator(".many button[aria-pressed=true] .label").first
    shown.soon(lambda: len(asked), lambda count: count > 3)
    assert asked[0] is None
    assert asked[1] == lit.inner_text()
