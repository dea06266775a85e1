"""The laws held to encoders of images: store, neighbours, order, weights, gradient, probe."""

from __future__ import annotations

from dataclasses import replace as changed
from pathlib import Path

import pytest
import torch

from regard.models.store import load_weights, to_bytes, weights
from regard.nn.dropout import reseed
from regard.nn.hooks import capture, intervene
from tests.models.small_models import assert_near, only, same, tolerance
from tests.models.small_readers import CLASSES, OF_VIT, combinations, images, vit

DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
COUNT, TOKENS = 3, 7
"""Images, and tokens of each: the class token and six patches."""


@combinations(OF_VIT)
def test_store(chosen, tmp_path: Path) -> None:
    model, path = vit(**chosen, dtype=torch.float32), tmp_path / "model.safetensors"
    path.write_bytes(to_bytes(weights(model)))
    loaded = vit(**chosen, dtype=torch.float32, key=1234)
    load_weights(path, loaded)
    assert all(same(before, weights(loaded)[name]) for name, before in weights(model).items())
    given = images(COUNT, torch.float32)
    assert same(model(given).detach(), loaded(given).detach())


@combinations(OF_VIT)
def test_probe(chosen) -> None:
    model, given = vit(**chosen, dtype=torch.float32), images(COUNT, torch.float32)
    with only():
        plain = model(given).detach()
    with intervene("*", lambda value: value):
        assert same(model(given).detach(), plain)


@combinations(OF_VIT)
@DTYPES
@pytest.mark.parametrize("gradient", [False, True], ids=["no_grad", "grad"])
def test_neighbours(chosen, dtype: torch.dtype, gradient: bool) -> None:
    model, together = vit(**chosen, dtype=dtype), images(COUNT, dtype, tail=5)
    with torch.set_grad_enabled(gradient):
        among_BC = model(together).detach()
        for number in range(COUNT):
            alone = images(1, dtype)
            alone.pixels_TP[:] = together.pixels_TP[number * TOKENS : (number + 1) * TOKENS]
            assert_near(among_BC[number : number + 1], model(alone).detach(), tolerance(dtype))


@combinations(OF_VIT)
@DTYPES
def test_order(chosen, dtype: torch.dtype) -> None:
    model, plain = vit(**chosen, dtype=dtype), images(1, dtype)
    order_T = torch.tensor([0, 4, 1, 6, 2, 5, 3])  # the class token stays
    shuffled = changed(plain, pixels_TP=plain.pixels_TP[order_T])
    with torch.no_grad():
        expected_SD, found_SD = model.encoder(plain)[order_T], model.encoder(shuffled)
        if chosen["positions"] == "none":
            assert_near(found_SD, expected_SD, tolerance(dtype))
            assert_near(model(shuffled), model(plain), tolerance(dtype))
        else:
            assert (found_SD - expected_SD).abs().max() > 0.01


@combinations(OF_VIT)
@DTYPES
def test_weights(chosen, dtype: torch.dtype) -> None:
    model = vit(**chosen, dtype=dtype)
    with capture(["*.weight"]) as heard, torch.no_grad():
        model(images(COUNT, dtype, tail=2))
    assert sorted(heard) == ["encoder.0.attention.weight", "encoder.1.attention.weight"]
    for tensors in heard.values():
        assert len(tensors) == COUNT
        for weight_HLM in tensors:
            assert weight_HLM.shape[1:] == (TOKENS, TOKENS)
            assert (weight_HLM >= 0).all()
            assert_near(weight_HLM.sum(-1), torch.ones(weight_HLM.shape[:-1]), tolerance(dtype))


@combinations(OF_VIT)
def test_gradient(chosen) -> None:
    model = vit(**{**chosen, "dropout": 0.1}).train()
    reseed(5)
    score_BC = model(images(COUNT, tail=3))
    target = torch.randn(COUNT, CLASSES, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    (score_BC * target).sum().backward()
    largest = max(float(p.grad.abs().max()) for p in model.parameters() if p.grad is not None)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        size = float(parameter.grad.abs().max())
        if name.endswith(".key.bias"):
            assert size < 1e-12 * largest, name  # the softmax does not see it
        else:
            assert size > 1e-6 * largest, name
