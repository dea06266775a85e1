"""Norms over the tokens of a batch and over parts of a token: against torch and against plain loops."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import nn

from regard.nn.normalization import _REAL, BatchNorm, GroupNorm, RMSNorm, Scaled
from tests.models.small_models import arrays, assert_near, stir
from tests.reference import equations

X_TD = torch.randn(7, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


@contextmanager
def counting(weight_T: torch.Tensor) -> Iterator[None]:
    """Within, statistics over a batch count each token by its weight."""
    token = _REAL.set(weight_T)
    try:
        yield
    finally:
        _REAL.reset(token)


def batch_norm(epsilon: float = 1e-5) -> BatchNorm:
    part = BatchNorm(12, epsilon).double()
    stir(part)
    return part


def test_rms_norm_divides_by_the_root_of_the_mean_square() -> None:
    part = RMSNorm(12, 1e-3).double()
    stir(part)
    assert_near(part(X_TD), equations.rms_norm(X_TD.numpy(), arrays(part), 1e-3), 1e-12)


@pytest.mark.parametrize("groups", [1, 3, 4, 12])
def test_group_norm_is_a_layer_norm_of_each_part(groups: int) -> None:
    part = GroupNorm(12, groups, 1e-3).double()
    stir(part)
    weights = arrays(part)
    rows = []
    for row in X_TD.numpy():
        parts = [(one - one.mean()) / np.sqrt(one.var() + 1e-3) for one in np.split(row, groups)]
        rows.append(np.concatenate(parts) * weights["weight"] + weights["bias"])
    assert_near(part(X_TD), np.stack(rows), 1e-12)


def test_batch_norm_in_training_is_torchs() -> None:
    part, torchs = batch_norm(), nn.BatchNorm1d(12, momentum=BatchNorm.momentum).double()
    torchs.load_state_dict({"weight": part.weight, "bias": part.bias}, strict=False)
    found_TD = X_TD.clone().requires_grad_()
    expected_TD = X_TD.clone().requires_grad_()
    assert_near(part(found_TD), torchs(expected_TD), 1e-12)
    part(found_TD).cos().sum().backward()
    torchs(expected_TD).cos().sum().backward()
    assert_near(found_TD.grad, expected_TD.grad, 1e-10)


@pytest.mark.parametrize("real", [[1, 1, 1, 0, 1, 0, 1], [0, 0, 0, 0, 0, 1, 0], [0, 1, 1, 1, 1, 1, 0]])
def test_its_statistics_are_those_of_the_real_tokens(real: list[int]) -> None:
    part = batch_norm()
    weight_T = torch.tensor(real, dtype=torch.bool)
    chosen = X_TD.numpy()[np.array(real, bool)]
    weights = arrays(part)
    expected = (X_TD.numpy() - chosen.mean(0)) / np.sqrt(chosen.var(0) + 1e-5) * weights["weight"] + weights["bias"]
    with counting(weight_T):
        assert_near(part(X_TD), expected, 1e-9)


def test_tokens_that_do_not_count_touch_nothing() -> None:
    weight_T = torch.tensor([True] * 5 + [False] * 2)
    found = []
    for tail in (0.0, 1e6):
        part, x_TD = batch_norm(), X_TD.clone()
        x_TD[5:] = tail
        with counting(weight_T):
            found.append((part(x_TD)[:5], part.running_mean, part.running_variance))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


def test_running_averages_are_what_evaluation_uses() -> None:
    part, mean_D, variance_D = batch_norm(), np.zeros(12), np.ones(12)
    for seed in range(3):
        x_TD = torch.randn(5, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        part(x_TD)
        mean_D += 0.1 * (x_TD.numpy().mean(0) - mean_D)
        variance_D += 0.1 * (x_TD.numpy().var(0) - variance_D)
    part.eval()
    weights = arrays(part)
    expected = (X_TD.numpy() - mean_D) / np.sqrt(variance_D + 1e-5) * weights["weight"] + weights["bias"]
    assert_near(part(X_TD), expected, 1e-12)
    assert_near(part(X_TD[3:4]), part(X_TD)[3:4], 1e-12)  # a token alone is the same among others
    assert_near(part.running_mean, mean_D, 1e-12)  # and looking changes nothing


def test_its_averages_are_saved_and_carry_no_gradient() -> None:
    part = batch_norm()
    part(X_TD).sum().backward()
    assert set(part.state_dict()) == {"weight", "bias", "running_mean", "running_variance"}
    assert not part.running_mean.requires_grad
    assert not part.running_variance.requires_grad


def test_no_real_token_at_all_is_no_division_by_zero() -> None:
    part = batch_norm()
    with counting(torch.zeros(7, dtype=torch.bool)):
        assert torch.isfinite(part(X_TD)).all()


def test_a_scaled_norm_is_the_norm_times_a_factor() -> None:
    part = Scaled(nn.LayerNorm(12).double(), 0.25)
    assert_near(part(X_TD), part.norm(X_TD) * 0.25, 1e-15)
