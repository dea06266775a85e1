"""The attention equation step by step, what sub-layers add, and predictions after each layer, as the model has them."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from regard.inspection.forward.outputs import scores
from regard.inspection.forward.record import record_attention, text_inputs
from regard.inspection.questions.layers import equation, sub_layers
from regard.system.errors import UsageError
from tests.inspection.forward.small_scenes import both, recurrent
from tests.inspection.payloads import Ask, TaskOf
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, GAPPED, SOURCE, TARGET

SCENES = {
    "paper": (both(), ("encoder", "decoder", "cross")),
    "heads": (both(decoder_heads=2), ("encoder", "decoder", "cross")),
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


def softmax(scores: list[float]) -> list[float]:
    shares = [math.exp(score - max(scores)) for score in scores]
    return [share / sum(shares) for share in shares]


@pytest.mark.one_of(15)
@pytest.mark.parametrize("name", [name for name in EVERY if name not in ("recurrent", "reader")])
@pytest.mark.parametrize(
    "changes", [{}, {"scaling": False}, {"mask": False}, {"positions": False}], ids=["whole", "scaling", "mask", "pos"]
)
def test_step_by_step(ask: Ask, name: str, changes: dict[str, bool]) -> None:
    if name == "spanner" and "scaling" in changes:
        return  # it does not scale
    target = {"translator": {"target": TARGET}, "spanner": {"target": "<extra_0> cat"}}.get(name, {})
    values, arrays = ask("look", name, changes=changes, **target)
    for kind, one in values["kinds"].items():
        layer, head = one["layers"], one["heads"]
        query = len(values[one["queries"]]) // 2
        more, found = ask("equation", name, kind=kind, layer=layer, head=head, query=query, changes=changes, **target)
        keys, divisor = range(len(values[one["keys"]])), more["divisor"]
        assert divisor == pytest.approx(1.0 if changes.get("scaling") is False or name == "spanner" else 2.0)
        assert not more["additive"]
        score = [sum(a * b for a, b in zip(found["query"], found["key"][k], strict=True)) for k in keys]
        np.testing.assert_allclose(found["score"], score, rtol=1e-4, atol=1e-5)
        scaled = [score[k] / divisor + found["bias"][k] for k in keys]
        np.testing.assert_allclose(found["scaled"], scaled, rtol=1e-4, atol=1e-5)
        seen = [k for k in keys if not found["hidden"][k]]
        causal = kind == "decoder" and changes.get("mask") is not False
        assert seen == [k for k in keys if not causal or k <= query]
        weight = dict(zip(seen, softmax([scaled[k] for k in seen]), strict=True))
        np.testing.assert_allclose(found["weight"], [weight.get(k, 0) for k in keys], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found["weight"], arrays[f"weights.{kind}"][layer - 1, head - 1, query], rtol=1e-4)
        context = sum(found["weight"][k] * found["value"][k] for k in keys)
        np.testing.assert_allclose(found["context"], context, rtol=1e-4, atol=1e-6)
        plain = dict(zip(seen, softmax([score[k] + found["bias"][k] for k in seen]), strict=True))
        np.testing.assert_allclose(found["unscaled"], [plain.get(k, 0) for k in keys], rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(found["unmasked"], softmax(scaled), rtol=1e-4, atol=1e-6)
        if changes.get("positions") is False or name != "spanner":
            assert not found["bias"].any()


def test_relative_positions_are_the_bias(ask: Ask, plain: Ask) -> None:
    _, found = ask("equation", "spanner", kind="encoder", layer=1, head=2, query=3)
    _, known = plain("places", "spanner", stack="encoder", count=20)
    for key, bias in enumerate(found["bias"]):
        assert bias == pytest.approx(known["bias"][1, 19 + key - 3], abs=1e-6)
    assert found["bias"].any()


def test_the_additive_score(ask: Ask, task: TaskOf) -> None:
    values, found = ask("equation", "recurrent", kind="cross", layer=1, head=1, query=2, target=TARGET)
    assert (values["divisor"], values["additive"]) == (1.0, True)
    direction = task("recurrent").model.decoder.cross.score.direction.numpy()
    score = [float(direction @ np.tanh(found["query"] + key)) for key in found["key"]]
    np.testing.assert_allclose(found["score"], score, rtol=1e-4)
    np.testing.assert_allclose(found["weight"], softmax(score), rtol=1e-4)


def test_a_text_that_is_weighed(ask: Ask, task: TaskOf) -> None:
    values, found = ask("equation", "reader", kind="pool", layer=1, head=1, query=0)
    assert (values["divisor"], values["additive"]) == (1.0, True)
    pool = task("reader").model.head.pool
    np.testing.assert_allclose(found["query"], pool.query.numpy(), rtol=1e-6)
    score = [float(pool.score.direction.numpy() @ np.tanh(found["query"] + key)) for key in found["key"]]
    np.testing.assert_allclose(found["score"], score, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found["weight"], softmax(score), rtol=1e-4)
    np.testing.assert_allclose(found["context"], found["weight"] @ found["value"], rtol=1e-4, atol=1e-6)
    with refused(UsageError, "query", "1"):
        ask("equation", "reader", kind="pool", layer=1, head=1, query=1)


def test_a_head_that_is_off_says_nothing(ask: Ask) -> None:
    how = {"kind": "encoder", "layer": 2, "head": 1, "query": 4}
    _, found = ask("equation", "translator", changes={"off": [["encoder", 2, 1]]}, **how)
    _, whole = ask("equation", "translator", **how)
    assert not found["context"].any()
    assert whole["context"].any()
    np.testing.assert_allclose(found["weight"], whole["weight"], rtol=1e-4)


STACKS = [("translator", "encoder"), ("translator", "decoder"), ("speaker", "decoder"), ("filler", "encoder")]


@pytest.mark.one_of(5)
@pytest.mark.parametrize("name", EVERY)
def test_every_model_has_a_stream_or_says_so(ask: Ask, task: TaskOf, name: str) -> None:
    if "rnn" in task(name).recipe.model.family:
        with refused(UsageError, "model"):
            ask("layers", name)
        return
    values, arrays = ask("layers", name)
    shape = len(values["parts"]), len(values["tokens"])
    assert arrays["length"].shape == arrays["cosine"].shape == shape
    assert (np.abs(arrays["cosine"]) <= 1 + 1e-6).all()
    assert (arrays["length"] > 0).all()
    if values["lens"] is not None:
        assert arrays["own"].shape == arrays["rank"].shape == (len(values["lens"]), shape[1])
        np.testing.assert_array_equal(arrays["rank"][-1], 1)
        assert (arrays["own"] <= arrays["best"] + 1e-6).all()


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("name", "stack"), STACKS)
def test_what_is_added_makes_the_stream(task: TaskOf, name: str, stack: str) -> None:
    """Pre-norm: the embedding and all that was added is the last stream; post-norm: each sum, normalised."""
    loaded = task(name)
    seen = text_inputs(loaded, GAPPED if name == "filler" else SOURCE, TARGET if name == "translator" else None)
    found = sub_layers(seen, stack)
    crossed = ["cross"] if (name, stack) == ("translator", "decoder") else []
    parts = ["attention", *crossed, "feedforward"]
    assert [one.part for one in found] == parts * (len(found) // len(parts))
    for one, next_ in pairwise(found):
        assert next_.before_TD is one.after_TD
    if loaded.recipe.model.norm_place == "pre":
        whole_TD = found[0].before_TD + sum(one.added_TD for one in found)
        torch.testing.assert_close(whole_TD, found[-1].after_TD, atol=1e-5, rtol=1e-5)
    else:
        norm = getattr(loaded.model, stack).layers[0].attention_residual.norm
        summed_TD = norm(found[0].before_TD + found[0].added_TD)
        torch.testing.assert_close(summed_TD, found[0].after_TD, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["translator", "speaker", "filler"])
def test_the_last_layers_prediction_is_the_models(ask: Ask, task: TaskOf, name: str) -> None:
    given = {"target": TARGET} if name == "translator" else {}
    _, arrays = ask("layers", name, **given)
    seen = text_inputs(task(name), GAPPED if name == "filler" else SOURCE, given.get("target"))
    np.testing.assert_allclose(arrays["best"][-1], scores(seen).softmax(1).numpy().max(1), atol=1e-6)
