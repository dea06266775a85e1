import pytest
import torch

from regard.engine import positions
from regard.nn.positions import Relative
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
