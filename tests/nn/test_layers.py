"""What enters a stack, feed-forward networks and dropout of a layer; whole layers: ``models/test_against_torch``."""

import numpy as np
import pytest
import torch
from torch import nn

from regard.nn.dropout import Dropout
from regard.nn.embeddings import InputEmbedding, TokenEmbedding
from regard.nn.layers import FeedForward, GatedFeedForward, PlainFeedForward, PreNorm
from regard.nn.normalization import LayerNorm
from regard.nn.positions import NoPositions, Sinusoidal
from tests.models.small_models import arrays, assert_near, stir
from tests.reference import equations

INPUT_TD = torch.randn(6, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def table() -> TokenEmbedding:
    made = TokenEmbedding(8, 10).double()
    nn.init.normal_(made.weight)
    return made


def test_what_enters_a_stack() -> None:
    tokens = table()
    ids_T, positions_T, weights = torch.tensor([3, 0, 8, 7]), torch.tensor([0, 1, 0, 1]), arrays(tokens)["weight"]
    found_TD = InputEmbedding(tokens, Sinusoidal(10), dropout=0.0)(ids_T, positions_T, 2)
    rows = [equations.embed(ids, weights, equations.sinusoids(2, 10)) for ids in ([3, 0], [8, 7])]
    assert_near(found_TD, np.concatenate(rows), 1e-6)
    found_TD = InputEmbedding(tokens, NoPositions(), dropout=0.0)(ids_T, positions_T, 2)
    assert_near(found_TD, equations.embed([3, 0, 8, 7], weights, None), 1e-12)


def test_the_start_symbols_row_is_never_learned_and_never_predicted() -> None:
    tokens = table()
    tokens(torch.tensor([3, 8, 8])).sum().backward()
    assert tokens.weight.grad is not None
    assert tokens.weight.grad.abs().sum(1).nonzero()[:, 0].tolist() == [3]
    assert_near(tokens.scores(INPUT_TD), INPUT_TD.numpy() @ arrays(tokens)["weight"][:8].T, 1e-12)


def test_dropout_is_on_the_sublayers_output() -> None:
    part = PreNorm(LayerNorm(10).double(), Dropout(0.5))
    changed = part.leave(INPUT_TD, torch.ones_like(INPUT_TD)) - INPUT_TD
    assert sorted(changed.unique().round(decimals=9).tolist())[0] == 0
    assert changed.max().item() == pytest.approx(2.0)


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("activation", [nn.GELU("tanh"), nn.SiLU(), nn.ReLU()], ids=["gelu", "swish", "relu"])
def test_what_the_activation_opens_lets_the_other_projection_through(activation: nn.Module, biases: bool) -> None:
    part = GatedFeedForward(10, 14, activation, biases=biases).double()
    stir(part)
    weights = arrays(part)

    def line(name: str, x) -> torch.Tensor:
        product = torch.as_tensor(x) @ torch.as_tensor(weights[f"{name}.weight"]).T
        return product + torch.as_tensor(weights[f"{name}.bias"]) if biases else product

    opened = activation(line("inner", INPUT_TD)) * line("gate", INPUT_TD)
    assert_near(part(INPUT_TD), line("outer", opened), 1e-12)
    assert any(name.endswith("bias") for name in weights) == biases


@pytest.mark.parametrize("kind", [PlainFeedForward, GatedFeedForward])
def test_it_is_position_wise_and_drops_inside(kind: type[FeedForward]) -> None:
    part = kind(10, 14, nn.SiLU(), dropout=0.5).double()
    assert not torch.allclose(part(INPUT_TD), part(INPUT_TD))
    part.eval()
    assert torch.equal(part(INPUT_TD), part(INPUT_TD))
    order_T = torch.randperm(6)
    assert_near(part(INPUT_TD)[order_T], part(INPUT_TD[order_T]), 1e-12)


def test_a_plain_one_without_biases_has_none() -> None:
    part = PlainFeedForward(10, 14, nn.ReLU(), biases=False).double()
    assert sorted(arrays(part)) == ["inner.weight", "outer.weight"]
    assert not part(torch.zeros(3, 10, dtype=torch.float64)).any()
