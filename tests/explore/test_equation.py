"""The steps lead to each other, and to the weights that are drawn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from regard.config import GptSection, RnnSection, TransformerSection
from regard.errors import UsageError
from regard.explore.equation import equation
from regard.explore.record import recorded
from regard.explore.scene import Scene
from regard.explore.tokens import Token
from regard.models.build import gpt, rnn, transformer
from regard.models.reading import packed
from small_models import stir

SIZES: dict[str, Any] = {"d_model": 12, "d_ff": 20, "heads": 3, "dropout": 0.0}
READ, WRITTEN = [5, 6, 7, 8, 0], [20, 9, 10]


def scene_of(section: Any, model: Any) -> Scene:
    stir(model)
    task = SimpleNamespace(model=model.eval(), recipe=SimpleNamespace(model=section))
    read, written = packed([READ], model.output.weight.device), packed([WRITTEN], model.output.weight.device)
    tokens = [tuple(Token(str(id), 0, 0) for id in ids) for ids in (READ, WRITTEN)]
    if section.family == "gpt":
        return Scene(task, "", "", tokens[0], tokens[0], tokens[0], lambda: model(read))
    return Scene(task, "", "", tokens[0], *[tokens[1]] * 2, lambda: model.decoder(written, model.encoder(read), read))


def both(**choices: Any) -> Scene:
    section = TransformerSection(encoder_layers=2, decoder_layers=2, **SIZES, **choices)
    return scene_of(section, transformer(section, 20, 20, 3))


def recurrent(**choices: Any) -> Scene:
    section = RnnSection(d_model=12, dropout=0.0, **choices)
    return scene_of(section, rnn(section, 20, 20, 3))


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
        power_LM = np.exp(found.scaled_LM - found.scaled_LM.max(axis=1, keepdims=True))
        np.testing.assert_allclose(found.weight_LM, power_LM / power_LM.sum(axis=1, keepdims=True), atol=1e-5)
        np.testing.assert_allclose(found.context_LU, found.weight_LM @ found.value_MU, atol=1e-5)
        np.testing.assert_allclose(found.weight_LM, recorded(seen).head(kind, layers, heads), atol=1e-6)  # type: ignore[arg-type]
        assert (found.bias_LM != 0).any() == (name == "relative" and kind != "cross")


def test_additive_scores_are_of_sums() -> None:
    seen = recurrent(score="additive", input_feeding=True)
    found, direction = equation(seen, "cross", 1, 1), seen.task.model.decoder.cross.score.direction.detach().numpy()
    sums = found.query_LK[:, None] + found.key_MK[None]
    np.testing.assert_allclose(found.score_LM, np.tanh(sums) @ direction, atol=1e-5)
    assert found.divisor == 1


def test_a_language_model_has_one_stack() -> None:
    section = GptSection(layers=2, **SIZES)
    found = equation(scene_of(section, gpt(section, 20, 3)), "decoder", 1, 2)
    assert found.query_LK.shape == (5, 4)
    assert found.hidden_LM[0].tolist() == [False, True, True, True, True]


@pytest.mark.parametrize(
    ("kind", "layer", "head"), [("encoder", 0, 1), ("encoder", 3, 1), ("cross", 1, 4), ("x", 1, 1)]
)
def test_heads_that_are_not_there(kind: str, layer: int, head: int) -> None:
    with pytest.raises(UsageError, match="there is no head"):
        equation(SCENES["paper"][0], kind, layer, head)
