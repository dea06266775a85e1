"""Every weight of every use of attention, for each pair; integrated gradients of functions whose integral is known."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from regard.config import RnnSection
from regard.models.build import rnn
from regard.models.captured_attention import (
    NODES,
    PARTS,
    POINTS,
    gradient_times_input,
    integrated_gradients,
    weights_of,
)
from regard.nn.hooks import hook_point
from tests.models.small_models import section, small, some_pairs


def test_weights_of_every_use_for_each_pair() -> None:
    model = small()
    sources, targets = [[5, 6, 7, 0], [8, 0]], [[model.pieces, 9], [model.pieces, 4, 5]]
    model.train()
    found = weights_of(model, "transformer", sources, targets)
    assert model.training
    assert found.keys() == POINTS["transformer"].keys()
    sides = {"encoder": (sources, sources), "decoder": (targets, targets), "cross": (targets, sources)}
    for kind, (queries, keys) in sides.items():
        lengths = [(len(q), len(k)) for q, k in zip(queries, keys, strict=True)]
        for layer in found[kind]:
            assert [weight.shape[1:] for weight in layer] == lengths
            assert all(torch.allclose(weight.sum(-1), torch.ones_like(weight.sum(-1))) for weight in layer)


@pytest.mark.parametrize("feeding", [False, True], ids=["at once", "feeding"])
def test_a_recurrent_model_shows_where_each_step_looked(feeding: bool) -> None:
    model = rnn(RnnSection(d_model=12, input_feeding=feeding, dropout=0.0), 23, 23, key=3)
    sources, targets = [[5, 6, 7, 0], [8, 0], [3, 4, 0]], [[23, 9], [23, 4, 5, 6], [23, 8]]
    together = weights_of(model, "rnn", sources, targets)["cross"][0]
    for source, target, weight in zip(sources, targets, together, strict=True):
        alone = weights_of(model, "rnn", [source], [target])["cross"][0][0]
        assert alone.shape == (1, len(target), len(source))
        assert torch.allclose(weight, alone, atol=1e-6)


def test_without_attention_nothing_is_shown() -> None:
    model = rnn(RnnSection(d_model=12, score="none"), 23, 23)
    assert weights_of(model, "rnn", [[5, 0]], [[23, 9]]) == {"cross": []}


def test_a_recurrent_decoder_has_no_attention_of_its_own() -> None:
    found = weights_of(small(section(decoder_cell="ssru")), "transformer", [[5, 6, 0]], [[23, 9]])
    assert {kind: [layer[0].shape for layer in layers] for kind, layers in found.items()} == {
        "encoder": [(3, 3, 3)] * 2,
        "decoder": [],
        "cross": [(3, 2, 3)] * 2,
    }


def test_nothing_is_left_behind() -> None:
    model, given = small().train(), some_pairs([(4, 3)])
    gradient_times_input(model, "encoder", lambda: model(given).sum())
    assert model.training
    assert all(weight.grad is None for weight in model.parameters())


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
