"""Laws that hold to the bit: store, causal, refilling, probe. Evaluation mode, but where a gradient is asked for."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch

from regard.config import Decoding
from regard.decoding.rows import Symbols
from regard.decoding.search import search
from regard.models.build import transformer
from regard.models.decoding.transformer import TransformerStepper
from regard.models.store import load_weights, to_bytes, weights
from regard.nn import embeddings, ops
from regard.nn.hooks import capture, intervene
from tests.models.small_models import PIECES, only, same, section, sentences, small, some_pairs

LENGTHS = [(5, 4), (1, 6), (7, 1), (3, 3)]


def test_store(choices, tmp_path: Path) -> None:
    model = small(section(**choices), dtype=torch.float32)
    path = tmp_path / "model.safetensors"
    path.write_bytes(to_bytes(weights(model)))
    loaded = transformer(section(**choices), PIECES, PIECES, key=1234).eval()
    load_weights(path, loaded)
    before, after = weights(model), weights(loaded)
    assert before.keys() == after.keys()
    assert all(same(before[name], after[name]) for name in before)
    given = some_pairs(LENGTHS)
    assert same(model(given).detach(), loaded(given).detach())


def test_store_keeps_every_bit_pattern(tmp_path: Path) -> None:
    model = small(dtype=torch.float32)
    odd = torch.tensor([np.nan, -np.nan, np.inf, -np.inf, -0.0, 1e-45, -3e-39, 3.4e38], dtype=torch.float32)
    with torch.no_grad():
        model.output.weight[3, :8] = odd
    path = tmp_path / "model.safetensors"
    path.write_bytes(to_bytes(weights(model)))
    loaded = transformer(section(), PIECES, PIECES)
    load_weights(path, loaded)
    assert same(loaded.output.weight[3, :8].detach().contiguous(), odd)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("gradient", [False, True], ids=["no_grad", "grad"])
@pytest.mark.one_of(2)
def test_causal(choices, dtype: torch.dtype, gradient: bool) -> None:
    model = small(section(**choices), dtype=dtype)
    given = some_pairs(LENGTHS)
    with torch.set_grad_enabled(gradient):
        before_TD = model(given).detach().clone()
        for b, (start, length) in enumerate(zip(*bounds(given.target.sequences), strict=True)):
            for place in range(1, length):
                changed = some_pairs(LENGTHS)
                changed.target.ids_T[start + place] = 2 + (changed.target.ids_T[start + place] - 1) % (PIECES - 2)
                after_TD = model(changed).detach()
                assert same(after_TD[: start + place].clone(), before_TD[: start + place].clone()), (b, place)
                assert not torch.equal(after_TD[start + place], before_TD[start + place])
                assert same(after_TD[start + length :].clone(), before_TD[start + length :].clone())


def bounds(of) -> tuple[list[int], list[int]]:
    return of.starts_B.tolist(), of.lengths_B.tolist()


def test_probe(choices) -> None:
    model, given = small(section(**choices), dtype=torch.float32), some_pairs(LENGTHS)
    with only():
        plain_TD = model(given).detach()
    with intervene("*", lambda value: value):
        assert same(model(given).detach(), plain_TD)
    with capture(["*"]):
        assert same(model(given).detach(), plain_TD)
    sources, tokens_N = sentences([3, 5]), np.array([PIECES, PIECES])
    step = TransformerStepper(model)
    with only():
        plain = step.step(step.start(sources), tokens_N)[1].all()
    with intervene("*", lambda value: value):
        assert np.array_equal(step.step(step.start(sources), tokens_N)[1].all(), plain)


def row_by_row(x_TD: torch.Tensor, weight_FD: torch.Tensor, bias_F: torch.Tensor, path: str) -> torch.Tensor:
    """x Wᵀ + b, each token's product by itself, so that it rounds alike in any company."""
    bias = 0.0 if bias_F is None else bias_F
    return torch.stack([weight_FD @ x_D.clone() + bias for x_D in x_TD])


def row_by_row_matmul(left: torch.Tensor, right: torch.Tensor, path: str) -> torch.Tensor:
    return torch.stack([right.t() @ row.clone() for row in left])


class RowByRow(torch.nn.Module):
    """An activation token by token: vector units and the few entries behind them round otherwise."""

    def __init__(self, activation: torch.nn.Module) -> None:
        super().__init__()
        self.activation = activation

    def forward(self, x_TF: torch.Tensor) -> torch.Tensor:
        return torch.stack([self.activation(x_F.clone()) for x_F in x_TF])


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.one_of(4)
def test_refilling(choices, beam: int) -> None:
    """In float64, the reference way, products row by row: the search itself adds nothing of the company."""
    model = small(section(**choices))
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        layer.feedforward.activation = RowByRow(layer.feedforward.activation)
    sources = sentences([3, 6, 1, 4, 2])
    symbols = Symbols(PIECES)
    with only(), patch.object(ops, "product", row_by_row), patch.object(embeddings, "matmul", row_by_row_matmul):
        alone = [search(TransformerStepper(model), [s], options(beam, 10_000), symbols, nbest=beam)[0] for s in sources]
        for tokens in (16, 24):  # a budget for two or three rows: sentences wait and enter
            assert search(TransformerStepper(model), sources, options(beam, tokens), symbols, nbest=beam) == alone
        backwards = search(TransformerStepper(model), sources[::-1], options(beam, 10_000), symbols, nbest=beam)
    assert backwards[::-1] == alone


def options(beam: int, tokens: int) -> Decoding:
    return Decoding(beam=beam, max_extra=3, tokens=tokens)
