"""What a prediction rests on: gradient × input and head ablation, compared with passes of the model."""

import copy
import dataclasses
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.inspection.folders.models import Models
from regard.inspection.forward.outputs import scores
from regard.inspection.forward.record import ModelInputs, image_inputs, text_inputs
from regard.inspection.questions import attribution
from regard.inspection.questions.answers import answer
from regard.inspection.questions.attribution import attribute, explained_score, values_in_time
from regard.inspection.requests import AblationRequest
from regard.nn.hooks import intervene
from regard.system.errors import RegardError
from tests.inspection.payloads import Ask, TaskOf, check_same, unpack
from tests.refusals import refused
from tests.tasks.small_tasks import GAPPED, LABELS, PIXELS, SOURCE, TARGET, before, classifier, put, tagger, translator

GROWN = 1e-6
CASES = [
    ("translator", {"target": TARGET, "place": 3}, {"source": "encoder", "target": "decoder"}),
    ("recurrent", {"target": TARGET, "place": 2}, {"source": "encoder", "target": "decoder"}),
    ("spanner", {"target": "<extra_0> cat", "place": 1}, {"source": "encoder", "target": "decoder"}),
    ("speaker", {"place": 5}, {"source": "decoder"}),
    ("filler", {"place": 2}, {"source": "encoder"}),
    ("classifier", {"label": "bad"}, {"source": "encoder"}),
    ("tagger", {"place": 4, "label": "good"}, {"source": "encoder"}),
    ("viewer", {"label": "fair"}, {"source": "encoder"}),
]


def precise(task: Any, given: dict[str, Any]) -> ModelInputs:
    """What is asked for before a copy of the model in float64."""
    other = copy.copy(task)
    other.model = copy.deepcopy(task.model).double()
    if "image" not in given:
        return text_inputs(other, given["text"], given.get("target"))
    seen = image_inputs(task, np.array(given["image"]["pixels"]))
    (batch,) = task.batches(task.images([np.array(given["image"]["pixels"])]))
    batch = dataclasses.replace(batch, pixels_TP=batch.pixels_TP.double())
    return dataclasses.replace(seen, task=other, run=lambda: other.model.encoder(batch))


@torch.no_grad()
def slopes(stack: str, tokens: int, score: Callable[[], Tensor]) -> list[float]:
    """How fast a score grows with each token's embedding."""
    found, whole = [], score()
    for token in range(tokens):

        def larger(x_TD: Tensor, token: int = token) -> Tensor:
            return torch.cat([x_TD[:token], x_TD[token : token + 1] * (1 + GROWN), x_TD[token + 1 :]])

        with intervene(f"{stack}.input.embedding", larger):
            found.append(float(score() - whole) / GROWN)
    return found


@pytest.mark.one_of(9)
@pytest.mark.parametrize(("name", "given", "stacks"), CASES, ids=[name for name, _, _ in CASES])
@pytest.mark.parametrize("positions", [True, False])
def test_it_is_the_slope_of_the_score(
    ask: Ask, task: TaskOf, name: str, given: dict[str, Any], stacks: dict[str, str], positions: bool
) -> None:
    without = AblationRequest(positions=positions)
    seen = precise(task(name), {**before(name), **given})
    score = explained_score(seen, given.get("place"), given.get("label"))
    told, _, shares = attribute(seen, without, score, "gradient_x_input", 0)

    def again() -> Tensor:
        with without.ablations.apply(seen.task.recipe.model):
            return score(seen.run())

    assert sorted(shares) == sorted(stacks)
    for side, stack in stacks.items():
        np.testing.assert_allclose(shares[side], slopes(stack, len(shares[side]), again), rtol=1e-3, atol=1e-5)
        assert np.abs(shares[side]).max() > 0
    values, arrays = ask("owes", name, changes={"positions": positions}, **given)
    assert values["score"] == pytest.approx(told, rel=1e-3)
    for side, share in shares.items():
        np.testing.assert_allclose(arrays[side], share, rtol=1e-2, atol=1e-4)


def test_scores_of_pieces_and_labels_are_what_a_page_sees(ask: Ask) -> None:
    for name, target in (("translator", TARGET), ("recurrent", None), ("spanner", None), ("speaker", None)):
        seen, _ = ask("look", name, target=target)
        for place in (1, len(seen["written"]) - 1):
            score = ask("owes", name, target=target, place=place)[0]["score"]
            assert math.exp(score) == pytest.approx(seen["probability"][place], rel=1e-3)
    for name in ("classifier", "viewer"):
        output = ask("look", name)[0]["output"]
        for label, share in output["classes"]:
            assert math.exp(ask("owes", name, label=label)[0]["score"]) == pytest.approx(share, rel=1e-3)
        assert ask("owes", name)[0] == ask("owes", name, label=output["said"])[0]


def test_scores_of_gaps_are_those_of_what_fills_them(ask: Ask, task: TaskOf) -> None:
    seen, _ = ask("look", "filler")
    gaps = [place for place, token in enumerate(seen["source"]) if token["text"] == "[MASK]"]
    for place, candidates in zip(gaps, task("filler").fill(GAPPED), strict=True):
        score = ask("owes", "filler", place=place)[0]["score"]
        assert math.exp(score) == pytest.approx(candidates[0].probability, rel=1e-3)
    elsewhere = ask("owes", "filler", place=1)[0]["score"]
    every = {one["piece"]: one["probability"] for one in seen["said"][1]}
    piece = seen["source"][1]["text"]
    assert math.exp(elsewhere) <= max(every.values()) + 1e-6
    assert piece not in every or math.exp(elsewhere) == pytest.approx(every[piece], rel=1e-3)


@pytest.mark.one_of(2, minutes=0.05)
@pytest.mark.parametrize("crf", [False, True])
def test_scores_of_tags_are_their_probabilities(tmp_path: Path, crf: bool) -> None:
    task = tagger(crf)
    if crf:
        with torch.no_grad():
            task.model.head.chain.field.transition_CC += torch.randn(3, 3, generator=torch.Generator().manual_seed(1))
    models = Models([put(tmp_path, task)])
    found = models.load(0).task.tag(SOURCE)
    seen, _ = unpack(answer(models, "look", {"text": SOURCE}))

    def owes(**given: Any) -> float:
        return unpack(answer(models, "owes", {"text": SOURCE, **given}))[0]["score"]

    for word in range(0, len(found.places), 3):
        start, end = found.places[word]
        places = [n for n, token in enumerate(seen["source"]) if start < token["end"] <= end and not token["special"]]
        for place in (places[0], places[-1]):
            assert math.exp(owes(place=place)) == pytest.approx(found.probabilities[word], rel=1e-3)
            assert owes(place=place) == owes(place=place, label=found.tags[word])
    assert sum(math.exp(owes(place=5, label=label)) for label in LABELS) == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize("kind", ["multi", "regression"])
def test_several_labels_and_numbers(tmp_path: Path, kind: str) -> None:
    """A number is no logarithm."""
    models = Models([put(tmp_path, classifier(kind))])

    def asked(question: str, *off: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return unpack(answer(models, question, {"text": SOURCE, "changes": {"off": off}}))

    first = asked("look")[0]["output"]

    def wanted(*off: Any) -> float:
        output = asked("look", *off)[0]["output"]
        return output["said"] if kind == "regression" else math.log(dict(output["classes"])[first["classes"][0][0]])

    assert asked("owes")[0]["score"] == pytest.approx(wanted(), rel=1e-3)
    values, arrays = asked("needs")
    assert values["logarithm"] == (kind != "regression")
    np.testing.assert_allclose(arrays["without"], [wanted(head) for head in values["heads"]], rtol=1e-3)


def test_the_model_is_left_as_it_was(ask: Ask, task: TaskOf) -> None:
    ask("owes", "viewer", image={"pixels": PIXELS})
    assert not any(weight.requires_grad or weight.grad is not None for weight in task("viewer").model.parameters())
    seen, _ = ask("look", "translator", target=TARGET)
    ask("needs", "translator", target=TARGET, places=[3])
    assert ask("look", "translator", target=TARGET)[0] == seen


def every(kinds: dict[str, Any]) -> list[list[Any]]:
    order = ((kind, kinds[kind]) for kind in ("encoder", "decoder", "cross") if kind in kinds)
    return [[kind, n + 1, m + 1] for kind, one in order for n, m in np.ndindex(one["layers"], one["heads"])]


def few(heads: list[Any]) -> slice:
    """Which heads are switched off one by one: all of six, and six of 24, of every kind and number."""
    return slice(None, None, 1 + len(heads) // 8)


FORCED: list[tuple[str, dict[str, Any]]] = [
    ("translator", {"target": TARGET, "places": [3]}),
    ("translator", {"target": TARGET, "places": [2, 3, 4]}),
    ("recurrent", {"target": TARGET, "places": [2]}),
    ("spanner", {"places": [0]}),
    ("speaker", {"places": [4]}),
    ("tagger", {"places": [4]}),
    *[(name, given) for name in ("classifier", "viewer") for given in ({}, {"label": "fair"})],
]


@pytest.mark.one_of(6)
@pytest.mark.parametrize(("name", "given"), FORCED)
def test_it_is_what_passes_without_each_head_give(ask: Ask, name: str, given: dict[str, Any]) -> None:
    """Forced: what all heads write or say stays what is meant, also where without a head it would be something else."""
    seen, _ = ask("look", name, target=given.get("target"))
    forced = {"branch": seen["branch"]} if name == "spanner" else {"target": given.get("target")}
    output = seen["output"] or {}
    label, end = given.get("label", output.get("said")), seen["source"][4]["end"] if seen["source"] else 0
    tag = next((one["tag"] for one in output.get("tags", ()) if one["start"] < end <= one["end"]), None)

    def probability(*off: Any) -> float:
        if name == "tagger":
            return math.exp(ask("owes", name, place=4, label=tag, changes={"off": off})[0]["score"])
        again, _ = ask("look", name, **forced, changes={"off": off})
        if "places" in given:
            return math.prod(again["probability"][place] for place in given["places"])
        return dict(again["output"]["classes"])[label]

    heads = every(seen["kinds"])
    some = few(heads)
    wanted = [probability(), *map(probability, heads[some])]
    values, arrays = ask("needs", name, **given)
    assert (values["heads"], values["total"], values["logarithm"]) == (heads, len(heads), True)
    np.testing.assert_allclose(np.exp([values["score"], *arrays["without"][some]]), wanted, rtol=1e-3)
    assert np.abs(arrays["without"] - values["score"]).max() > 1e-4


def test_a_tag_is_one_score_of_however_many_tokens(ask: Ask) -> None:
    text = "The xylophonist was tired."
    there = ask("look", "tagger", text=text)[0]["source"]
    word = [place for place, token in enumerate(there) if 3 < token["end"] <= len("The xylophonist")]
    assert len(word) > 1
    every = (word, word[:1], [1], [*word, 1, *word])
    one, first, other, both = (ask("needs", "tagger", text=text, places=places) for places in every)
    check_same(one, first)
    assert both[0]["score"] == pytest.approx(one[0]["score"] + other[0]["score"])
    np.testing.assert_allclose(both[1]["without"], one[1]["without"] + other[1]["without"], rtol=1e-5)


def test_a_token_counts_once_and_its_own_writing_is_that_with_all_heads(ask: Ask) -> None:
    check_same(*(ask("needs", "translator", target=TARGET, places=places) for places in ([3], [3, 3])))
    branch = ask("look", "translator")[0]["branch"]
    check_same(*(ask("needs", "translator", places=[0], **given) for given in ({}, {"branch": branch})))


def test_of_a_gap(ask: Ask, task: TaskOf) -> None:
    """The word that fills it with all heads stays what is meant."""
    filler, seen = task("filler"), text_inputs(task("filler"), GAPPED)
    gap = next(place for place, token in enumerate(seen.source) if token.text == "[MASK]")

    def logarithm_V(*off: Any) -> np.ndarray:
        with AblationRequest(tuple(map(tuple, off))).ablations.apply(filler.recipe.model):
            score_V = scores(seen)[gap].double().cpu().numpy()
        return score_V - np.log(np.exp(score_V - score_V.max()).sum()) - score_V.max()

    ordinary = filler.assets.tokenizer.ordinary
    word = ordinary[logarithm_V()[ordinary].argmax()]
    values, arrays = ask("needs", "filler", places=[gap])
    assert values["score"] == pytest.approx(logarithm_V()[word], rel=1e-3)
    left = [logarithm_V(head) for head in values["heads"]]
    np.testing.assert_allclose(arrays["without"], [one[word] for one in left], rtol=1e-3)
    assert np.abs(arrays["without"] - values["score"]).max() > 1e-4


def test_other_changes_are_kept(ask: Ask) -> None:
    changes = {"off": [["cross", 1, 1]], "positions": False}
    seen, _ = ask("look", "translator", target=TARGET, changes=changes)
    values, arrays = ask("needs", "translator", target=TARGET, places=[3], changes=changes)
    assert math.exp(values["score"]) == pytest.approx(seen["probability"][3], rel=1e-3)
    some = few(values["heads"])
    less = [{**changes, "off": [*changes["off"], head]} for head in values["heads"][some]]
    left = [ask("look", "translator", target=TARGET, changes=one)[0]["probability"][3] for one in less]
    np.testing.assert_allclose(np.exp(arrays["without"][some]), left, rtol=1e-3)


def test_an_answer_takes_so_long_and_another_goes_on(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, arrays = ask("needs", "translator", target=TARGET, places=[3])
    monkeypatch.setattr(attribution, "SECONDS", 0.0)
    heads, without = [], []
    while len(heads) < whole["total"]:
        some, more = ask("needs", "translator", target=TARGET, places=[3], begin=len(heads))
        assert len(some["heads"]) == 1
        heads, without = heads + some["heads"], without + more["without"].tolist()
    assert heads == whole["heads"]
    np.testing.assert_allclose(without, arrays["without"], rtol=1e-6)
    assert not ask("needs", "translator", places=[0], begin=whole["total"])[0]["heads"]


def test_the_time_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that only a value moves on."""
    clock = [0.0]

    def ticking(count: int) -> Iterator[float]:
        for number in range(count):
            clock[0] += 1
            yield float(number)

    monkeypatch.setattr(attribution.time, "monotonic", lambda: clock[0])
    for count, seconds, wanted in ((1, 0.0, 1), (9, 0.0, 2), (9, 3.5, 4), (3, 1000.0, 3)):
        assert values_in_time(ticking(count), seconds) == list(range(wanted))
    assert values_in_time(ticking(9), 3.5, first=3, each=2) == [0, 1, 2, 3, 4]


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("question", "place"), [("needs", {"places": [0]}), ("owes", {"place": 0})])
@pytest.mark.parametrize("make", [translator, classifier])
def test_numbers_that_are_none_are_said(tmp_path: Path, question: str, place: dict[str, Any], make: Any) -> None:
    task = make()
    for weight in task.model.parameters():
        weight.data.fill_(1e38)  # weights that are no numbers are refused, and these make some
    models = Models([put(tmp_path, task)])
    with refused(RegardError, "model"):
        answer(models, question, {"text": SOURCE, **({"target": TARGET, **place} if make is translator else {})})
