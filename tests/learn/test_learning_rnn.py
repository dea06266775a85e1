"""The recurrent parts together learn: small models reverse sequences, and attention spares them the bottleneck."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.config import Decoding, RnnSection
from regard.decoding.rows import Symbols
from regard.decoding.search import search
from regard.models.build import rnn
from regard.models.decoding import stepper
from regard.models.inputs import pairs
from regard.models.rnn import Rnn
from regard.nn.dropout import reseed
from regard.nn.loss import SmoothedCrossEntropy
from regard.system.keys import generator, key
from tests.models.small_models import batch

PIECES = 14


def drawn(count: int, *numbers: int, longest: int = 6) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sequences of words, and the same backwards; each ends with ``</s>``."""
    random = generator(1, "reverse", *numbers)
    words = [random.integers(2, PIECES, random.integers(2, longest + 1)) for _ in range(count)]
    return [np.append(w, 0) for w in words], [np.append(w[::-1], 0) for w in words]


def trained(choices: dict, steps: int, batches, rate: float = 1e-2) -> Rnn:
    model = rnn(RnnSection(**{"d_model": 32, "dropout": 0.0, **choices}), PIECES, PIECES, key=5)
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    loss = SmoothedCrossEntropy(0.0)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 30) * (1 - step / steps)
        reseed(key(1, "dropout", step))
        given = pairs(batch(*batches(step), pieces=PIECES))
        table = model.output
        total, _ = loss(model(given), table.weight, given.labels_T, given.weight_T, table.pieces)
        optimiser.zero_grad()
        (total / given.weight_T.sum()).backward()
        optimiser.step()
    return model.eval()


def right(model: Rnn, source: list[np.ndarray], target: list[np.ndarray], beam: int = 1) -> float:
    """The share of sequences translated exactly."""
    found = search(stepper(model), source, Decoding(beam=beam), Symbols(PIECES))
    return float(np.mean([best[0].tokens == tuple(t[:-1]) for best, t in zip(found, target, strict=True)]))


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"cell": "lstm", "score": "general", "input_feeding": True, "two_way": False},
        {"cell": "elman", "score": "none", "dropout": 0.05},
    ],
    ids=["default", "luong", "bottleneck"],
)
@pytest.mark.one_of(3, minutes=0.1)
def test_a_small_set_is_learned_by_heart(choices: dict) -> None:
    examples = drawn(24, 0)
    model = trained(choices, 150, lambda step: examples)
    assert right(model, *examples) == 1.0
    assert right(model, *examples, beam=3) == 1.0


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
@pytest.mark.parametrize("score", ["dot", "scaled", "general", "additive", "cosine"])
@pytest.mark.parametrize("feeding", [False, True])
def test_reversing_is_learned(cell: str, score: str, feeding: bool) -> None:
    model = trained({"cell": cell, "score": score, "input_feeding": feeding}, 600, lambda step: drawn(64, 1, step))
    assert right(model, *drawn(300, 2)) > 0.9


@pytest.mark.long(minutes=0.5)
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_reversing_is_learned_through_the_bottleneck(cell: str) -> None:
    model = trained({"cell": cell, "score": "none", "d_model": 64}, 1500, lambda step: drawn(64, 1, step), rate=4e-3)
    assert right(model, *drawn(300, 2)) > 0.9


@pytest.mark.long(minutes=0.5)
def test_long_sequences_do_not_fit_through_the_bottleneck() -> None:
    """Of the same size and after the same steps, only the model with attention reverses them."""
    shares = []
    for score in ("additive", "none"):
        model = trained({"score": score}, 800, lambda step: drawn(64, 1, step, longest=14))
        shares.append(right(model, *drawn(300, 2, longest=14)))
    assert shares[0] > 0.8
    assert shares[1] < 0.4
