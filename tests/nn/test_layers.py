import numpy as np
import pytest
import torch
from torch import nn

from regard.nn.attention.multi_head import MultiHeadAttention
from regard.nn.dropout import Dropout
from regard.nn.layers import DecoderLayer, EncoderLayer, FeedForward, PostNorm, PreNorm
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
    layer = EncoderLayer(attention(), FeedForward(6, 9, nn.ReLU()), residuals(place, 2)).double()
    stir(layer)
    of = sequences(SIZES)
    kind = equations.Kind(HEADS, place)
    expected = [equations.encoder_layer(x, arrays(layer), kind) for x in split(X_TD, SIZES)]
    assert_near(layer(X_TD, Layout(of, of)), np.concatenate(expected), 1e-12)


def test_an_encoder_layer_under_causal_does_not_look_ahead() -> None:
    layer = EncoderLayer(attention(), FeedForward(6, 9, nn.ReLU()), residuals("pre", 2)).double()
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
    layer = DecoderLayer(attention(), attention(), FeedForward(6, 9, nn.ReLU()), residuals(place, 3)).double()
    stir(layer)
    own, memory = sequences(SIZES), sequences(MEMORY_SIZES)
    found_TD = layer(X_TD, MEMORY_SD, Layout(own, own), Layout(own, memory))
    kind, halves = equations.Kind(HEADS, place), (split(X_TD, SIZES), split(MEMORY_SD, MEMORY_SIZES))
    expected = [equations.decoder_layer(x, m, arrays(layer), kind) for x, m in zip(*halves, strict=True)]
    assert_near(found_TD, np.concatenate(expected), 1e-12)
