"""The parts together learn: a small Transformer reverses sequences, and it needs positions for it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.config import Decoding
from regard.decoding.rows import Symbols
from regard.decoding.search import search
from regard.models.build import transformer
from regard.models.decoding.transformer import TransformerStepper
from regard.models.inputs import pairs
from regard.models.transformer import Transformer
from regard.nn.dropout import reseed
from regard.nn.loss import SmoothedCrossEntropy
from regard.system.keys import generator, key
from tests.models.small_models import batch, section

PIECES = 14
SIZES = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 32, "d_ff": 64, "heads": 2}


def drawn(count: int, *numbers: int, longest: int = 6) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sequences of distinct words, and the same backwards; each ends with ``</s>``."""
    random = generator(1, "reverse", *numbers)
    words = [random.permutation(np.arange(2, PIECES))[: random.integers(2, longest + 1)] for _ in range(count)]
    return [np.append(w, 0) for w in words], [np.append(w[::-1], 0) for w in words]


def trained(choices: dict, steps: int, batches) -> Transformer:
    model = transformer(section(**SIZES, **choices), PIECES, PIECES, key=5)
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    loss = SmoothedCrossEntropy(0.0)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = 5e-3 * min(1.0, (step + 1) / 30) * (1 - step / steps)
        reseed(key(1, "dropout", step))
        given = pairs(batch(*batches(step), pieces=PIECES))
        table = model.output
        total, _ = loss(model(given), table.weight, given.labels_T, given.weight_T, table.pieces)
        optimiser.zero_grad()
        (total / given.weight_T.sum()).backward()
        optimiser.step()
    return model.eval()


def right(model: Transformer, source: list[np.ndarray], target: list[np.ndarray], beam: int = 1) -> float:
    """The share of sequences translated exactly."""
    found = search(TransformerStepper(model), source, Decoding(beam=beam), Symbols(PIECES))
    return float(np.mean([best[0].tokens == tuple(t[:-1]) for best, t in zip(found, target, strict=True)]))


@pytest.mark.parametrize(
    ("choices", "steps"),
    [({}, 150), ({"norm_place": "pre", "norm": "rms", "activation": "gelu", "dropout": 0.05}, 300)],
    ids=["paper", "pre"],
)
@pytest.mark.one_of(2, minutes=0.1)
def test_a_small_set_is_learned_by_heart(choices: dict, steps: int) -> None:
    examples = drawn(24, 0)
    model = trained(choices, steps, lambda step: examples)
    assert right(model, *examples) == 1.0
    assert right(model, *examples, beam=3) == 1.0


@pytest.mark.long(minutes=1.5)
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_reversing_is_learned_with_positions(positions: str) -> None:
    model = trained({"positions": positions}, 1500, lambda step: drawn(64, 1, step))
    assert right(model, *drawn(300, 2)) > 0.9


@pytest.mark.long(minutes=0.5)
def test_reversing_is_learned_by_t5() -> None:
    """As in [Raffel20 §2.1]: positions by distance alone, RMS norm, neither biases nor scaled scores."""
    parts = {"positions": "relative", "norm": "rms", "norm_place": "pre", "biases": False}
    scales = {"scale_scores": False, "scale_embedding": False, "scale_output": True}
    model = trained(parts | scales, 600, lambda step: drawn(64, 1, step))
    assert right(model, *drawn(300, 2)) > 0.9


@pytest.mark.long(minutes=1.5)
def test_order_cannot_be_learned_without_positions() -> None:
    model = trained({"positions": "none"}, 1500, lambda step: drawn(64, 1, step))
    source, target = drawn(300, 2)
    long = [i for i, s in enumerate(source) if len(s) >= 6]  # five words and more: 120 orders
    assert right(model, [source[i] for i in long], [target[i] for i in long]) < 0.1
    words = search(TransformerStepper(model), source, Decoding(beam=1), Symbols(PIECES))
    same_words = np.mean([sorted(w[0].tokens) == sorted(t[:-1].tolist()) for w, t in zip(words, target, strict=True)])
    assert same_words > 0.9  # which words there are is learned all the same
