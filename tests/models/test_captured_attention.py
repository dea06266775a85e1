"""Every weight of every use of attention, for each pair, in evaluation mode."""

import pytest
import torch

from regard.config import RnnSection
from regard.models.build import rnn
from regard.models.captured_attention import POINTS, gradient_times_input, weights_of
from tests.models.small_models import small, some_pairs


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


def test_a_pair_is_read_alike_in_any_company() -> None:
    model = small()
    sources, targets = [[5, 6, 7, 0], [8, 0]], [[model.pieces, 9], [model.pieces, 4, 5]]
    together = weights_of(model, "transformer", sources, targets)
    alone = weights_of(model, "transformer", sources[1:], targets[1:])
    for kind in POINTS["transformer"]:
        for one, other in zip(together[kind], alone[kind], strict=True):
            assert torch.allclose(one[1], other[0], atol=1e-6)


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


def test_nothing_is_left_behind() -> None:
    model, given = small().train(), some_pairs([(4, 3)])
    gradient_times_input(model, "encoder", lambda: model(given).sum())
    assert model.training
    assert all(weight.grad is None for weight in model.parameters())
