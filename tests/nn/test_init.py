import torch
from torch import nn

from regard.models.build import transformer
from regard.nn.attention.multi_head import MultiHeadAttention, Scoring
from regard.nn.dropout import Dropout
from regard.nn.embeddings import InputEmbedding, TokenEmbedding
from regard.nn.init import initialise
from regard.nn.layers import EncoderLayer, PlainFeedForward, PreNorm
from regard.nn.layout import Layout, Sequences
from regard.nn.normalization import LayerNorm
from regard.nn.ops import Linear
from regard.nn.positions import Relative
from tests.models.small_models import section


def test_how_they_are_drawn() -> None:
    model = transformer(section(d_model=64, d_ff=256, heads=4, positions="learned"), 500, 500, 3)
    for module in model.modules():
        if isinstance(module, Linear):
            bound = (6 / sum(module.weight.shape)) ** 0.5
            assert module.weight.abs().max() <= bound
            assert abs(module.weight.std() - bound / 3**0.5) < 0.05 * bound
            assert (module.bias == 0).all()
        elif isinstance(module, TokenEmbedding):
            assert (module.weight[module.pieces] == 0).all()
            assert abs(module.weight[: module.pieces].std() - 1 / 8) < 0.01
    assert abs(model.encoder.input.positions.weight.std() - 1 / 8) < 0.01


def own_encoder() -> nn.ModuleList:
    """Parts as a user puts them together."""
    positions = Relative(2, 8, 16, True)
    attention = MultiHeadAttention(8, 2, 4, 4, scoring=Scoring(scaled=False, positions=positions))
    residuals = [PreNorm(LayerNorm(8), Dropout(0.0)) for _ in range(2)]
    layer = EncoderLayer(attention, PlainFeedForward(8, 16, nn.ReLU()), residuals)
    return nn.ModuleList([InputEmbedding(TokenEmbedding(20, 8), positions, 0.0), layer])


def test_a_model_of_parts_works_as_it_is_made() -> None:
    torch.manual_seed(4)
    input, layer = first = own_encoder()
    of = Sequences.end_to_end([3, 2])
    x_TD = layer(input(torch.tensor([1, 4, 0, 3, 20]), of.positions_T, of.longest), Layout(of, of))
    assert x_TD.isfinite().all()
    assert len(x_TD.unique()) > 30
    assert layer.attention.query.weight.abs().max() <= 0.5 * layer.attention.key.weight.abs().max() * 1.2
    torch.manual_seed(4)
    again = own_encoder()
    for one, other in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)
    initialise(first, 7)
    assert not torch.equal(input.tokens.weight, again[0].tokens.weight)
    initialise(again, 7)
    for one, other in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)
