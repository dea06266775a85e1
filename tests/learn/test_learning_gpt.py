"""A decoder-only model learns: behind a sequence and a mark it writes the sequence backwards."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.config import Decoding, GptSection
from regard.decoding.rows import Symbols
from regard.decoding.search import search
from regard.models.build import gpt
from regard.models.decoding import stepper
from regard.models.gpt import Gpt
from regard.nn.dropout import reseed
from regard.nn.loss import SmoothedCrossEntropy
from regard.system.keys import generator, key
from tests.models.small_models import texts

PIECES, MARK = 14, 1


def drawn(count: int, *numbers: int, longest: int = 6) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sequences of distinct words with the mark behind, and the same backwards with ``</s>``."""
    random = generator(1, "reverse", *numbers)
    words = [random.permutation(np.arange(2, PIECES))[: random.integers(2, longest + 1)] for _ in range(count)]
    return [np.append(w, MARK) for w in words], [np.append(w[::-1], 0) for w in words]


def trained(choices: dict, steps: int, batches, rate: float = 5e-3) -> Gpt:
    sizes = {"layers": 2, "d_model": 32, "d_ff": 64, "heads": 2, "dropout": 0.0, "max_positions": 16}
    model = gpt(GptSection(**{**sizes, **choices}), PIECES, key=5)
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    loss = SmoothedCrossEntropy(0.0)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 30) * (1 - step / steps)
        reseed(key(1, "dropout", step))
        pairs = list(zip(*batches(step), strict=True))
        given = texts([np.concatenate([prompt, answer[:-1]]) for prompt, answer in pairs])
        labels_T = torch.from_numpy(np.concatenate([np.append(prompt[1:], answer) for prompt, answer in pairs]))
        behind = [np.arange(len(prompt) + len(answer) - 1) >= len(prompt) - 1 for prompt, answer in pairs]
        weight_T = torch.from_numpy(np.concatenate(behind)).float()  # what is drawn at random cannot be guessed
        total, _ = loss(model(given), model.output.weight, labels_T, weight_T, PIECES)
        optimiser.zero_grad()
        (total / weight_T.sum()).backward()
        optimiser.step()
    return model.eval()


def right(model: Gpt, prompts: list[np.ndarray], answers: list[np.ndarray], beam: int = 1) -> float:
    """The share of sequences that are gone on with exactly."""
    found = search(
        stepper(model),
        [prompt[:-1] for prompt in prompts],
        Decoding(beam=beam),
        Symbols(PIECES),
        firsts=[MARK] * len(prompts),
        limits=[8] * len(prompts),
    )
    return float(np.mean([best[0].tokens == tuple(a[:-1]) for best, a in zip(found, answers, strict=True)]))


@pytest.mark.parametrize(
    "choices",
    [{}, {"norm_place": "post", "positions": "sinusoidal"}, {"positions": "relative", "norm": "rms", "dropout": 0.05}],
    ids=["gpt", "post", "relative"],
)
@pytest.mark.one_of(3, minutes=0.1)
def test_a_small_set_is_learned_by_heart(choices: dict) -> None:
    examples = drawn(24, 0)
    model = trained(choices, 200, lambda step: examples)
    assert right(model, *examples) == 1.0
    assert right(model, *examples, beam=3) == 1.0


@pytest.mark.long(minutes=1.5)
def test_reversing_is_learned() -> None:
    model = trained({}, 1500, lambda step: drawn(64, 1, step))
    assert right(model, *drawn(300, 2)) > 0.9


@pytest.mark.long(minutes=1.0)
def test_order_is_learned_without_positions_too() -> None:
    """The causal mask is an order of its own."""
    model = trained({"positions": "none"}, 1500, lambda step: drawn(64, 1, step, longest=4))
    assert right(model, *drawn(300, 2, longest=4)) > 0.8
