"""Figure 1 of every model: its boxes have its parameters, and the numbers inside are those of its weights, in NumPy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.inspection.folders.models import Models
from regard.inspection.questions.answers import answer
from regard.nn.positions import sinusoids
from regard.system.errors import UsageError
from tests.inspection.payloads import Answer, Ask, TaskOf, unpack
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, TARGET, before, put, recurrent, translator

PRE = {"norm_place": "pre"}
FORMS: dict[str, dict[str, Any]] = {
    "paper": {},
    "pre": PRE,
    "t5": {**PRE, "norm": "rms", "biases": False, "positions": "relative", "scale_output": True, "tie": "three"},
    "groups": {"norm": "group", "norm_groups": 3},
    "batch": {"norm": "batch", "decoder_norm": "layer"},
    "gated": {**PRE, "activation": "gated_swish", "d_k": 5, "d_v": 3, "output_bias": True, "embedding_norm": True},
}
ABSENT: dict[str, dict[str, Any]] = {
    f"without {idea}": {"without": idea, **(PRE if idea in ("norm", "feed-forward") else {})}
    for idea in ("residual", "norm", "scale", "mask", "attention", "feed-forward")
}
TOKEN = 2


def exact(x: np.ndarray, wanted: Any) -> None:
    np.testing.assert_allclose(x, wanted, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Models:
    folder = tmp_path_factory.mktemp("forms")
    return Models([put(folder / name, translator(**model)) for name, model in {**FORMS, **ABSENT}.items()])


def weights(part: Any) -> Any:
    """A matrix and a bias, zero where there is none."""
    return part.weight.numpy(), 0 if part.bias is None else part.bias.numpy()


class Opened:
    """One form of the translator before one sentence."""

    def __init__(self, forms: Models, name: str) -> None:
        self.number, self.models = [*FORMS, *ABSENT].index(name), forms
        self.model = forms.load(self.number).task.model

    def ask(self, question: str, **given: Any) -> Answer:
        asked = {"model": self.number, **before("translator"), "target": TARGET, **given}
        return unpack(answer(self.models, question, asked))

    def box(self, stack: str, layer: int, part: str, token: int = TOKEN) -> dict[str, Any]:
        return self.ask("box", stack=stack, layer=layer, part=part, token=token)[1]


@pytest.fixture(params=list(FORMS))
def form(forms: Models, request: pytest.FixtureRequest) -> Opened:
    return Opened(forms, request.param)


@pytest.mark.one_of(5)
@pytest.mark.parametrize("name", EVERY)
def test_all_boxes_have_the_models_parameters(ask: Ask, task: TaskOf, name: str) -> None:
    values, arrays = ask("figure", name)
    alone = [parameters for *_, parameters, shared in values["boxes"] if not shared]
    assert sum(alone) == sum(p.numel() for p in task(name).model.parameters())
    assert arrays.keys() <= {str(number) for number in range(len(values["boxes"]))}
    for stack, layer, part, *_ in values["boxes"]:
        assert ask("box", name, stack=stack, layer=layer, part=part, token=0)[1]


@pytest.mark.one_of(5, minutes=0.02)
@pytest.mark.parametrize("name", [*FORMS, *ABSENT])
def test_a_vector_travels_from_box_to_box(forms: Models, name: str) -> None:
    """What leaves a box is what its numbers end with; it ends as what the output reads."""
    form = Opened(forms, name)
    values, arrays = form.ask("figure", source_place=TOKEN, target_place=TOKEN)
    boxes = [tuple(box[:3]) for box in values["boxes"]]
    for number, key in enumerate(boxes):
        if key[2] != "output":
            whole = "scaled" if key[2] == "embedding" else "output"
            exact(arrays[str(number)], form.box(*key)[whole])
    exact(form.box("", 0, "output")["input"], arrays[str(len(boxes) - 2)])


@pytest.mark.one_of(3)
def test_embedding_and_position(form: Opened) -> None:
    found, part = form.box("encoder", 0, "embedding"), form.model.encoder.input
    exact(found["scaled"], found["row"] * np.sqrt(12))
    assert (part.tokens.weight.numpy() == found["row"]).all(1).any()
    if type(part.positions).__name__ == "Sinusoidal":
        exact(found["position"], sinusoids(5, 12)[TOKEN])
    exact(found["output"], found["scaled"] + found["position"])


@pytest.mark.one_of(5)
@pytest.mark.parametrize(("stack", "part"), [("encoder", "attention"), ("decoder", "attention"), ("decoder", "cross")])
def test_attention_from_the_projections_to_w_o(form: Opened, stack: str, part: str) -> None:
    found = form.box(stack, 2, part)
    module = getattr(getattr(form.model, stack).layers[1], part)
    kind, heads = stack if part == "attention" else "cross", module.heads
    for head in range(heads):
        given = {"kind": kind, "layer": 2, "head": head + 1, "query": TOKEN}
        inside = form.ask("equation", **given)[1]
        for name, x in (("query", found["input"]), ("key", found["read"]), ("value", found["read"])):
            weight_XD, bias_X = weights(getattr(module, name))
            exact(inside[name], np.split(x @ weight_XD.T + bias_X, heads, axis=-1)[head])
        exact(inside["context"], np.split(found["context"], heads)[head])
        exact(inside["context"], inside["weight"] @ inside["value"])
    weight_DX, bias_D = weights(module.output)
    exact(found["output"], weight_DX @ found["context"] + bias_D)
    exact(found["output"], found["head"].sum(0) + bias_D)


def normalised(norm: Any, x: np.ndarray) -> np.ndarray:
    """The equations of the four norms."""
    name = type(norm).__name__
    if name == "RMSNorm":
        return x / np.sqrt((x**2).mean() + norm.epsilon)
    if name == "BatchNorm":
        return (x - norm.running_mean.numpy()) / np.sqrt(norm.running_variance.numpy() + norm.epsilon)
    parts = x.reshape(getattr(norm, "num_groups", 1), -1)
    return ((parts - parts.mean(1, keepdims=True)) / np.sqrt(parts.var(1, keepdims=True) + norm.eps)).ravel()


@pytest.mark.one_of(3)
def test_residual_and_norm(form: Opened) -> None:
    for stack, part in (("encoder", "attention"), ("decoder", "cross"), ("decoder", "feedforward")):
        norm = getattr(getattr(form.model, stack).layers[1], f"{part}_residual").norm
        found = form.box(stack, 2, f"{part}_norm")
        plain = normalised(norm, found["input"])
        exact(found["normalised"], plain)
        exact(found["input"], found["normalised"] * found["deviation"] + found["mean"])
        exact(found["output"], plain * norm.weight.numpy() + (0 if "bias" not in found else norm.bias.numpy()))
        posts = "before" in found
        added = found if posts else form.box(stack, 2, f"{part}_add")
        exact(found["input"] if posts else added["output"], added["before"] + added["added"])
        exact(added["added"], form.box(stack, 2, part)["output"])


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", ABSENT)
def test_the_boxes_of_a_model_without_an_idea(forms: Models, name: str) -> None:
    form = Opened(forms, name)
    boxes = form.ask("figure")[0]["boxes"]
    parts = {part for _, _, part, *_ in boxes}
    assert sum(count for *_, count, shared in boxes if not shared) == sum(p.numel() for p in form.model.parameters())
    gone = {"norm": {"attention_norm", "final"}, "feed-forward": {"feedforward", "feedforward_add"}}
    assert not parts & gone.get(ABSENT[name]["without"], set())
    if name == "without norm":
        found = form.box("decoder", 1, "cross_add")
        exact(found["output"], found["before"] + found["added"])
    if name == "without residual":
        assert "before" not in form.box("encoder", 1, "attention_norm")
        exact(form.box("encoder", 1, "attention_norm")["input"], form.box("encoder", 1, "attention")["output"])


def test_the_norm_that_ends_a_stack(forms: Models) -> None:
    found = Opened(forms, "t5")
    numbers, final = found.box("decoder", 0, "final"), found.model.decoder.final
    exact(numbers["output"], normalised(final.norm, numbers["input"]) * final.norm.weight.numpy() * 12**-0.5)
    assert found.ask("box", stack="decoder", part="final")[0]["factor"] == pytest.approx(12**-0.5)


@pytest.mark.one_of(3)
def test_feed_forward(form: Opened) -> None:
    module = form.model.decoder.layers[0].feedforward
    values, found = form.ask("box", stack="decoder", layer=1, part="feedforward", token=TOKEN)
    inner_FD, inner_F = weights(module.inner)
    outer_DF, outer_D = weights(module.outer)
    exact(found["inner"], inner_FD @ found["input"] + inner_F)
    if values["gated"]:
        gate_FD, gate_F = weights(module.gate)
        swish = found["inner"] / (1 + np.exp(-found["inner"]))
        exact(found["fired"], swish * (gate_FD @ found["input"] + gate_F))
    else:
        exact(found["fired"], np.maximum(found["inner"], 0))
        assert values["firing"] == (found["fired"] > 0).sum()
    exact(found["output"], outer_DF @ found["fired"] + outer_D)
    each_DF = outer_DF * found["fired"]
    exact(found["length"], np.linalg.norm(each_DF, axis=0))
    exact(found["unit"], each_DF[:, values["units"]].T)
    assert (np.diff(found["length"][values["units"]]) <= 0).all()


@pytest.mark.one_of(3)
def test_linear_and_softmax(form: Opened) -> None:
    values, found = form.ask("box", part="output", token=TOKEN)
    table, bias = form.model.output, form.model.output_bias
    score_V = table.weight[: table.pieces].numpy() @ found["input"] + (0 if bias is None else bias.numpy())
    exact(found["score"], np.sort(score_V)[::-1][:8])
    exact(found["score"], found["row"] @ found["input"] + found["bias"])
    power_V = np.exp(score_V - score_V.max())
    exact(found["probability"], np.sort(power_V / power_V.sum())[::-1][:8])
    assert values["sum"] == pytest.approx(power_V.sum(), rel=1e-5)
    assert values["count"] == len(score_V)


@pytest.mark.parametrize("name", ["classifier", "tagger", "viewer", "filler"])
def test_the_head_of_an_encoder(ask: Ask, task: TaskOf, name: str) -> None:
    values, found = ask("box", name, part="head", token=0)
    exact(found["score"], found["row"] @ found["input"] + found["bias"])
    assert len(values["names"]) == len(found["score"]) == len(found["probability"])
    if name == "filler":
        said, _ = ask("look", name)
        assert [one["piece"] for one in said["said"][0]] == values["names"][:5]


def test_recurrent_states_and_contexts(tmp_path: Path) -> None:
    """Of a plain decoder and of one that is fed: tanh(W [c; h] + b), and each context by its weights."""
    sizes = {"score": "dot", "decoder_layers": 2}
    made = {"plain": recurrent(**sizes), "fed": recurrent(**sizes, input_feeding=True)}
    models = Models([put(tmp_path / name, one) for name, one in made.items()])
    for number, task in enumerate(made.values()):
        given = {"model": number, **before("recurrent"), "target": TARGET}

        def ask(question: str, given: dict[str, Any] = given, **more: Any) -> Answer:
            return unpack(answer(models, question, {**given, **more}))

        cross = ask("box", stack="decoder", part="cross", token=TOKEN)[1]
        states = ask("box", stack="decoder", layer=2, part="recurrence", token=TOKEN)[1]
        below = ask("box", stack="decoder", layer=1, part="recurrence", token=TOKEN)[1]["state"]
        weight_XX, bias_X = weights(task.model.decoder.bridge.project)
        first = np.tanh(weight_XX @ ask("box", stack="decoder", part="bridge", token=0)[1]["input"] + bias_X)
        exact(states["state"], gru(task.model.decoder.stack.layers[1].kernel, below, np.split(first, 2)[1]))
        exact(cross["state"], states["output"])
        exact(states["output"], states["state"][TOKEN])
        weight_DX, bias_D = weights(task.model.decoder.cross.output)
        exact(cross["output"], np.tanh(weight_DX @ np.concatenate([cross["context"], cross["state"]]) + bias_D))
        read = ask("box", stack="encoder", layer=1, part="recurrence", token=0)[1]["state"]
        for query in range(len(cross["contexts"])):
            inside = ask("equation", kind="cross", query=query)[1]
            exact(inside["value"], read)
            exact(inside["query"], states["state"][query])
            exact(cross["contexts"][query], inside["weight"] @ read)


def gru(kernel: Any, entering: np.ndarray, state: np.ndarray) -> np.ndarray:
    """``h = (1 − z) n + z h′`` [Cho14], the first direction, step by step."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    weight, again, bias, more = (getattr(kernel, f"{name}_l0").numpy() for name in names)
    states = []
    for x in entering:
        (r, z, n), (r_h, z_h, n_h) = (np.split(y, 3) for y in (weight @ x + bias, again @ state + more))
        reset, update = 1 / (1 + np.exp(-r - r_h)), 1 / (1 + np.exp(-z - z_h))
        state = (1 - update) * np.tanh(n + reset * n_h) + update * state
        states.append(state)
    return np.stack(states)


def test_a_gru_step_by_step(ask: Ask, task: TaskOf) -> None:
    """The half of a two-way encoder's states that reads forwards."""
    found = ask("box", "recurrent", stack="encoder", layer=1, part="recurrence", token=3)[1]
    kernel = task("recurrent").model.encoder.stack.layers[0].kernel
    exact(found["state"][:, :6], gru(kernel, found["input"], np.zeros(6)))
    exact(found["output"], found["state"][3])


def test_boxes_that_are_not_there(ask: Ask) -> None:
    with refused(UsageError, "part", "no such box"):
        ask("box", "classifier", stack="decoder", layer=1, part="attention")
    with refused(UsageError, "token", "99"):
        ask("box", "translator", stack="encoder", layer=1, part="attention", token=99)
