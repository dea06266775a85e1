"""Head ablation, compared with a plain loop that switches off one head at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.explore.folders.models import Models
from regard.explore.forward.inputs import text_inputs
from regard.explore.forward.outputs import scores
from regard.explore.questions import attribution
from regard.explore.questions.answers import answer
from regard.explore.questions.attribution import values_in_time
from regard.explore.requests import AblationRequest
from regard.system.errors import RegardError, UsageError
from tests.explore.payloads import unpack
from tests.refusals import refused
from tests.tasks.small_tasks import GAPPED, SOURCE, TARGET, classifier, put, translator

Ask = Callable[..., tuple[dict[str, Any], dict[str, np.ndarray]]]


def every(kinds: dict[str, Any]) -> list[list[Any]]:
    return [
        [kind, layer, head]
        for kind in ("encoder", "decoder", "cross")
        if kind in kinds
        for layer in range(1, kinds[kind]["layers"] + 1)
        for head in range(1, kinds[kind]["heads"] + 1)
    ]


def by_loop(ask: Ask, name: str, read: Callable[[dict[str, Any]], float], **given: Any) -> list[float]:
    """What is read from a look with all heads, then from one without each."""
    seen, _ = ask("look", name, **given)
    heads = every(seen["kinds"])
    return [read(seen)] + [read(ask("look", name, **given, changes={"off": [head]})[0]) for head in heads]


@pytest.mark.parametrize(
    ("name", "places"), [("translator", [3]), ("translator", [2, 3, 4]), ("recurrent", [2]), ("spanner", [0])]
)
def test_of_what_is_written(ask: Ask, name: str, places: list[int]) -> None:
    """Forced: without a head the model would write something else, of which nothing is said here."""
    target = None if name == "spanner" else TARGET
    seen, _ = ask("look", name, target=target)
    wanted = by_loop(
        ask,
        name,
        lambda seen: math.prod(seen["probability"][place] for place in places),
        **({"branch": seen["branch"]} if target is None else {"target": target}),
    )
    values, arrays = ask("needs", name, target=target, places=places)
    assert values["heads"] == every(seen["kinds"])
    assert (values["total"], values["logarithm"]) == (len(wanted) - 1, True)
    np.testing.assert_allclose(np.exp([values["score"], *arrays["without"]]), wanted, rtol=1e-3)
    assert np.abs(arrays["without"] - values["score"]).max() > 1e-4


def test_of_what_is_read_by_a_language_model(ask: Ask) -> None:
    wanted = by_loop(ask, "speaker", lambda seen: seen["probability"][4])
    values, arrays = ask("needs", "speaker", places=[4])
    np.testing.assert_allclose(np.exp([values["score"], *arrays["without"]]), wanted, rtol=1e-3)


@pytest.mark.parametrize("name", ["classifier", "viewer"])
@pytest.mark.parametrize("label", ["fair", None])
def test_of_a_label(ask: Ask, name: str, label: str | None) -> None:
    """The one that is said with all heads, if none is named: also where without a head another would be said."""
    meant = label or ask("look", name)[0]["output"]["said"]
    wanted = by_loop(ask, name, lambda seen: dict(seen["output"]["classes"])[meant])
    values, arrays = ask("needs", name, label=label)
    np.testing.assert_allclose(np.exp([values["score"], *arrays["without"]]), wanted, rtol=1e-3)


def test_of_a_tag(ask: Ask) -> None:
    """What is most probable with all heads stays what is meant."""
    values, arrays = ask("needs", "tagger", places=[4])
    label = tag_at(ask, 4)
    off = [ask("owes", "tagger", place=4, label=label, changes={"off": [head]})[0] for head in values["heads"]]
    assert values["score"] == pytest.approx(ask("owes", "tagger", place=4)[0]["score"], rel=1e-3)
    np.testing.assert_allclose(arrays["without"], [one["score"] for one in off], rtol=1e-3)


def test_a_tag_is_one_score_of_however_many_tokens(ask: Ask) -> None:
    text = "The xylophonist was tired."
    there = ask("look", "tagger", text=text)[0]["source"]
    word = [place for place, token in enumerate(there) if 3 < token["end"] <= len("The xylophonist")]
    assert len(word) > 1
    every = (word, word[:1], [1], [*word, 1, *word])
    one, first, other, both = (ask("needs", "tagger", text=text, places=places) for places in every)
    assert one[0] == first[0]
    np.testing.assert_array_equal(one[1]["without"], first[1]["without"])
    assert both[0]["score"] == pytest.approx(one[0]["score"] + other[0]["score"])
    np.testing.assert_allclose(both[1]["without"], one[1]["without"] + other[1]["without"], rtol=1e-5)


def test_a_token_counts_once(ask: Ask) -> None:
    once, twice = (ask("needs", "translator", target=TARGET, places=places) for places in ([3], [3, 3]))
    assert once[0] == twice[0]
    np.testing.assert_array_equal(once[1]["without"], twice[1]["without"])


def tag_at(ask: Ask, place: int) -> str:
    """The tag of the word that a token is part of."""
    seen, _ = ask("look", "tagger")
    end = seen["source"][place]["end"]
    return next(one["tag"] for one in seen["output"]["tags"] if one["start"] < end <= one["end"])


def test_of_a_gap(ask: Ask, task: Callable[[str], Any]) -> None:
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
    for head, found in zip(values["heads"], arrays["without"], strict=True):
        less = {**changes, "off": [*changes["off"], head]}
        left = ask("look", "translator", target=TARGET, changes=less)[0]["probability"][3]
        assert math.exp(found) == pytest.approx(left, rel=1e-3)


def test_its_own_writing_is_that_with_all_heads(ask: Ask) -> None:
    branch = ask("look", "translator")[0]["branch"]
    own, forced = (ask("needs", "translator", places=[0], **given) for given in ({}, {"branch": branch}))
    assert own[0] == forced[0]
    np.testing.assert_array_equal(own[1]["without"], forced[1]["without"])


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


def test_the_time_is_kept(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that only a pass moves on."""
    clock, original = [0.0], attribution.read_ablated

    def slow(*given: Any) -> float:
        clock[0] += 0.5
        return original(*given)

    def ticking(count: int) -> Iterator[float]:
        for number in range(count):
            clock[0] += 1
            yield float(number)

    monkeypatch.setattr(attribution.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(attribution, "read_ablated", slow)
    monkeypatch.setattr(attribution, "SECONDS", 2.0)
    assert values_in_time(ticking(1), 0.0) == [0]
    assert values_in_time(ticking(9), 0.0) == [0, 1]
    assert values_in_time(ticking(9), 3.5) == [0, 1, 2, 3]
    assert values_in_time(ticking(3), 1000.0) == [0, 1, 2]
    values, _ = ask("needs", "translator", target=TARGET, places=[3])
    assert len(values["heads"]) == 3  # with all heads and without each of three: two seconds
    assert values["total"] == 24


@pytest.mark.parametrize(("make", "given"), [(translator, {"places": [0], "target": TARGET}), (classifier, {})])
@pytest.mark.parametrize("question", ["needs", "owes"])
def test_numbers_that_are_none_are_said(tmp_path: Path, question: str, make: Any, given: dict[str, Any]) -> None:
    task = make()
    for weight in task.model.parameters():
        weight.data.fill_(math.nan)
    models = Models([put(tmp_path, task)])
    if question == "owes" and "places" in given:
        given = {"place": given["places"][0], "target": TARGET}
    with refused(RegardError, "model"):
        answer(models, question, {"text": SOURCE, **given})


def test_a_number_is_no_logarithm(tmp_path: Path) -> None:
    models = Models([put(tmp_path, classifier("regression"))])
    values, arrays = unpack(answer(models, "needs", {"text": SOURCE}))
    assert not values["logarithm"]
    for head, found in zip(values["heads"], arrays["without"], strict=True):
        seen, _ = unpack(answer(models, "look", {"text": SOURCE, "changes": {"off": [head]}}))
        assert found == pytest.approx(seen["output"]["said"], rel=1e-3)


@pytest.mark.parametrize(
    ("name", "given", "refusal"),
    [
        ("translator", {}, (UsageError, "place")),
        ("translator", {"places": [99]}, (UsageError, "place")),
        ("translator", {"places": [0], "begin": 1000}, (UsageError, "begin", "24")),
        ("translator", {"places": "3"}, (UsageError, "places")),
        ("classifier", {"label": "ugly"}, (UsageError, "label")),
        ("encoder", {"places": [1]}, (UsageError, "model")),
        ("speaker", {"places": [0]}, (UsageError, "place")),
    ],
)
def test_what_needs_nothing(ask: Ask, name: str, given: dict[str, Any], refusal: Any) -> None:
    with refused(*refusal):
        ask("needs", name, **given)


def test_the_models_are_as_they_were(ask: Ask) -> None:
    seen, _ = ask("look", "translator", target=TARGET)
    ask("needs", "translator", target=TARGET, places=[3])
    again, _ = ask("look", "translator", target=TARGET)
    assert seen == again
