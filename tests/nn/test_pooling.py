"""What stands for a whole sequence: against plain loops over its tokens, and blind to all others."""

import numpy as np
import pytest
import torch

from regard.nn.pooling import first, largest, mean
from small_models import assert_near, sequences

LOOPS = {
    first: lambda rows: rows[0],
    mean: lambda rows: rows.mean(0),
    largest: lambda rows: rows.max(0),
}


@pytest.mark.parametrize("pool", LOOPS, ids=lambda pool: pool.__name__)
@pytest.mark.parametrize(("lengths", "tail", "spare"), [([3, 1, 5], 0, 0), ([2, 4], 3, 2), ([1], 0, 0)])
def test_pooled_is_of_each_sequence_alone(pool, lengths: list[int], tail: int, spare: int) -> None:
    of = sequences(lengths, tail, spare)
    hidden_TD = torch.randn(of.size, 6, dtype=torch.float64)
    hidden_TD[sum(lengths) :] = 1e9
    ends = np.cumsum(lengths)
    expected = [LOOPS[pool](hidden_TD.numpy()[end - length : end]) for end, length in zip(ends, lengths, strict=True)]
    assert_near(pool(hidden_TD, of), np.stack(expected), 1e-12)


@pytest.mark.parametrize("pool", LOOPS, ids=lambda pool: pool.__name__)
def test_gradients_reach_the_tokens_that_were_pooled_and_no_other(pool) -> None:
    of = sequences([2, 3], tail=2)
    hidden_TD = torch.randn(of.size, 4, dtype=torch.float64, requires_grad=True)
    (gradient_TD,) = torch.autograd.grad(pool(hidden_TD, of).sum(), hidden_TD)
    assert not gradient_TD[5:].any()
    sums_BD = torch.stack([gradient_TD[:2].sum(0), gradient_TD[2:5].sum(0)])
    assert_near(sums_BD, torch.ones(2, 4), 1e-12)  # each entry of a sequence's vector has weights that sum to one


def test_the_mean_keeps_half_precision() -> None:
    of = sequences([3])
    assert mean(torch.ones(3, 4, dtype=torch.bfloat16), of).dtype == torch.bfloat16
