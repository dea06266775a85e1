"""The layers of encoder and decoder and their feed-forward network, against their equations."""

import numpy as np
import pytest
import torch
from torch import nn

from regard.nn.attention.multi_head import MultiHeadAttention
from regard.nn.dropout import Dropout
from regard.nn.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    GatedFeedForward,
    PlainFeedForward,
    PostNorm,
    PreNorm,
)
from regard.nn.layout import Layout
from regard.nn.normalization import LayerNorm
from tests.models.small_models import arrays, assert_near, sequences, stir
from tests.reference import equations

SIZES, HEADS = [3, 1, 2], 2
X_TD, MEMORY_SD = (torch.randn(n, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(n)) for n in (6, 7))
MEMORY_SIZES = [2, 4, 1]


def residuals(place: str, count: int) -> list:
    kind = {"post": PostNorm, "pre": PreNorm}[place]
    return [kind(LayerNorm(6), Dropout(0.0)) for _ in range(count)]


def attention() -> MultiHeadAttention:
    return MultiHeadAttention(6, HEADS, 3, 4)


def split(x_TD: torch.Tensor, lengths: list[int]) -> list[np.ndarray]:
    return np.split(x_TD.numpy(), np.cumsum(lengths)[:-1])


@pytest.mark.parametrize("place", ["post", "pre"])
def test_encoder_layer(place: str) -> None:
    layer = EncoderLayer(attention(), PlainFeedForward(6, 9, nn.ReLU()), residuals(place, 2)).double()
    stir(layer)
    of = sequences(SIZES)
    kind = equations.Kind(HEADS, place)
    expected = [equations.encoder_layer(x, arrays(layer), kind) for x in split(X_TD, SIZES)]
    assert_near(layer(X_TD, Layout(of, of)), np.concatenate(expected), 1e-12)


def test_an_encoder_layer_under_causal_does_not_look_ahead() -> None:
    layer = EncoderLayer(attention(), PlainFeedForward(6, 9, nn.ReLU()), residuals("pre", 2)).double()
    stir(layer)
    layout = Layout(sequences(SIZES), sequences(SIZES))
    changed_TD = X_TD.clone()
    changed_TD[2, 0] += 3  # of one entry: what all entries of a token have in common, layer norm takes out again
    difference_T = (layer(changed_TD, layout, causal=True) - layer(X_TD, layout, causal=True)).abs().amax(1)
    assert difference_T.nonzero()[:, 0].tolist() == [2]
    difference_T = (layer(changed_TD, layout) - layer(X_TD, layout)).abs().amax(1)
    assert (difference_T > 1e-3).tolist() == [True, True, True, False, False, False]
    assert not difference_T[3:].any()


@pytest.mark.parametrize("place", ["post", "pre"])
def test_decoder_layer(place: str) -> None:
    layer = DecoderLayer(attention(), attention(), PlainFeedForward(6, 9, nn.ReLU()), residuals(place, 3)).double()
    stir(layer)
    own, memory = sequences(SIZES), sequences(MEMORY_SIZES)
    found_TD = layer(X_TD, MEMORY_SD, Layout(own, own), Layout(own, memory))
    kind, halves = equations.Kind(HEADS, place), (split(X_TD, SIZES), split(MEMORY_SD, MEMORY_SIZES))
    expected = [equations.decoder_layer(x, m, arrays(layer), kind) for x, m in zip(*halves, strict=True)]
    assert_near(found_TD, np.concatenate(expected), 1e-12)


INPUT_TD = torch.randn(6, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


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


def test_it_is_the_one_of_t5() -> None:
    modeling = pytest.importorskip("transformers.models.t5.modeling_t5")
    from transformers import T5Config

    theirs = modeling.T5DenseGatedActDense(T5Config(d_model=10, d_ff=14, dense_act_fn="gelu_new", dropout_rate=0.0))
    theirs = theirs.double().eval()
    part = GatedFeedForward(10, 14, nn.GELU("tanh"), biases=False).double()
    names = {"inner": "wi_0", "gate": "wi_1", "outer": "wo"}
    part.load_state_dict({f"{our}.weight": getattr(theirs, their).weight for our, their in names.items()})
    assert_near(part(INPUT_TD), theirs(INPUT_TD), 1e-9)


@pytest.mark.parametrize("kind", [PlainFeedForward, GatedFeedForward])
def test_it_is_position_wise_and_drops_inside(kind: type[FeedForward]) -> None:
    part = kind(10, 14, nn.SiLU(), dropout=0.5).double()
    assert not torch.allclose(part(INPUT_TD), part(INPUT_TD))
    part.eval()
    assert torch.equal(part(INPUT_TD), part(INPUT_TD))
    order_T = torch.randperm(6)
    assert_near(part(INPUT_TD)[order_T], part(INPUT_TD[order_T]), 1e-12)


def test_every_weight_of_it_is_learned() -> None:
    part = GatedFeedForward(10, 14, nn.SiLU()).double()
    stir(part)
    part(INPUT_TD).square().sum().backward()
    for name, parameter in part.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_a_plain_one_without_biases_has_none() -> None:
    part = PlainFeedForward(10, 14, nn.ReLU(), biases=False).double()
    assert sorted(arrays(part)) == ["inner.weight", "outer.weight"]
    assert not part(torch.zeros(3, 10, dtype=torch.float64)).any()
