"""Relative buckets against the published code as transformers has it; the grid of an image against plain loops."""

import itertools

import pytest
import torch
from torch import nn

from regard.nn.layout import Sequences
from regard.nn.positions import (
    Grid,
    Learned,
    LinearBias,
    NoPositions,
    Relative,
    Rotary,
    Sinusoidal,
    TimingSignal,
    sinusoids,
    slopes,
)
from tests.models.small_models import assert_near
from tests.reference import equations


@pytest.mark.one_of(5)
@pytest.mark.parametrize("two_way", [True, False], ids=["two-way", "one-way"])
@pytest.mark.parametrize(("buckets", "distance"), [(32, 128), (8, 16), (16, 20), (64, 1000), (32, 40)])
def test_buckets_are_those_of_the_published_code(buckets: int, distance: int, two_way: bool) -> None:
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5").T5Attention
    places = torch.arange(600)
    ahead_LM = places[None] - places[:, None]
    expected_LM = t5._relative_position_bucket(ahead_LM, two_way, buckets, distance)
    part = Relative(3, buckets, distance, two_way)
    assert torch.equal(part._bucket(ahead_LM), expected_LM)
    assert int(expected_LM.max()) < buckets


@pytest.mark.parametrize("two_way", [True, False])
def test_the_bias_of_a_head_is_its_entry_of_the_distances_bucket(two_way: bool) -> None:
    part = Relative(3, 8, 16, two_way)
    nn.init.normal_(part.weight)
    queries_L, keys_M = torch.tensor([0, 5, 40]), torch.tensor([0, 1, 2, 30])
    bias_HLM = part.bias()(queries_L, keys_M)
    assert bias_HLM.shape == (3, 3, 4)
    for head, (row, query), (column, key) in itertools.product(range(3), enumerate(queries_L), enumerate(keys_M)):
        bucket = int(part._bucket((key - query).view(1, 1)))
        assert bias_HLM[head, row, column] == part.weight[bucket, head]


@pytest.mark.parametrize("two_way", [True, False])
@pytest.mark.parametrize(("heads", "buckets", "distance"), [(4, 32, 128), (3, 8, 16), (1, 32, 40)])
def test_heads_begin_by_looking_near(heads: int, buckets: int, distance: int, two_way: bool) -> None:
    part = Relative(heads, buckets, distance, two_way)
    with torch.no_grad():
        part.weight.copy_(part.nearby())
    places = torch.arange(20)
    weight_HLM = (
        part.bias()(places, places)
        .detach()
        .masked_fill(torch.zeros(20, 20, dtype=torch.bool) if two_way else places > places[:, None], -torch.inf)
    )
    for head, middle in zip(range(heads), (-1, 1 if two_way else 0) * heads, strict=False):
        assert weight_HLM[head, 10].argmax() == 10 + middle
        assert weight_HLM[head, 10, 10 + middle] == 0
        falls = -weight_HLM[head, 10, : 10 + middle].flip(0)  # from the middle back
        assert (falls.diff() >= 0).all()
        assert falls[0] == pytest.approx(2.0 / 4 ** (head // 2))
    assert part.weight.min() >= -4.0


def test_kinds_open_one_door_each() -> None:
    x_TD, places = torch.randn(4, 6), torch.arange(4)
    assert torch.equal(Relative(2, 8, 16, True).embed(x_TD, places, 4), x_TD)
    for part in (NoPositions(), Sinusoidal(6), Grid(6, 2, 2)):
        assert part.bias() is None


def test_a_patch_has_half_of_its_row_and_half_of_its_column() -> None:
    part = Grid(7, rows=2, columns=3)
    for parameter in part.parameters():
        nn.init.normal_(parameter)
    x_TD = torch.randn(2 * 7, 7)
    positions_T = torch.tensor([0, 1, 2, 3, 4, 5, 6] * 2)
    found_TD = part.embed(x_TD, positions_T, 7)
    for token, place in enumerate(positions_T.tolist()):
        if place == 0:
            expected_D = part.first
        else:
            row, column = divmod(place - 1, 3)
            expected_D = torch.cat([part.row[row], part.column[column]])
        assert_near(found_TD[token], x_TD[token] + expected_D, 1e-6)
    assert (part.row.shape[1], part.column.shape[1]) == (3, 4)


@pytest.mark.parametrize("base", [10_000.0, 500.0])
def test_queries_and_keys_turn_as_in_transformers(base: float) -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    query, key = torch.randn(2, 12, 3, 8, dtype=torch.float64)
    place_T, entry = torch.arange(12, dtype=torch.float64), torch.arange(0, 8, 2, dtype=torch.float64)
    angle_1TK = torch.cat([place_T[:, None] * base ** (-entry / 8)] * 2, dim=-1)[None]
    expected = llama.apply_rotary_pos_emb(
        query.transpose(0, 1)[None], key.transpose(0, 1)[None], angle_1TK.cos(), angle_1TK.sin()
    )
    part, of = Rotary(8, base), Sequences.end_to_end([12])
    for x_THK, turned in zip((query, key), expected, strict=True):
        assert_near(part.rotate(x_THK, of), turned[0].transpose(0, 1), 1e-12)


def test_scaled_positions_turn_less_far() -> None:
    x_THK = torch.randn(9, 2, 4, dtype=torch.float64)
    whole, half = (Rotary(4, 50.0, scaling).rotate(x_THK, Sequences.end_to_end([9])) for scaling in (1.0, 2.0))
    assert_near(half[::2][1], Rotary(4, 50.0).rotate(x_THK[[0, 2]], Sequences.end_to_end([2]))[1], 1e-12)
    assert not torch.allclose(half, whole)


@pytest.mark.parametrize("heads", [1, 2, 4, 8, 16, 3, 6, 12, 20])
def test_slopes_are_those_of_the_published_code(heads: int) -> None:
    bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
    expected_HM = bloom.build_alibi_tensor(torch.ones(1, 7), heads, torch.float32)[:, 0]
    bias_HLM = LinearBias(heads).bias()(torch.tensor([6]), torch.arange(7))
    assert_near(bias_HLM[:, 0], expected_HM - expected_HM[:, -1:], 1e-6)  # theirs counts keys from the first


def test_linear_biases_fall_alike_on_both_sides() -> None:
    bias_HLM = LinearBias(2).bias()(torch.arange(5), torch.arange(5))
    assert torch.equal(bias_HLM, bias_HLM.transpose(1, 2))
    assert torch.equal(bias_HLM[:, 0], -torch.tensor(slopes(2))[:, None] * torch.arange(5))


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


@pytest.mark.parametrize("d_model", [8, 10, 7])
def test_the_timing_signal_is_that_of_m2m_100(d_model: int) -> None:
    theirs = pytest.importorskip("transformers.models.m2m_100.modeling_m2m_100").M2M100SinusoidalPositionalEmbedding
    expected_SD = theirs.get_embedding(602, d_model, 1)[2:]
    places = torch.arange(600)
    assert_near(TimingSignal(d_model, 2).embed(torch.zeros(600, d_model), places, 600), expected_SD, 1e-4)


def test_learned_positions_end_with_their_table() -> None:
    part = Learned(10, 4).double()
    nn.init.normal_(part.weight)
    positions_T = torch.tensor([0, 1, 3, 3, 0, 2])
    assert_near(part.embed(X_TD, positions_T, 4), X_TD + part.weight[positions_T], 1e-15)
    with pytest.raises(ValueError):
        part.embed(X_TD, positions_T, 5)
