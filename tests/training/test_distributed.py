"""Whoever computes a micro-batch, the step is the same: its parts add up to the whole."""

import pytest
import torch

from regard.data.batches.batch import Position
from regard.training import distributed
from regard.training.optim import FlatOptimiser
from regard.training.schedule import schedule
from regard.training.update import Updates
from tests.training.toy import Corpus, Toy, recipe, reseed


def gradient(batches):
    """The summed gradient of a step and its sums of loss and tokens, as one process computes them."""
    settings, toy = recipe(accumulate=len(batches)), Toy()
    optimiser = FlatOptimiser(toy.model, settings.training)
    updates = Updates(toy, optimiser, settings, schedule(settings.training, 8), reseed)
    total, _, tokens, _ = updates._gradient(7, batches)
    return optimiser.gradients.clone(), total, tokens


@pytest.mark.parametrize("world", [2, 3, 4])
def test_the_parts_of_all_ranks_are_the_whole_step(monkeypatch, world):
    corpus = Corpus()
    batches = [corpus.batch(Position(0, block, batch)) for block in range(2) for batch in range(3)]
    whole, loss, tokens = gradient(batches)
    assert tokens == sum(batch.tokens for batch in batches)
    monkeypatch.setattr(distributed, "world", lambda: world)
    parts = []
    for rank in range(world):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        parts.append(gradient(batches))
    torch.testing.assert_close(sum(part[0] for part in parts), whole, rtol=1e-4, atol=1e-5)
    assert sum(part[1] for part in parts) == pytest.approx(loss, rel=1e-6)
    assert sum(part[2] for part in parts) == tokens


def test_alone_every_micro_batch_is_mine():
    assert (distributed.rank(), distributed.world()) == (0, 1)
    assert all(distributed.mine(number) for number in range(5))
    tensor = torch.arange(3.0)
    assert distributed.all_reduce_sum(tensor) is tensor
