"""Input attribution, compared with the effect of scaling an embedding."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.explore.folders.models import Models
from regard.explore.forward.inputs import ModelInputs, image_inputs, text_inputs
from regard.explore.questions.answers import answer
from regard.explore.questions.attribution import attribute, explained_score
from regard.explore.requests import AblationRequest
from regard.nn.hooks import intervene
from regard.system.errors import RegardError, UsageError
from tests.explore.payloads import unpack
from tests.refusals import refused
from tests.tasks.small_tasks import GAPPED, LABELS, PIXELS, SOURCE, TARGET, before, classifier, put, tagger

Ask = Callable[..., tuple[dict[str, Any], dict[str, np.ndarray]]]
TaskOf = Callable[[str], Any]
GROWN = 1e-6


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


CASES = [
    ("translator", {"target": TARGET, "place": 3}, {"source": "encoder", "target": "decoder"}),
    ("recurrent", {"target": TARGET, "place": 2}, {"source": "encoder", "target": "decoder"}),
    ("spanner", {"target": "[MASK] cat", "place": 1}, {"source": "encoder", "target": "decoder"}),
    ("speaker", {"place": 5}, {"source": "decoder"}),
    ("filler", {"place": 2}, {"source": "encoder"}),
    ("classifier", {"label": "bad"}, {"source": "encoder"}),
    ("tagger", {"place": 4, "label": "good"}, {"source": "encoder"}),
    ("viewer", {"label": "fair"}, {"source": "encoder"}),
]


@pytest.mark.parametrize(("name", "given", "stacks"), CASES, ids=[name for name, _, _ in CASES])
@pytest.mark.parametrize(
    "without", [AblationRequest(), AblationRequest(positions=False)], ids=["whole", "without-positions"]
)
def test_it_is_the_slope_of_the_score(
    ask: Ask, task: TaskOf, name: str, given: dict[str, Any], stacks: dict[str, str], without: AblationRequest
) -> None:
    seen = precise(task(name), {**before(name), **given})
    score = explained_score(seen, given.get("place"), given.get("label"))
    told, shares = attribute(seen, without, score)

    def again() -> Tensor:
        with without.ablations.apply(seen.task.recipe.model):
            return score(seen.run())

    assert sorted(shares) == sorted(stacks)
    for side, stack in stacks.items():
        np.testing.assert_allclose(shares[side], slopes(stack, len(shares[side]), again), rtol=1e-3, atol=1e-5)
        assert np.abs(shares[side]).max() > 0
    changes = {"positions": without.positions, "off": without.off}
    values, arrays = ask("owes", name, changes=changes, **given)
    assert values["score"] == pytest.approx(told, rel=1e-3)
    for side, share in shares.items():
        np.testing.assert_allclose(arrays[side], share, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("name", ["translator", "recurrent", "spanner", "speaker"])
def test_a_piece_owes_nothing_to_itself_nor_to_what_comes_later(ask: Ask, name: str) -> None:
    """The row that writes a piece has read the one before it, and none behind that."""
    target = {"translator": TARGET, "recurrent": TARGET}.get(name)
    seen, _ = ask("look", name, target=target)
    side, first = ("source", 1) if name == "speaker" else ("target", 0)
    for place in range(first, len(seen["written"])):
        _, arrays = ask("owes", name, target=target, place=place)
        row = place - first
        assert len(arrays[side]) == len(seen[side])
        assert not arrays[side][row + 1 :].any()
        assert arrays[side][row] or seen[side][row]["text"] == "<s>"
        if side == "target" and row:
            assert seen[side][row] == seen["written"][place - 1]


def test_scores_of_pieces_are_what_a_page_sees(ask: Ask) -> None:
    for name, target in (("translator", TARGET), ("recurrent", None), ("spanner", None), ("speaker", None)):
        seen, _ = ask("look", name, target=target)
        for place in (1, len(seen["written"]) - 1):
            score = ask("owes", name, target=target, place=place)[0]["score"]
            assert math.exp(score) == pytest.approx(seen["probability"][place], rel=1e-3)


def test_scores_of_labels_are_what_a_page_sees(ask: Ask) -> None:
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

    for word, (start, end) in enumerate(found.places):
        places = [n for n, token in enumerate(seen["source"]) if start < token["end"] <= end and not token["special"]]
        for place in (places[0], places[-1]):
            assert math.exp(owes(place=place)) == pytest.approx(found.probabilities[word], rel=1e-3)
            assert owes(place=place) == owes(place=place, label=found.tags[word])
    assert sum(math.exp(owes(place=5, label=label)) for label in LABELS) == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize("kind", ["multi", "regression"])
def test_several_labels_and_numbers(tmp_path: Path, kind: str) -> None:
    models = Models([put(tmp_path, classifier(kind))])
    output = unpack(answer(models, "look", {"text": SOURCE}))[0]["output"]
    score = unpack(answer(models, "owes", {"text": SOURCE}))[0]["score"]
    wanted = output["said"] if kind == "regression" else math.log(output["classes"][0][1])
    assert score == pytest.approx(wanted, rel=1e-3)


def test_a_head_that_is_off_passes_nothing_on(ask: Ask) -> None:
    off = [["cross", layer, head] for layer in (1, 2, 3) for head in (1, 2, 3)]
    _, arrays = ask("owes", "translator", target=TARGET, place=2, changes={"off": off})
    assert not arrays["source"].any()
    assert arrays["target"].any()


@pytest.mark.parametrize(
    ("name", "given", "refusal"),
    [
        ("translator", {}, (UsageError, "place", "0")),
        ("translator", {"place": 99}, (UsageError, "place", "0")),
        ("translator", {"place": 1, "label": "good"}, (UsageError, "label")),
        ("translator", {"place": 1, "text": ""}, (RegardError, "text")),
        ("speaker", {"place": 0}, (UsageError, "place")),
        ("tagger", {}, (UsageError, "place")),
        ("tagger", {"place": 0}, (UsageError, "place")),
        ("tagger", {"place": 1, "label": "ugly"}, (UsageError, "label", "ugly")),
        ("classifier", {"label": "ugly"}, (UsageError, "label")),
        ("classifier", {"place": 1}, (UsageError, "place")),
        ("encoder", {"place": 1}, (UsageError, "model")),
        ("viewer", {"image": None}, (UsageError, "image")),
    ],
)
def test_what_owes_nothing(ask: Ask, name: str, given: dict[str, Any], refusal: Any) -> None:
    with refused(*refusal):
        ask("owes", name, **given)


def test_the_model_is_left_as_it_was(ask: Ask, task: TaskOf) -> None:
    ask("owes", "viewer", image={"pixels": PIXELS})
    assert not any(weight.requires_grad or weight.grad is not None for weight in task("viewer").model.parameters())
