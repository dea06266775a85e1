"""The parts together learn: small models that write reverse sequences, those that need positions for it by them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from regard.config import GptSection, RnnSection
from regard.models import build
from tests.learn.reversals import (
    MARK,
    PIECES,
    Examples,
    backwards,
    drawn,
    fit,
    loss_of_pairs,
    loss_of_texts,
    right,
    written,
)
from tests.models.small_models import section

RATES = {"transformer": 5e-3, "gpt": 5e-3, "rnn": 1e-2}


def untrained(family: str, choices: dict[str, Any]) -> Any:
    sizes = {"d_model": 32, "d_ff": 64, "heads": 2}
    if family == "transformer":
        chosen = section(**{"encoder_layers": 1, "decoder_layers": 1, **sizes, **choices})
        return build.transformer(chosen, PIECES, PIECES, key=5)
    if family == "gpt":
        more = {"layers": 2, "dropout": 0.0, "max_positions": 16}
        return build.gpt(GptSection(**{**sizes, **more, **choices}), PIECES, key=5)
    return build.rnn(RnnSection(**{"d_model": 32, "dropout": 0.0, **choices}), PIECES, PIECES, key=5)


def examples_of(family: str, count: int, *numbers: int, longest: int = 6) -> Examples:
    words = drawn(count, *numbers, longest=longest, repeats=family == "rnn")
    return backwards(words, MARK if family == "gpt" else 0)


def reversing(family: str, choices: dict[str, Any], steps: int, longest: int = 6, **rate: float) -> Any:
    """A model that has learned to reverse, and examples that it has not seen."""
    learned = taught(family, choices, steps, lambda step: examples_of(family, 64, 1, step, longest=longest), **rate)
    return learned, examples_of(family, 300, 2, longest=longest)


def taught(family: str, choices: dict[str, Any], steps: int, examples: Callable[[int], Examples], **rate: float) -> Any:
    model, loss = untrained(family, choices), loss_of_texts if family == "gpt" else loss_of_pairs
    return fit(model, steps, lambda step: loss(model, examples(step)), **{"rate": RATES[family], **rate})


@pytest.mark.parametrize(
    ("family", "choices", "steps"),
    [
        ("transformer", {}, 150),
        ("transformer", {"norm_place": "pre", "norm": "rms", "activation": "gelu", "dropout": 0.05}, 300),
        ("gpt", {"norm_place": "post", "positions": "sinusoidal"}, 200),
        ("gpt", {}, 200),
        ("gpt", {"positions": "relative", "norm": "rms", "dropout": 0.05}, 200),
        ("rnn", {"cell": "lstm", "score": "general", "input_feeding": True, "two_way": False}, 150),
        ("rnn", {}, 150),
        ("rnn", {"cell": "elman", "score": "none", "dropout": 0.05}, 150),
    ],
    ids=["paper", "pre", "gpt-post", "gpt", "gpt-relative", "luong", "rnn", "bottleneck"],
)
@pytest.mark.one_of(8, minutes=0.1)
def test_a_small_set_is_learned_by_heart(family: str, choices: dict[str, Any], steps: int) -> None:
    examples = examples_of(family, 24, 0)
    model = taught(family, choices, steps, lambda step: examples)
    assert right(model, examples) == 1.0
    assert right(model, examples, beam=3) == 1.0


T5 = {"positions": "relative", "norm": "rms", "norm_place": "pre", "biases": False, "scale_scores": False}
T5 |= {"scale_embedding": False, "scale_output": True}
"""As in [Raffel20 §2.1]: positions by distance alone, RMS norm, neither biases nor scaled scores."""


@pytest.mark.long(minutes=1.5)
@pytest.mark.parametrize(
    ("family", "choices", "steps", "longest", "least", "rate"),
    [
        ("transformer", {"positions": "sinusoidal"}, 1500, 6, 0.9, 5e-3),
        ("transformer", {"positions": "learned"}, 1500, 6, 0.9, 5e-3),
        ("transformer", T5, 600, 6, 0.9, 5e-3),
        ("gpt", {}, 1500, 6, 0.9, 5e-3),
        ("gpt", {"positions": "none"}, 1500, 4, 0.8, 5e-3),  # the causal mask is an order of its own
        *(("rnn", {"cell": cell, "score": "none", "d_model": 64}, 1500, 6, 0.9, 4e-3) for cell in ("gru", "lstm")),
    ],
    ids=["sinusoidal", "learned", "t5", "gpt", "gpt-none", "bottleneck-gru", "bottleneck-lstm"],
)
def test_reversing_is_learned(family: str, choices, steps: int, longest: int, least: float, rate: float) -> None:
    assert right(*reversing(family, choices, steps, longest, rate=rate)) > least


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
@pytest.mark.parametrize("score", ["dot", "scaled", "general", "additive", "cosine"])
@pytest.mark.parametrize("feeding", [False, True])
def test_reversing_is_learned_by_a_recurrence(cell: str, score: str, feeding: bool) -> None:
    assert right(*reversing("rnn", {"cell": cell, "score": score, "input_feeding": feeding}, 600)) > 0.9


@pytest.mark.long(minutes=1.5)
def test_order_cannot_be_learned_without_positions() -> None:
    model, (source, target) = reversing("transformer", {"positions": "none"}, 1500)
    long = [i for i, s in enumerate(source) if len(s) >= 6]  # five words and more: 120 orders
    assert right(model, ([source[i] for i in long], [target[i] for i in long])) < 0.1
    words = written(model, source)
    same_words = np.mean([sorted(w) == sorted(t[:-1].tolist()) for w, t in zip(words, target, strict=True)])
    assert same_words > 0.9  # which words there are is learned all the same


@pytest.mark.long(minutes=0.5)
def test_long_sequences_do_not_fit_through_the_bottleneck() -> None:
    """Of the same size and after the same steps, only the model with attention reverses them."""
    shares = [right(*reversing("rnn", {"score": score}, 800, longest=14)) for score in ("additive", "none")]
    assert shares[0] > 0.8
    assert shares[1] < 0.4
