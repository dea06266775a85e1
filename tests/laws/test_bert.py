"""The laws held to encoder-only models with each head: store, neighbours, order, weights, gradient, probe."""

from __future__ import annotations

from dataclasses import replace as changed
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.models.store import load_weights, to_bytes, weights
from regard.nn.dropout import reseed
from regard.nn.hooks import capture, intervene
from tests.models.small_models import assert_near, only, same, sentences, tolerance
from tests.models.small_readers import OF_BERT, bert, combinations, texts

DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
GIVEN = sentences([5, 1, 7, 3])


@combinations(OF_BERT)
def test_store(chosen, tmp_path: Path) -> None:
    model, path = bert(**chosen, dtype=torch.float32), tmp_path / "model.safetensors"
    path.write_bytes(to_bytes(weights(model)))
    loaded = bert(**chosen, dtype=torch.float32, key=1234)
    load_weights(path, loaded)
    assert all(same(before, weights(loaded)[name]) for name, before in weights(model).items())
    assert same(model(texts(GIVEN)).detach(), loaded(texts(GIVEN)).detach())


@combinations(OF_BERT)
def test_probe(chosen) -> None:
    model = bert(**chosen, dtype=torch.float32)
    with only():
        plain = model(texts(GIVEN)).detach()
    with intervene("*", lambda value: value):
        assert same(model(texts(GIVEN)).detach(), plain)


@combinations(OF_BERT)
@DTYPES
@pytest.mark.parametrize("gradient", [False, True], ids=["no_grad", "grad"])
def test_neighbours(chosen, dtype: torch.dtype, gradient: bool) -> None:
    model = bert(**chosen, dtype=dtype)
    with torch.set_grad_enabled(gradient):
        among, start = model(texts(GIVEN, tail=5, spare=2)).detach(), 0
        for ids in GIVEN:
            alone = model(texts([ids])).detach()
            assert_near(among[start : start + len(alone)], alone, tolerance(dtype))
            start += len(alone)


@combinations(OF_BERT)
@DTYPES
def test_order(chosen, dtype: torch.dtype) -> None:
    model, random = bert(**chosen, dtype=dtype), np.random.default_rng(3)
    starts = np.cumsum([0, *map(len, GIVEN)])[:-1]
    order = [start + random.permutation(len(ids)) for start, ids in zip(starts, GIVEN, strict=True)]
    plain, shuffled = texts(GIVEN), texts(GIVEN)
    order_T = torch.from_numpy(np.concatenate(order))
    shuffled.ids_T[:] = plain.ids_T[order_T]
    with torch.no_grad():
        expected_SD, found_SD = model.encoder(plain)[order_T], model.encoder(shuffled)
    if chosen["positions"] == "none":
        assert_near(found_SD, expected_SD, tolerance(dtype))
    else:
        assert (found_SD - expected_SD).abs().max() > 0.01


@combinations(OF_BERT)
@DTYPES
def test_weights(chosen, dtype: torch.dtype) -> None:
    model = bert(**chosen, dtype=dtype)
    with capture(["*.weight"]) as heard, torch.no_grad():
        model(texts(GIVEN, tail=2))
    assert sorted(heard) == ["encoder.0.attention.weight", "encoder.1.attention.weight"]
    for tensors in heard.values():
        assert [weight_HLM.shape[1] for weight_HLM in tensors] == [len(ids) for ids in GIVEN]
        for weight_HLM in tensors:
            assert (weight_HLM >= 0).all()
            assert_near(weight_HLM.sum(-1), torch.ones(weight_HLM.shape[:-1]), tolerance(dtype))


@combinations(OF_BERT)
def test_gradient(chosen) -> None:
    given = texts(sentences([6, 7, 5]), tail=3)
    given = changed(given, segments_T=torch.arange(len(given.ids_T)) % 2)  # batch norm does not see what all have
    model = bert(**{**chosen, "dropout": 0.1, "max_positions": 7}).train()
    reseed(5)
    said = model(given)
    if chosen["head"] == "words":
        said = model.head.scores(said)
    target = torch.randn(said.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    (said * target).sum().backward()
    largest = max(float(p.grad.abs().max()) for p in model.parameters() if p.grad is not None)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        size = float(parameter.grad.abs().max())
        if name.endswith(".key.bias"):
            assert size < 1e-12 * largest, name  # the softmax does not see it
        else:
            assert size > 1e-6 * largest, name
