"""Integrated gradients of functions whose integral is known."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from regard.models.attribution import NODES, PARTS, integrated_gradients
from regard.nn.hooks import hook_point

ENCODER, DECODER = (torch.randn(4, 3, generator=torch.Generator().manual_seed(key)).double() for key in (1, 2))


def shares(score: Callable[[Tensor, Tensor], Tensor], passes: int = 1000) -> tuple[float, dict[str, Tensor], int]:
    """Those of two stacks, the score at zero, and how often a gradient was followed back."""
    back = 0

    def count(_: Tensor) -> None:
        nonlocal back
        back += 1

    def run() -> Tensor:
        x_TD, y_TD = hook_point("encoder.input.embedding", ENCODER), hook_point("decoder.input.embedding", DECODER)
        found = score(x_TD, y_TD)
        found.register_hook(count)
        return found

    zero, found = integrated_gradients(nn.Identity(), ("encoder", "decoder"), run, passes)
    return zero, found, back


def test_a_cube_has_its_own_value() -> None:
    zero, found, back = shares(lambda x_TD, y_TD: 2 + (x_TD**3).sum() + y_TD.sum())
    assert zero == 2
    torch.testing.assert_close(found["encoder"], (ENCODER**3).sum(1))
    torch.testing.assert_close(found["decoder"], DECODER.sum(1))
    assert back == PARTS * NODES


def test_two_stacks_share_their_product() -> None:
    """Of xy, whose factors grow together, each has a half."""
    _, found, _ = shares(lambda x_TD, y_TD: x_TD[0, 0] * y_TD[1, 2])
    half = ENCODER[0, 0] * DECODER[1, 2] / 2
    for stack, token in (("encoder", 0), ("decoder", 1)):
        torch.testing.assert_close(found[stack][token], half)
        assert found[stack].count_nonzero() == 1


def late(x_TD: Tensor, y_TD: Tensor) -> Tensor:
    """A step near 0.7 of the path, one hundredth wide."""
    return torch.tanh(100 * (x_TD / ENCODER - 0.7)).sum() + 0 * y_TD.sum()


def test_a_sharp_step_is_found() -> None:
    zero, found, back = shares(late)
    expected = (torch.tanh(torch.tensor(30.0)) + torch.tanh(torch.tensor(70.0))) * 3
    torch.testing.assert_close(found["encoder"], expected.double().expand(4), rtol=2e-3, atol=0)
    assert zero == pytest.approx(-12)
    assert PARTS * NODES < back < 1000


def test_passes_are_bounded() -> None:
    for passes in (PARTS * NODES, 50):
        assert shares(late, passes)[2] <= passes
