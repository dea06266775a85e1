import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from regard.models.build import transformer
from regard.nn.attention.multi_head import MultiHeadAttention, Scoring
from regard.nn.dropout import Dropout
from regard.nn.embeddings import InputEmbedding, TokenEmbedding
from regard.nn.heads import Attention
from regard.nn.init import initialise
from regard.nn.layers import EncoderLayer, GatedFeedForward, PlainFeedForward, PreNorm
from regard.nn.layout import Layout, Sequences
from regard.nn.normalization import BatchNorm, GroupNorm, LayerNorm, RMSNorm
from regard.nn.ops import Linear
from regard.nn.positions import Learned, LinearBias, Relative
from regard.nn.recurrent import Gru
from regard.system.errors import RegardError, UsageError
from tests.models.small_models import section
from tests.refusals import refused


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


@pytest.mark.parametrize(
    ("make", "where", "holds"),
    [
        (lambda: MultiHeadAttention(8, 0, 4, 4), "heads of MultiHeadAttention", "not 0"),
        (lambda: MultiHeadAttention(8, -2, 4, 4), "heads of MultiHeadAttention", "not -2"),
        (lambda: MultiHeadAttention(8, 2, 0, 4), "d_k of MultiHeadAttention", "not 0"),
        (lambda: MultiHeadAttention(0, 2, 4, 4), "d_model of MultiHeadAttention", "not 0"),
        (lambda: MultiHeadAttention(8, 1.5, 4, 4), "heads of MultiHeadAttention", "not 1.5"),  # type: ignore[arg-type]
        (lambda: MultiHeadAttention(8, 2, 4, 4, dropout=2.0), "dropout of MultiHeadAttention", "not 2.0"),
        (lambda: MultiHeadAttention(8, 2, 4, 4, dropout=-1.0), "dropout of MultiHeadAttention", "not -1.0"),
        (lambda: Linear(4, 0), "Linear", "0 x 4"),
        (lambda: PlainFeedForward(8, 0, nn.ReLU()), "Linear", "0 x 8"),
        (lambda: TokenEmbedding(10, 0), "TokenEmbedding", "11 x 0"),
        (lambda: Learned(8, 0), "Learned", "0 x 8"),
        (lambda: LinearBias(0), "heads of LinearBias", "not 0"),
        (lambda: Relative(0, 8, 16, True), "Relative", "8 x 0"),
        (lambda: LayerNorm(0), "LayerNorm", "of 0"),
        (lambda: Gru(4, 0), "size of Gru", "not 0"),
        (lambda: Attention(0), "Linear", "0 x 0"),
        (lambda: Dropout(1.0), "probability of Dropout", "1.0"),
        (lambda: Dropout(-0.1), "probability of Dropout", "-0.1"),
    ],
)
def test_sizes_of_which_nothing_can_be_made_are_refused(make: Callable[[], object], where: str, holds: str) -> None:
    for place in ("cpu", "meta"):
        with refused(UsageError, where, holds), torch.device(place):
            make()


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


OF = Sequences.end_to_end([3, 2])
X_TD = torch.randn(5, 8, generator=torch.Generator().manual_seed(1))
CALLS: dict[str, tuple[Callable[[], nn.Module], Callable[[nn.Module], Tensor]]] = {
    "linear": (lambda: Linear(8, 8), lambda part: part(X_TD)),
    "attention": (lambda: MultiHeadAttention(8, 2, 4, 4), lambda part: part(X_TD, X_TD, Layout(OF, OF), causal=False)),
    "layer": (lambda: own_encoder()[1], lambda part: part(X_TD, Layout(OF, OF))),
    "plain": (lambda: PlainFeedForward(8, 16, nn.ReLU()), lambda part: part(X_TD)),
    "gated": (lambda: GatedFeedForward(8, 16, nn.ReLU()), lambda part: part(X_TD)),
    "layer norm": (lambda: LayerNorm(8), lambda part: part(X_TD)),
    "rms norm": (lambda: RMSNorm(8), lambda part: part(x_TD=X_TD)),
    "group norm": (lambda: GroupNorm(8, 2), lambda part: part(X_TD)),
    "batch norm": (lambda: BatchNorm(8), lambda part: part(X_TD)),
    "embedding": (lambda: TokenEmbedding(20, 8), lambda part: part(torch.tensor([1, 2]))),
    "pooling": (lambda: Attention(8), lambda part: part(X_TD, OF)),
}
"""Parts with weights, and a call of each."""


def hooks_of(model: nn.Module) -> int:
    return sum(len(part._forward_pre_hooks) + len(part._forward_pre_hooks_with_kwargs) for part in model.modules())


@pytest.mark.parametrize("name", CALLS)
def test_a_part_on_the_meta_device_says_so_until_it_has_values(name: str) -> None:
    make, call = CALLS[name]
    drawn = make()
    assert hooks_of(drawn) == 0
    with torch.device("meta"):
        part = make()
    for _ in range(2):
        with refused(RegardError, None, "meta device"):
            call(part)
    assert part.state_dict().keys() == drawn.state_dict().keys()
    loaded, filled = copy.deepcopy(part), copy.deepcopy(part)
    loaded.load_state_dict(drawn.state_dict(), assign=True)
    filled.to_empty(device="cpu").load_state_dict(drawn.state_dict())
    for one in (loaded, filled):
        assert torch.equal(call(one), call(drawn))
        call(one)
    with refused(RegardError, None, "meta device"):
        call(part)  # a copy has hooks of its own


@pytest.mark.long(minutes=0.05)
def test_the_hooks_go_at_the_first_call_with_values() -> None:
    with torch.device("meta"):
        part = Linear(8, 8)
        assert part(torch.empty(3, 8)).is_meta  # only shapes are asked for
    assert hooks_of(part) == 2
    empty = part.to_empty(device="cpu")
    nn.init.constant_(empty.weight, float("nan"))
    with refused(RegardError, "weight"):
        empty(X_TD)
    empty.initialise()
    compiled = torch.compile(copy.deepcopy(empty), backend="eager", fullgraph=True)
    assert torch.equal(compiled(X_TD), empty(X_TD))
    assert hooks_of(empty) == 0


def test_a_model_of_a_section_has_no_hooks_on_the_meta_device() -> None:
    with torch.device("meta"):
        assert hooks_of(transformer(section(), 20, 20)) == 0
