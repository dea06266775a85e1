"""The laws held to recurrent readers with each head: store, probe, neighbours, ways, weights, gradient."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from regard.models.store import load_weights, to_bytes, weights
from regard.nn.dropout import reseed
from regard.nn.hooks import capture, intervene
from tests.models.small_models import assert_near, only, same, sentences, tolerance
from tests.models.small_readers import OF_RNN_ENCODER, combinations, rnn_encoder, texts

DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
GIVEN = sentences([5, 1, 7, 3])
WEIGHT = "head.pool.weight"


@combinations(OF_RNN_ENCODER)
def test_store(chosen, tmp_path: Path) -> None:
    model, path = rnn_encoder(**chosen, dtype=torch.float32), tmp_path / "model.safetensors"
    path.write_bytes(to_bytes(weights(model)))
    loaded = rnn_encoder(**chosen, dtype=torch.float32, key=1234)
    load_weights(path, loaded)
    assert all(same(before, weights(loaded)[name]) for name, before in weights(model).items())
    assert same(model(texts(GIVEN)).detach(), loaded(texts(GIVEN)).detach())


@combinations(OF_RNN_ENCODER)
def test_probe(chosen) -> None:
    model = rnn_encoder(**chosen, dtype=torch.float32)
    with intervene("*.weight", lambda value: value):  # the way that shows its inside
        plain = model(texts(GIVEN)).detach()
    assert_near(model(texts(GIVEN)), plain, 1e-4)
    with intervene("*", lambda value: value):
        assert same(model(texts(GIVEN)).detach(), plain)
    with only(), capture(["*"]):
        assert same(model(texts(GIVEN)).detach(), plain)


@combinations(OF_RNN_ENCODER)
@DTYPES
@pytest.mark.parametrize("gradient", [False, True], ids=["no_grad", "grad"])
def test_neighbours(chosen, dtype: torch.dtype, gradient: bool) -> None:
    model = rnn_encoder(**chosen, dtype=dtype)
    with torch.set_grad_enabled(gradient):
        among, start = model(texts(GIVEN, tail=5, spare=2)).detach(), 0
        for ids in GIVEN:
            alone = model(texts([ids])).detach()
            assert_near(among[start : start + len(alone)], alone, tolerance(dtype))
            start += len(alone)


@combinations(OF_RNN_ENCODER)
@DTYPES
def test_ways(chosen, dtype: torch.dtype) -> None:
    """Written out for training or by torch's kernels, in groups or text by text: one model, one gradient."""
    found = []
    for looked_at in ("nothing", "*.weight"):
        model = rnn_encoder(**chosen, dtype=dtype)
        with intervene(looked_at, lambda value: value):
            said = model(texts(GIVEN, tail=2))
        said.square().sum().backward()
        found.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
        with torch.no_grad():
            assert_near(model(texts(GIVEN, tail=2)), said, tolerance(dtype))
    for name, expected in found[1].items():
        assert_near(found[0][name], expected, tolerance(dtype), name)


@combinations(OF_RNN_ENCODER)
@DTYPES
def test_weights(chosen, dtype: torch.dtype) -> None:
    model = rnn_encoder(**chosen, dtype=dtype)
    with capture(["*.weight"]) as heard, torch.no_grad():
        model(texts(GIVEN, tail=2, spare=1))
    assert set(heard) == ({WEIGHT} if chosen["pool"] == "attention" else set())
    assert [weight.shape for weight in heard.get(WEIGHT, [])] in ([], [(1, 1, len(ids)) for ids in GIVEN])
    for weight_HQK in heard.get(WEIGHT, []):
        assert (weight_HQK >= 0).all()
        assert_near(weight_HQK.sum(-1), torch.ones(1, 1), tolerance(dtype))


@combinations(OF_RNN_ENCODER)
def test_order_is_told_without_positions(chosen) -> None:
    model = rnn_encoder(**chosen)
    given, turned = texts(GIVEN), texts([ids[::-1].copy() for ids in GIVEN])
    with torch.no_grad():
        forwards, backwards = model.encoder(given), model.encoder(turned)
    assert (forwards[:5] - backwards[:5].flip(0)).abs().max() > 0.01


@combinations(OF_RNN_ENCODER)
def test_one_way_no_later_token_is_seen(chosen) -> None:
    model = rnn_encoder(**chosen)
    (ids,) = sentences([7])
    other = ids.copy()
    other[5:] = other[5:][::-1] + 1
    with torch.no_grad():
        one, two = model.encoder(texts([ids]))[:5], model.encoder(texts([other]))[:5]
    assert same(one, two) != chosen["two_way"]


@combinations(OF_RNN_ENCODER)
def test_gradient(chosen) -> None:
    given = texts(sentences([6, 7, 5]), tail=3)
    model = rnn_encoder(**chosen | {"dropout": 0.1}).train()
    reseed(5)
    said = model(given)
    target = torch.randn(said.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    (said * target).sum().backward()
    largest = max(float(p.grad.abs().max()) for p in model.parameters() if p.grad is not None)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert float(parameter.grad.abs().max()) > 1e-6 * largest, name
