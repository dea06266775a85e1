"""Gradient times input against what happens when an embedding really grows."""

import pytest
import torch
from torch import Tensor

from regard.models.captured_attention import gradient_times_input
from regard.nn.hooks import intervene
from tests.models.small_models import assert_near, section, small, some_pairs


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
@pytest.mark.parametrize("chosen", [{}, {"norm_place": "pre", "positions": "relative"}], ids=["post", "pre"])
def test_it_is_the_slope_of_the_score(stack: str, chosen: dict[str, str]) -> None:
    model, given = small(section(**chosen)), some_pairs([(4, 3)])

    def score() -> Tensor:
        return model.output.scores(model(given)).log_softmax(1)[1, 5]

    found_T = gradient_times_input(model, stack, score)
    grown = 1e-6
    for token in range(len(found_T)):

        def larger(x_TD: Tensor, token: int = token) -> Tensor:
            return torch.cat([x_TD[:token], x_TD[token : token + 1] * (1 + grown), x_TD[token + 1 :]])

        with torch.no_grad(), intervene(f"{stack}.input.embedding", larger):
            more = score()
        with torch.no_grad():
            assert_near((more - score()) / grown, found_T[token], 1e-4)
    assert found_T.abs().max() > 0


def test_nothing_is_left_behind() -> None:
    model, given = small().train(), some_pairs([(4, 3)])
    gradient_times_input(model, "encoder", lambda: model(given).sum())
    assert model.training
    assert all(weight.grad is None for weight in model.parameters())
