import fnmatch

import pytest
import torch

from regard.models.decoding.transformer import TransformerStepper
from regard.nn import hooks
from regard.nn.hooks import capture, intervene
from tests.models.small_models import PIECES, assert_near, section, sentences, small, some_pairs

LENGTHS = [(3, 4), (5, 2)]
INSIDE = ("query", "key", "value", "score", "weight", "context")
LAYER = {"encoder": ["attention"], "decoder": ["attention", "cross"]}


def every_point() -> set[str]:
    """All names the module's page promises, for two layers."""
    names = {f"{stack}.input.{point}" for stack in LAYER for point in ("embedding", "positions")}
    for stack, attentions in LAYER.items():
        for i in range(2):
            sublayers = [*attentions, "feedforward"]
            names |= {f"{stack}.{i}.{sub}.{point}" for sub in attentions for point in INSIDE}
            names |= {f"{stack}.{i}.attention.mask"} if stack == "decoder" else set()
            names |= {f"{stack}.{i}.{sub}.output" for sub in sublayers}
            names |= {f"{stack}.{i}.{sub}_residual.residual" for sub in sublayers}
    return names


@pytest.mark.parametrize("place", ["post", "pre"])
def test_every_point_is_heard_in_the_forward_pass(place: str) -> None:
    model = small(section(norm_place=place))
    with capture(["*"]) as heard:
        model(some_pairs(LENGTHS))
    assert set(heard) == every_point()
    for name, tensors in heard.items():
        inside = name.rpartition(".")[2] in hooks.INSIDE
        assert len(tensors) == (len(LENGTHS) if inside else 1), name


def test_every_point_is_heard_step_by_step() -> None:
    model = small()
    step = TransformerStepper(model)
    with capture(["*"]) as heard:
        state = step.start(sentences([3, 5]))
        encoder = {name for name in every_point() if name.startswith("encoder")}
        assert set(heard) == encoder
        for _ in range(2):
            state, _ = step.step(state, torch.tensor([PIECES, PIECES]).numpy())
    assert set(heard) == {name for name in every_point() if not name.endswith("mask")}  # a step sees what was before
    assert len(heard["decoder.0.attention.weight"]) == 2 * 2


@pytest.mark.one_of(8)
@pytest.mark.parametrize("name", sorted(every_point()))
def test_what_is_replaced_flows_on(name: str) -> None:
    model, given = small(), some_pairs(LENGTHS)
    before_TD = model(given)

    def halved(value: torch.Tensor) -> torch.Tensor:
        if value.dtype == torch.bool:
            return torch.zeros_like(value)
        return value * torch.linspace(0.5, 1.5, value.shape[-1], dtype=value.dtype)

    with intervene(name, halved), capture([name]) as heard:
        after_TD = model(given)
    assert not torch.allclose(after_TD, before_TD)
    with capture([name]) as plain:
        model(given)
    assert_near(heard[name][0].double(), halved(plain[name][0]).double(), 1e-12)
    assert torch.equal(model(given), before_TD)


def test_replacing_acts_under_step_as_in_the_forward_pass() -> None:
    model, sources = small(), sentences([3, 5])
    step, tokens_N = TransformerStepper(model), torch.tensor([PIECES, PIECES]).numpy()
    plain = step.step(step.start(sources), tokens_N)[1].all()
    with intervene("decoder.*.cross.context", torch.zeros_like), intervene("encoder.0.attention.output", torch.neg):
        changed = step.step(step.start(sources), tokens_N)[1].all()
        pairs = some_pairs([(3, 1), (5, 1)])
        assert pairs.source.ids_T.tolist() == [i for source in sources for i in source.tolist()]
        expected = model.scores(model(pairs)).log_softmax(1)
    assert_near(changed, expected, 1e-9)
    assert abs(changed - plain).max() > 1e-3


def test_the_equation_holds_among_the_points() -> None:
    """``softmax(Q Kᵀ / √d_k + bias) V``, hidden behind the mask, of what was heard on its way."""
    model, given = small(section(positions="relative")), some_pairs(LENGTHS)
    with capture(["decoder.*.attention.*"]) as heard:
        model(given)
    for layer in range(2):
        one = {point: heard[f"decoder.{layer}.attention.{point}"][0] for point in hooks.INSIDE}
        score_HLM = one["query"] @ one["key"].transpose(1, 2)
        assert_near(one["score"], score_HLM, 1e-12)
        seen_HLM = score_HLM / one["query"].shape[2] ** 0.5 + one["bias"]
        assert one["mask"].tolist() == [[key > query for key in range(4)] for query in range(4)]
        assert_near(one["weight"], seen_HLM.masked_fill(one["mask"], -torch.inf).softmax(-1), 1e-12)
        assert_near(one["context"], one["weight"] @ one["value"], 1e-12)


def test_only_layers_that_are_touched_take_the_reference_way() -> None:
    with capture(["encoder.1.attention.weight"]), intervene("decoder.*.output", torch.neg):
        inside = [
            name for name in ("encoder.0.attention", "encoder.1.attention", "decoder.0.cross") if hooks.inside(name)
        ]
    assert inside == ["encoder.1.attention"]


def test_gradients_flow_through_what_is_heard_and_replaced() -> None:
    model, given = small(), some_pairs(LENGTHS)
    with capture(["encoder.0.attention.weight"]) as heard, intervene("encoder.0.attention.context", lambda c: 2 * c):
        total = model(given).square().sum()
    gradients = torch.autograd.grad(total, heard["encoder.0.attention.weight"])
    assert all(gradient.abs().sum() > 0 for gradient in gradients)


def test_probes_nest_and_leave_no_trace() -> None:
    model, given = small(), some_pairs(LENGTHS)
    with capture(["encoder.*"]) as outer, capture(["*.residual"]) as inner:
        model(given)
    assert all(fnmatch.fnmatchcase(name, "encoder.*") for name in outer)
    assert all(name.endswith(".residual") for name in inner)
    kept = {name: len(tensors) for name, tensors in outer.items()}
    model(given)
    assert {name: len(tensors) for name, tensors in outer.items()} == kept
    with pytest.raises(ZeroDivisionError), capture(["*"]):
        raise ZeroDivisionError
    assert not hooks.inside("encoder.0.attention")
