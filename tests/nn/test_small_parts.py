"""Embeddings, positions, norms, feed-forward, residual connections: each against its equation."""

import numpy as np
import pytest
import torch
from torch import nn

from regard.nn.dropout import Dropout
from regard.nn.embeddings import InputEmbedding, TokenEmbedding
from regard.nn.layers import PlainFeedForward, PostNorm, PreNorm
from regard.nn.normalization import LayerNorm, RMSNorm
from regard.nn.positions import Learned, NoPositions, Sinusoidal, sinusoids
from tests.models.small_models import arrays, assert_near, stir
from tests.reference import equations

X_TD = torch.randn(6, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize(("length", "d_model"), [(5, 6), (600, 8), (3, 7)])
def test_sinusoids_are_interleaved(length: int, d_model: int) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        table_SD = sinusoids(length, d_model)
    finally:
        torch.set_default_dtype(torch.float32)
    assert_near(table_SD, equations.sinusoids(length, d_model), 1e-12)


def test_the_table_of_sinusoids_grows() -> None:
    part = Sinusoidal(10, length=4)
    positions_T = torch.tensor([0, 1, 3, 9, 0, 2])
    expected = X_TD.numpy() + equations.sinusoids(10, 10)[positions_T]
    assert_near(part.embed(X_TD, positions_T, 10), expected, 1e-6)
    assert len(part.table_SD) >= 10
    assert not part.state_dict()  # nothing of it is saved


def test_learned_positions_end_with_their_table() -> None:
    part = Learned(10, 4).double()
    nn.init.normal_(part.weight)
    positions_T = torch.tensor([0, 1, 3, 3, 0, 2])
    assert_near(part.embed(X_TD, positions_T, 4), X_TD + part.weight[positions_T], 1e-15)
    with pytest.raises(ValueError):
        part.embed(X_TD, positions_T, 5)


def test_what_enters_a_stack() -> None:
    table = TokenEmbedding(8, 10).double()
    nn.init.normal_(table.weight)
    part = InputEmbedding(table, Sinusoidal(10), dropout=0.0)
    ids_T, positions_T = torch.tensor([3, 0, 8, 7]), torch.tensor([0, 1, 0, 1])
    found_TD = part(ids_T, positions_T, 2)
    weights = arrays(table)["weight"]
    rows = [equations.embed(ids, weights, equations.sinusoids(2, 10)) for ids in ([3, 0], [8, 7])]
    assert_near(found_TD, np.concatenate(rows), 1e-6)
    part = InputEmbedding(table, NoPositions(), dropout=0.0)
    rows = [equations.embed([3, 0, 8, 7], weights, None)]
    assert_near(part(ids_T, positions_T, 2), np.concatenate(rows), 1e-12)


def test_the_start_symbols_row_is_never_learned_and_never_predicted() -> None:
    table = TokenEmbedding(8, 10).double()
    nn.init.normal_(table.weight)
    table(torch.tensor([3, 8, 8])).sum().backward()
    assert table.weight.grad is not None
    assert table.weight.grad.abs().sum(1).nonzero()[:, 0].tolist() == [3]
    score_NV = table.scores(X_TD)
    assert_near(score_NV, X_TD.numpy() @ arrays(table)["weight"][:8].T, 1e-12)


def test_norms() -> None:
    for part, equation in ((LayerNorm(10), equations.layer_norm), (RMSNorm(10), equations.rms_norm)):
        part.double()
        stir(part)
        assert_near(part(X_TD), equation(X_TD.numpy(), arrays(part)), 1e-12)


@pytest.mark.parametrize(
    ("activation", "equation"), [(nn.ReLU(), equations.relu), (nn.GELU(), equations.gelu)], ids=["relu", "gelu"]
)
def test_feed_forward(activation: nn.Module, equation) -> None:
    part = PlainFeedForward(10, 14, activation).double()
    stir(part)
    assert_near(part(X_TD), equations.feed_forward(X_TD.numpy(), arrays(part), equation), 1e-12)


def test_residual_connections() -> None:
    for kind, place in ((PostNorm, "post"), (PreNorm, "pre")):
        part = kind(LayerNorm(10).double(), Dropout(0.3)).eval()
        stir(part)
        found = part.leave(X_TD, part.enter(X_TD).cos())
        expected = equations.Kind(1, place).residual(X_TD.numpy(), np.cos, arrays(part))
        assert_near(found, expected, 1e-12)


def test_dropout_is_on_the_sublayers_output() -> None:
    part = PreNorm(LayerNorm(10).double(), Dropout(0.5))
    changed = part.leave(X_TD, torch.ones_like(X_TD)) - X_TD
    assert sorted(changed.unique().round(decimals=9).tolist())[0] == 0
    assert changed.max().item() == pytest.approx(2.0)
