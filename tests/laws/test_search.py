"""The law of search on the real model: a beam of one is greedy, a wide beam is exhaustive."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from regard.config import Decoding
from regard.decoding.rows import Symbols, length_penalty
from regard.decoding.search import search
from regard.models.decoding.transformer import TransformerStepper
from regard.models.inputs import pairs
from tests.models.small_models import batch, section, sentences, small

VOCABULARY, LIMIT = 5, 3
SOURCES = sentences([3, 1], pieces=VOCABULARY)


def log_probability(model, source: np.ndarray, output: list[int]) -> float:
    """Of a whole output by teacher forcing, all at once."""
    given = pairs(batch([source], [np.array(output)], pieces=VOCABULARY))
    with torch.no_grad():
        scores = model.output.scores(model(given)).log_softmax(1)
    return float(scores.gather(1, torch.tensor(output)[:, None]).sum())


@pytest.mark.parametrize("alpha", [0.0, 0.6])
@pytest.mark.one_of(2)
def test_search(choices, alpha: float) -> None:
    model = small(section(**choices), pieces=VOCABULARY)
    symbols, extra = Symbols(VOCABULARY), LIMIT - 1
    source = SOURCES[1]
    assert len(source) + extra == LIMIT
    pieces = range(2, VOCABULARY)
    outputs = [[*words, 0] for n in range(LIMIT) for words in itertools.product(pieces, repeat=n)]
    scored = [log_probability(model, source, o) / length_penalty(float(len(o)), alpha) for o in outputs]
    best = np.argsort(scored)[::-1]
    wide = Decoding(beam=40, length_penalty=alpha, max_extra=extra)
    found = search(TransformerStepper(model), [source], wide, symbols, nbest=5)[0]
    assert [[*h.tokens, 0] for h in found] == [outputs[i] for i in best[:5]]
    assert np.allclose([h.score for h in found], [scored[i] for i in best[:5]], atol=1e-9)


@pytest.mark.one_of(2)
def test_a_beam_of_one_is_greedy(choices) -> None:
    model = small(section(**choices), pieces=VOCABULARY)
    for source in SOURCES:
        words: list[int] = []
        while len(words) < len(source) + 2:
            scores = [log_probability(model, source, [*words, t]) if t != 1 else -np.inf for t in range(VOCABULARY)]
            words.append(int(np.argmax(scores)))
            if words[-1] == 0:
                break
        (found,) = search(TransformerStepper(model), [source], Decoding(beam=1, max_extra=2), Symbols(VOCABULARY))[0]
        assert [*found.tokens, *([0] if found.finished else [])] == words
