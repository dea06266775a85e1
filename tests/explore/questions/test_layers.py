"""Positions and layer paths as answers, compared with plain loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from regard.explore.forward.inputs import text_inputs
from regard.models.inspect.ablation import Ablations
from regard.models.inspect.captured_attention import streams
from regard.system.errors import RegardError, UsageError
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, SOURCE, TARGET, before

Ask = Callable[..., tuple[dict[str, Any], dict[str, np.ndarray]]]
TaskOf = Callable[[str], Any]


def test_sinusoids_by_the_paper(plain: Ask) -> None:
    values, arrays = plain("places", "translator", stack="decoder", count=9)
    assert values["kind"] == "sinusoidal"
    for place in range(9):
        for i in range(6):
            angle = place / 10000 ** (2 * i / 12)
            np.testing.assert_allclose(
                arrays["vector"][place, 2 * i : 2 * i + 2], [np.sin(angle), np.cos(angle)], atol=1e-6
            )
    unit = arrays["vector"] / np.linalg.norm(arrays["vector"], axis=1, keepdims=True)
    np.testing.assert_allclose(arrays["likeness"], unit @ unit.T, atol=1e-5)
    far = [np.mean([arrays["likeness"][a, a + by] for a in range(9 - by)]) for by in range(9)]
    np.testing.assert_allclose(arrays["by_distance"], far, atol=1e-6)
    assert "bias" not in arrays


def test_kinds_of_positions(plain: Ask, task: TaskOf) -> None:
    values, arrays = plain("places", "classifier", stack="encoder", count=512)
    assert values["kind"] == "learned"
    np.testing.assert_array_equal(arrays["vector"], task("classifier").model.encoder.input.positions.weight[:64])
    values, arrays = plain("places", "spanner", stack="encoder", count=5)
    assert values["kind"] == "relative"
    assert arrays["bias"].shape == (3, 9)
    assert not arrays["vector"].any()
    assert plain("places", "recurrent", stack="encoder")[0]["kind"] == "none"
    values, arrays = plain("places", "viewer", stack="encoder")
    assert (values["kind"], len(arrays["vector"])) == ("learned", 7)
    for name, given, refusal in (
        ("classifier", {"stack": "decoder"}, (RegardError, "stack")),
        ("classifier", {}, (UsageError, "stack")),
        ("classifier", {"stack": "encoder", "count": 0}, (UsageError, "count")),
    ):
        with refused(*refusal):
            plain("places", name, **given)


def on_a_plane(vectors: list[np.ndarray]) -> tuple[float, list[np.ndarray]]:
    """The share that two components have, and the vectors' distances within them."""
    points = np.concatenate([each.reshape(-1, each.shape[-1]) for each in vectors]).astype(float)
    middle = points.mean(0)
    _, sizes, axes = np.linalg.svd(points - middle, full_matrices=False)
    return float((sizes[:2] ** 2).sum() / (sizes**2).sum()), [(each - middle) @ axes[:2].T for each in vectors]


@pytest.mark.parametrize(("stack", "changes"), [("encoder", {}), ("decoder", {"positions": False})])
def test_paths_of_two_sentences(plain: Ask, task: TaskOf, stack: str, changes: dict[str, bool]) -> None:
    scenes = [{"text": SOURCE, "target": TARGET}, {"text": "The street was too tired.", "target": "Die Straße"}]
    pair = [[0, 2], [1, 3]]
    values, arrays = plain("drift", "translator", stack=stack, scenes=scenes, changes=changes, pair=pair)
    this = task("translator")
    vectors, tokens = [], []
    with Ablations(**changes).apply(this.recipe.model):
        for one in scenes:
            seen = text_inputs(this, one["text"], one["target"])
            vectors.append(torch.stack(streams(this.model, seen.run, stack)).numpy())
            tokens.append(seen.source if stack == "encoder" else seen.target)
    share, paths = on_a_plane(vectors)
    assert values["share"] == pytest.approx(share, rel=1e-4)
    for number, path in enumerate(paths):
        found = arrays[f"path.{number}"]
        assert found.shape == path.shape
        np.testing.assert_allclose(np.abs(found), np.abs(path), rtol=1e-3, atol=1e-4)  # an axis may point either way
        assert [one["text"] for one in values["tokens"][number]] == [token.text for token in tokens[number]]
    for layer, cosine in enumerate(values["alike"]):
        a, b = vectors[0][layer, 2], vectors[1][layer, 3]
        assert cosine == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), rel=1e-4)


@pytest.mark.parametrize("name", [name for name in EVERY if name != "recurrent"])
def test_every_stack_can_be_followed(plain: Ask, task: TaskOf, name: str) -> None:
    for stack in ("encoder", "decoder"):
        if stack not in task(name).recipe.model.attention:
            continue
        values, arrays = plain("drift", name, stack=stack, scenes=[before(name)])
        layers = task(name).recipe.model.attention[stack][0]
        assert arrays["path.0"].shape == (layers + 1, len(values["tokens"][0]), 2)
        assert values["alike"] is None


@pytest.mark.parametrize(
    ("name", "given", "refusal"),
    [
        ("recurrent", {"scenes": [{"text": "a"}]}, (RegardError, "stack")),
        ("classifier", {"scenes": [{"text": "a"}], "stack": "decoder"}, (RegardError, "stack")),
        ("translator", {}, (UsageError, "scenes")),
        ("translator", {"scenes": []}, (UsageError, "scenes")),
        ("translator", {"scenes": [{"text": "a"}] * 3}, (UsageError, "scenes", "3")),
        ("translator", {"scenes": ["a"]}, (UsageError, "scenes")),
        ("translator", {"scenes": [{"text": ""}]}, (RegardError, "text")),
        ("translator", {"scenes": [{"words": "a"}]}, (UsageError, "words")),
        ("translator", {"scenes": [{"text": "a"}], "pair": [[0, 0]]}, (UsageError, "pair")),
        ("translator", {"scenes": [{"text": "a"}], "pair": [[0, 0], [1, 0]]}, (UsageError, "pair", "1")),
        ("translator", {"scenes": [{"text": "a"}], "pair": [[0, 0], [0, 9]]}, (UsageError, "pair", "9")),
        ("translator", {"scenes": [{"text": "a"}], "pair": [[0, 0], 5]}, (UsageError, "pair")),
        ("translator", {"scenes": [{"text": "a"}], "pair": [[0, 0], [0]]}, (UsageError, "pair")),
        ("translator", {"scenes": [{"text": "a"}], "changes": {"off": [["cross", 9, 1]]}}, (UsageError, "head")),
    ],
)
def test_what_cannot_be_followed(plain: Ask, name: str, given: dict[str, Any], refusal: Any) -> None:
    with refused(*refusal):
        plain("drift", name, **{"stack": "encoder", **given})
