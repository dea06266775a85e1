"""Laws that hold to the bit: store, causal, refilling, probe. Evaluation mode, but where a gradient is asked for."""

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch

from regard.config import Decoding
from regard.decoding.hypotheses import Symbols
from regard.decoding.search import sample, search
from regard.models.decoding import stepper
from regard.models.store import load_weights, to_bytes, weights
from regard.nn import embeddings, ops
from regard.nn.hooks import capture, intervene
from tests.laws.families import ALL, DTYPES, GRADIENT, SOURCES, WRITING, Family, held
from tests.models.small_models import PIECES, assert_near, only, same, sentences, transformer


@pytest.mark.one_of(12)
@held(*ALL)
def test_store(family: Family, tmp_path: Path) -> None:
    model, path = family.model(torch.float32), tmp_path / "model.safetensors"
    path.write_bytes(to_bytes(weights(model)))
    loaded = family.model(torch.float32, key=1234)
    load_weights(path, loaded)
    before, after = weights(model), weights(loaded)
    assert before.keys() == after.keys()
    assert all(same(before[name], after[name]) for name in before)
    given = family.given(torch.float32)
    assert same(model(given).detach(), loaded(given).detach())


def test_store_keeps_every_bit_pattern(tmp_path: Path) -> None:
    model, loaded = transformer(dtype=torch.float32), transformer(dtype=torch.float32, key=1234)
    odd = torch.tensor([np.nan, -np.nan, np.inf, -np.inf, -0.0, 1e-45, -3e-39, 3.4e38], dtype=torch.float32)
    with torch.no_grad():
        model.output.weight[3, :8] = odd
    path = tmp_path / "model.safetensors"
    path.write_bytes(to_bytes(weights(model)))
    load_weights(path, loaded)
    assert same(loaded.output.weight[3, :8].detach().contiguous(), odd)


@pytest.mark.one_of(72)
@held(*WRITING)
@DTYPES
@GRADIENT
def test_causal(family: Family, dtype: torch.dtype, gradient: bool) -> None:
    model, given = family.model(dtype), family.given(dtype)
    of = family.written(given).sequences
    with torch.set_grad_enabled(gradient):
        before_TD = model(given).detach().clone()
        for b, (start, length) in enumerate(zip(of.starts_B.tolist(), of.lengths_B.tolist(), strict=True)):
            for place in range(start + 1, start + length):
                changed = family.given(dtype)
                ids_T = family.written(changed).ids_T
                ids_T[place] = 2 + (ids_T[place] - 1) % (PIECES - 2)
                after_TD = model(changed).detach()
                assert same(after_TD[:place].clone(), before_TD[:place].clone()), (b, place)
                assert not torch.equal(after_TD[place], before_TD[place])
                assert same(after_TD[start + length :].clone(), before_TD[start + length :].clone())


@pytest.mark.one_of(16)
@held(*ALL)
def test_probe(family: Family) -> None:
    """Beside the reference; a recurrence has its own where something is heard inside."""
    model, given = family.model(torch.float32), family.given(torch.float32)
    with only(), intervene("nothing" if family.attends else "*.weight", lambda value: value):
        plain = model(given).detach()
    assert_near(model(given), plain, 1e-4)
    with intervene("*", lambda value: value):
        assert same(model(given).detach(), plain)
    with capture(["*"]):
        assert same(model(given).detach(), plain)


@pytest.mark.one_of(12)
@held("transformer", "gpt")
def test_probe_of_a_step(family: Family) -> None:
    (sources, tokens_N), step = family.steps(), stepper(family.model(torch.float32))
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


def sigmoid_row_by_row(x_TD: torch.Tensor) -> torch.Tensor:
    return torch.stack([torch.special.expit(x_D.clone()) for x_D in x_TD])


@pytest.mark.one_of(72)
@held("transformer")
@pytest.mark.parametrize("beam", [1, 3])
def test_refilling(family: Family, beam: int) -> None:
    """In float64, the reference way, products row by row: the search itself adds nothing of the company."""
    model = family.model()
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        layer.feedforward.activation = RowByRow(layer.feedforward.activation)
    sources = sentences([3, 6, 1, 4, 2])

    def found(given: list[np.ndarray], tokens: int) -> list[object]:
        decoding = Decoding(beam=beam, max_extra=3, tokens=tokens)
        return list(search(stepper(model), given, decoding, Symbols(PIECES), nbest=beam))

    with (
        only(),
        patch.object(ops, "product", row_by_row),
        patch.object(embeddings, "matmul", row_by_row_matmul),
        patch.object(torch.Tensor, "sigmoid", sigmoid_row_by_row),
    ):
        alone = [found([source], 10_000)[0] for source in sources]
        for tokens in (16, 24):  # a budget for two or three rows: sentences wait and enter
            assert found(sources, tokens) == alone
        assert found(sources[::-1], 10_000)[::-1] == alone


@pytest.mark.one_of(10)
@held("gpt")
def test_samples_do_not_depend_on_their_company(family: Family) -> None:
    model = family.model()
    options = {"symbols": Symbols(PIECES), "seed": 5, "samples": 2, "firsts": [3, 4, 5, 6], "limits": [6] * 4}
    together, waiting = (sample(stepper(model), SOURCES, Decoding(tokens=n), **options) for n in (10_000, 25))
    assert [[h.tokens for h in group] for group in waiting] == [[h.tokens for h in group] for group in together]
