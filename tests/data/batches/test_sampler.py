from __future__ import annotations

import numpy as np
import pytest

from regard.data.batches.sampler import EpochSampler
from regard.system.errors import UsageError


def test_without_weights_every_sentence_once() -> None:
    draws = EpochSampler((3, 4), seed=1)
    assert draws.epoch == 7
    assert sorted(draws.of(0).tolist()) == list(range(7))
    assert draws.of(5).tolist() == EpochSampler((3, 4), seed=1).of(5).tolist()


def test_weights_share_out_a_virtual_epoch() -> None:
    draws = EpochSampler((1000, 10), seed=1, weights=(1.0, 1.0), epoch=100)
    found = draws.of(0)
    assert len(found) == 100
    assert (found < 1000).sum() == 50
    assert np.bincount(found[found >= 1000] - 1000).tolist() == [5] * 10


def test_every_sentence_comes_before_one_comes_again() -> None:
    draws = EpochSampler((7, 5), seed=1, weights=(1, 3), epoch=12)
    seen = np.concatenate([draws.of(epoch) for epoch in range(7)])  # 21 draws of 7, 63 of 5
    assert np.bincount(seen, minlength=12)[:7].tolist() == [3] * 7
    assert set(np.bincount(seen, minlength=12)[7:].tolist()) == {12, 13}


def test_an_epoch_of_its_own_size_without_weights() -> None:
    draws = EpochSampler((6, 4), seed=1, epoch=5)
    found = [draws.of(epoch) for epoch in range(2)]
    assert [(part < 6).sum() for part in found] == [3, 3]
    assert sorted(np.concatenate(found).tolist()) == list(range(10))


@pytest.mark.parametrize(("weights", "message"), [((1.0,), "1 weights for 2"), ((-1, 2), "negative"), ((0, 0), "zero")])
def test_weights_that_do_not_fit(weights: tuple[float, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        EpochSampler((3, 4), seed=1, weights=weights)


def test_an_empty_corpus_takes_no_share() -> None:
    assert len(EpochSampler((4, 0), seed=1, weights=(1, 1), epoch=8).of(0)) == 8
    with pytest.raises(UsageError, match="weight above zero"):
        EpochSampler((4, 0), seed=1, weights=(0, 1))
