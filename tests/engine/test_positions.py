import numpy as np
import pytest
import torch

from regard.engine import positions
from regard.nn.layout import Sequences
from regard.nn.positions import LinearBias, Relative, Rotary
from regard.nn.positions import sinusoids as of_torch


def test_sinusoids_are_the_models_and_grow() -> None:
    for d_model in (1, 7, 64):
        table = positions.sinusoids(d_model)
        for longest in (1, 128, 700):
            assert (table(longest)[:longest] == of_torch(longest, d_model).numpy()).all()


@pytest.mark.parametrize("two_way", [False, True])
@pytest.mark.parametrize(("buckets", "distance"), [(32, 128), (8, 16), (6, 1000), (64, 4000)])
def test_relative_biases_fall_into_the_models_buckets(buckets: int, distance: int, two_way: bool) -> None:
    part = Relative(3, buckets, distance, two_way)
    with torch.no_grad():
        part.weight.copy_(torch.randn(buckets, 3, generator=torch.Generator().manual_seed(1)))
    table_HX = positions.relative_bias(part.weight.detach().numpy(), distance, two_way)(5000)
    middle = table_HX.shape[1] // 2
    with torch.no_grad():
        expected_H = part(torch.tensor([5000]), torch.arange(10001))[:, 0].numpy()
    assert (table_HX[:, middle - 5000 : middle + 5001] == expected_H).all()


@pytest.mark.parametrize("heads", [1, 3, 8, 12])
def test_linear_biases_are_the_models(heads: int) -> None:
    table_HX, part = positions.linear_bias(heads)(200), LinearBias(heads)
    middle = table_HX.shape[1] // 2
    expected = part(torch.tensor([150]), torch.arange(200))[:, 0].numpy()
    assert (table_HX[:, middle - 150 : middle + 50] == expected).all()


def test_rotary_angles_turn_as_the_model_does() -> None:
    from regard.kernels import _native

    x_TX = np.random.default_rng(0).standard_normal((300, 3 * 8)).astype(np.float32)
    sequences = Sequences.end_to_end([300], "cpu")
    expected = Rotary(8, 500.0, 2.0).rotate(torch.from_numpy(x_TX).view(300, 3, 8), sequences).flatten(1).numpy()
    cos, sin = positions.rotary(8, 500.0, 2.0)
    _native.rotation(x_TX, 3, cos(300), sin(300), np.arange(300, dtype=np.int32))
    np.testing.assert_allclose(x_TX, expected, atol=1e-6)
