"""Orthogonal updates, against singular vectors."""

import pytest
import torch
from torch.testing import assert_close

from regard.training.muon import COEFFICIENTS, ROUNDS, orthogonal


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 6, 15), (2, 15, 6)])
def test_singular_values_follow_the_polynomial_and_vectors_stay(shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    left, value, right = torch.linalg.svd(x, full_matrices=False)
    value = value / value.square().sum(1, keepdim=True).sqrt()
    for _ in range(ROUNDS):
        value = sum(c * value**power for c, power in zip(COEFFICIENTS, (1, 3, 5), strict=True))
    found = orthogonal(x, torch.float64)
    assert_close(found, left @ torch.diag_embed(value) @ right, atol=1e-9, rtol=0)
    assert value.max() < 1.3
    assert value.mean() > 0.7
    assert_close(orthogonal(1e6 * x, torch.float64), found, rtol=1e-6, atol=1e-9)


def test_matrices_do_not_touch_each_other_and_zeros_stay():
    x = torch.randn(4, 5, 7, generator=torch.Generator().manual_seed(3))
    x[2] = 0
    found = orthogonal(x, torch.float32)
    assert_close(found[1:2], orthogonal(x[1:2], torch.float32))
    assert not found[2].any()
