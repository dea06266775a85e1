"""The recurrent family as a whole, held to the laws of the house."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.models.build import rnn
from regard.models.inputs import pairs
from regard.models.store import load_weights, to_bytes, weights
from regard.nn import ops
from regard.nn.dropout import reseed
from regard.nn.hooks import capture, intervene
from regard.nn.loss import SmoothedCrossEntropy
from tests.models.decoding.small_rnn import COMBINATIONS, FEW, section, small
from tests.models.small_models import PIECES, assert_near, batch, only, same, sentences, some_pairs, tolerance

LENGTHS = [(5, 4), (1, 6), (7, 1), (3, 3)]
SOURCES, TARGETS = sentences([5, 1, 7, 3]), sentences([4, 6, 1, 3], seed=9)
DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
ATTENDS = [choices for choices in FEW if choices["score"] != "none"]


@COMBINATIONS
@DTYPES
@pytest.mark.parametrize("gradient", [False, True], ids=["no_grad", "grad"])
@pytest.mark.one_of(3)
def test_neighbours(choices, dtype: torch.dtype, gradient: bool) -> None:
    model = small(dtype=dtype, **choices)
    with torch.set_grad_enabled(gradient):
        together = pairs(batch(SOURCES, TARGETS, tail=5, spare=2))
        memory, hidden_TD = model.encoder(together.source), model(together)
        for b, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
            alone = pairs(batch([source], [target]))
            own = model.encoder(alone.source)
            starts = [int(side.sequences.starts_B[b]) for side in (together.source, together.target)]
            assert_near(memory.memory_SD[starts[0] : starts[0] + len(source)], own.memory_SD, tolerance(dtype))
            assert_near(memory.last_BX[b : b + 1], own.last_BX, tolerance(dtype))
            assert_near(hidden_TD[starts[1] : starts[1] + len(target)], model(alone), tolerance(dtype))


@COMBINATIONS
def test_causal(choices) -> None:
    model, given = small(**choices), some_pairs(LENGTHS)
    before_TD = model(given).detach().clone()
    of = given.target.sequences
    for b, (start, length) in enumerate(zip(of.starts_B.tolist(), of.lengths_B.tolist(), strict=True)):
        for place in range(1, length):
            changed = some_pairs(LENGTHS)
            changed.target.ids_T[start + place] = 2 + (changed.target.ids_T[start + place] - 1) % (PIECES - 2)
            after_TD = model(changed).detach()
            assert same(after_TD[: start + place].clone(), before_TD[: start + place].clone()), (b, place)
            assert not torch.equal(after_TD[start + place], before_TD[start + place])
            assert same(after_TD[start + length :].clone(), before_TD[start + length :].clone())


@COMBINATIONS
def test_weights_sum_to_one(choices) -> None:
    model = small(**choices)
    with capture(["*.weight"]) as heard, torch.no_grad():
        model(some_pairs([(5, 4), (1, 6), (0, 2)], tail=2))
    assert set(heard) == (set() if choices["score"] == "none" else {"decoder.cross.weight"})
    for weight_HLM in heard.get("decoder.cross.weight", []):
        assert weight_HLM.shape[0] == 1
        assert (weight_HLM >= 0).all()
        assert_near(weight_HLM.sum(-1), torch.ones(weight_HLM.shape[:-1]), 1e-9)


@COMBINATIONS
def test_every_parameter_receives_a_gradient(choices) -> None:
    model = small(**choices | {"dropout": 0.1}).train()
    given = some_pairs([(5, 6), (7, 4), (3, 5)], tail=3)
    reseed(5)
    table = model.output
    total, _ = SmoothedCrossEntropy(0.1)(
        model(given), table.weight, given.labels_T, given.weight_T.double(), table.pieces
    )
    total.backward()
    largest = max(float(p.grad.abs().max()) for p in model.parameters() if p.grad is not None)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert float(parameter.grad.abs().max()) > 1e-6 * largest, name
    for embedding in (model.encoder.input.tokens, model.decoder.input.tokens, model.output):
        assert not embedding.weight.grad[embedding.pieces].any()


@COMBINATIONS
def test_replacing_by_the_identity_changes_nothing(choices) -> None:
    model, given = small(dtype=torch.float32, **choices), some_pairs(LENGTHS)
    with intervene("*.weight", lambda value: value):  # the way that shows its inside
        plain_TD = model(given).detach()
    assert_near(model(given), plain_TD, 1e-4)
    with intervene("*", lambda value: value):
        assert same(model(given).detach(), plain_TD)
    with capture(["*"]):
        assert same(model(given).detach(), plain_TD)


@COMBINATIONS
def test_saved_and_loaded_is_the_same_model(choices, tmp_path: Path) -> None:
    model = small(dtype=torch.float32, **choices)
    path = tmp_path / "model.safetensors"
    path.write_bytes(to_bytes(weights(model)))
    loaded = rnn(section(**choices), PIECES, PIECES, key=1234).eval()
    load_weights(path, loaded)
    before, after = weights(model), weights(loaded)
    assert before.keys() == after.keys()
    assert all(same(before[name], after[name]) for name in before)
    given = some_pairs(LENGTHS)
    assert same(model(given).detach(), loaded(given).detach())


@pytest.mark.parametrize("choices", FEW, ids=lambda choices: f"{choices['cell']}-{choices['score']}")
def test_gradients_do_not_depend_on_the_way(choices) -> None:
    """In training, groups and products written out; beside it the way sentence by sentence."""
    given, found = some_pairs(LENGTHS, tail=2), []
    for looked_at in ("nothing", "*.weight"):
        model = small(**choices)
        with intervene(looked_at, lambda value: value):
            hidden_TD = model(given)
        (hidden_TD * torch.linspace(-1, 1, hidden_TD.numel()).view_as(hidden_TD)).sum().backward()
        found.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    for name, expected in found[1].items():
        assert_near(found[0][name], expected, 1e-9, name)


@pytest.mark.parametrize("choices", ATTENDS, ids=lambda choices: f"{choices['cell']}-{choices['score']}")
def test_points_and_their_shapes(choices) -> None:
    model = small(**choices)
    given = pairs(batch(SOURCES, TARGETS))
    with capture(["*"]) as heard, torch.no_grad():
        model(given)
    fed = choices["input_feeding"]
    queries = [1] * sum(map(len, TARGETS)) if fed else [len(target) for target in TARGETS]
    for point in ("query", "score", "weight", "context"):
        assert [x.shape[:2] for x in heard[f"decoder.cross.{point}"]] == [(1, q) for q in queries]
    assert {f"{side}.input.embedding" for side in ("encoder", "decoder")} < set(heard)
    assert sum(len(x) for x in heard["decoder.cross.output"]) == sum(map(len, TARGETS))


def test_without_attention_only_the_last_state_is_seen() -> None:
    model, given = small(score="none"), some_pairs(LENGTHS)
    memory = model.encoder(given.source)
    plain_TD = model.decoder(given.target, memory, given.source)
    memory.memory_SD.detach().zero_()
    assert same(model.decoder(given.target, memory, given.source).detach(), plain_TD.detach())
    memory.last_BX.detach().zero_()
    assert not torch.equal(model.decoder(given.target, memory, given.source), plain_TD)


def test_a_source_without_tokens_gives_no_context() -> None:
    for choices in FEW:
        model = small(**choices)
        hidden_TD = model(some_pairs([(0, 3), (4, 2)]))
        assert torch.isfinite(hidden_TD).all()
        assert_near(hidden_TD[:3], model(some_pairs([(0, 3)])), 1e-9)


@pytest.mark.parametrize("path", ["onednn", "bf16"])
def test_other_paths_of_products(path) -> None:
    """Products elsewhere; recurrence, scores and everything that is handed on stay in fp32."""
    for choices in FEW:
        model, given = small(dtype=torch.float32, **choices).train(), some_pairs(LENGTHS, tail=1)
        exact_TD = model(given).detach()
        ops.use(model, path)
        hidden_TD = model(given)
        assert hidden_TD.dtype == torch.float32
        assert_near(hidden_TD, exact_TD, 1e-4 if path == "onednn" else 5e-2)
        hidden_TD.sum().backward()
        assert all(p.grad is None or p.grad.dtype == torch.float32 for p in model.parameters())


def test_weights_are_a_pure_function_of_the_key() -> None:
    one, again, other = (dict(rnn(section(), 20, 20, key).named_parameters()) for key in (1, 1, 2))
    assert all(torch.equal(one[name], again[name]) for name in one)
    drawn = [name for name in one if "bias" not in name]
    assert all(not torch.equal(one[name], other[name]) for name in drawn)


def test_dropout_is_a_pure_function_of_the_key() -> None:
    for choices in FEW[:6]:
        model, given = small(**choices | {"dropout": 0.3}).train(), some_pairs(LENGTHS)
        found = []
        for key in (3, 3, 4):
            reseed(key)
            found.append(model(given).detach())
        assert same(found[0], found[1])
        assert not torch.equal(found[0], found[2])


def test_attention_by_the_reference_only() -> None:
    for choices in ATTENDS:
        model, given = small(**choices), some_pairs(LENGTHS, tail=1)
        with only():
            expected_TD = model(given).detach()
        assert_near(model(given), expected_TD, 1e-9)


def test_three_way_tying_needs_one_vocabulary() -> None:
    with pytest.raises(ValueError, match="three-way tying"):
        rnn(section(), 20, 21)
    assert rnn(section(tie="two"), 20, 21).pieces == 21


def test_positions_are_not_needed_to_tell_an_order() -> None:
    model = small()
    forwards, backwards = np.array([3, 4, 5, 0]), np.array([5, 4, 3, 0])
    one, other = (model(pairs(batch([source], [TARGETS[0]]))) for source in (forwards, backwards))
    assert (one - other).abs().max() > 0.01
