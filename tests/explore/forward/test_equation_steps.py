"""Each step of the attention equation follows from the previous, up to the recorded weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regard.explore.forward.record import record_attention
from regard.explore.questions.equation import equation
from regard.system.errors import UsageError
from tests.explore.forward.small_scenes import alone, both, recurrent
from tests.refusals import refused

SCENES = {
    "paper": (both(), ("encoder", "decoder", "cross")),
    "relative": (both(positions="relative", scale_scores=False), ("encoder", "decoder", "cross")),
    "dot": (recurrent(score="dot"), ("cross",)),
    "scaled": (recurrent(score="scaled", input_feeding=True), ("cross",)),
}


@pytest.mark.parametrize("name", SCENES)
def test_each_step_leads_to_the_next(name: str) -> None:
    seen, kinds = SCENES[name]
    for kind in kinds:
        layers, heads = seen.task.recipe.model.attention[kind]
        found = equation(seen, kind, layers, heads)
        np.testing.assert_allclose(found.score_LM, found.query_LK @ found.key_MK.T, atol=1e-5)
        np.testing.assert_array_equal(found.hidden_LM, np.triu(np.ones_like(found.score_LM), 1) * (kind == "decoder"))
        scaled_LM = np.where(found.hidden_LM, -np.inf, found.score_LM / found.divisor + found.bias_LM)
        power_LM = np.exp(scaled_LM - scaled_LM.max(axis=1, keepdims=True))
        np.testing.assert_allclose(found.weight_LM, power_LM / power_LM.sum(axis=1, keepdims=True), atol=1e-5)
        np.testing.assert_allclose(found.context_LU, found.weight_LM @ found.value_MU, atol=1e-5)
        np.testing.assert_allclose(found.weight_LM, record_attention(seen).head(kind, layers, heads), atol=1e-6)  # type: ignore[arg-type]
        assert (found.bias_LM != 0).any() == (name == "relative" and kind != "cross")


def test_additive_scores_are_of_sums() -> None:
    seen = recurrent(score="additive", input_feeding=True)
    found, direction = equation(seen, "cross", 1, 1), seen.task.model.decoder.cross.score.direction.detach().numpy()
    sums = found.query_LK[:, None] + found.key_MK[None]
    np.testing.assert_allclose(found.score_LM, np.tanh(sums) @ direction, atol=1e-5)
    assert found.divisor == 1


def test_a_language_model_has_one_stack() -> None:
    found = equation(alone(), "decoder", 1, 2)
    assert found.query_LK.shape == (5, 4)
    assert found.hidden_LM[0].tolist() == [False, True, True, True, True]


@pytest.mark.parametrize(
    ("kind", "layer", "head", "refusal"),
    [
        ("encoder", 0, 1, (UsageError, "head", "1", "0")),
        ("encoder", 3, 1, (UsageError, "head", "1", "3")),
        ("cross", 1, 4, (UsageError, "head", "4", "1")),
        ("x", 1, 1, (UsageError, "head")),
    ],
)
def test_heads_that_are_not_there(kind: str, layer: int, head: int, refusal: Any) -> None:
    with refused(*refusal):
        equation(SCENES["paper"][0], kind, layer, head)
