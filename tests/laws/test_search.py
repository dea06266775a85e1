"""The law of search on the real model: a beam of one is greedy, a wide beam is exhaustive."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from regard.config import Decoding
from regard.decoding.hypotheses import Hypothesis, Symbols, length_penalty
from regard.decoding.search import search
from regard.models.decoding import stepper
from regard.models.inputs import pairs
from tests.laws.families import WRITING, Family, held
from tests.models.small_models import batch, sentences, texts

VOCABULARY, LIMIT = 5, 3
SOURCES = {"translates": sentences([3, 1], pieces=VOCABULARY), "continues": [np.array([3]), np.array([2, 4, 3])]}


def sources_of(family: Family) -> list[np.ndarray]:
    return SOURCES["continues" if family.name == "gpt" else "translates"]


def log_probability(model: Any, source: np.ndarray, output: list[int]) -> float:
    """Of a whole output by teacher forcing, all at once."""
    with torch.no_grad():
        if hasattr(model, "encoder"):
            hidden_TD = model(pairs(batch([source], [np.array(output)], pieces=VOCABULARY)))
        else:
            hidden_TD = model(texts([np.array([*source, *output[:-1]])]))[len(source) - 1 :]
        scores = model.scores(hidden_TD).log_softmax(1)
    return float(scores.gather(1, torch.tensor(output)[:, None]).sum())


def found_by(model: Any, source: np.ndarray, decoding: Decoding, limit: int, nbest: int = 1) -> list[Hypothesis]:
    options: dict[str, Any] = {"nbest": nbest, "limits": [limit]}
    if not hasattr(model, "encoder"):
        source, options["firsts"] = source[:-1], [source[-1]]
    return search(stepper(model), [source], decoding, Symbols(VOCABULARY), **options)[0]


@pytest.mark.one_of(72)
@held("transformer", "gpt")
@pytest.mark.parametrize("alpha", [0.0, 0.6])
@pytest.mark.parametrize("place", [0, 1])
def test_search(family: Family, alpha: float, place: int) -> None:
    model, source = family.model(pieces=VOCABULARY), sources_of(family)[place]
    outputs = [[*words, 0] for n in range(LIMIT) for words in itertools.product(range(2, VOCABULARY), repeat=n)]
    scored = [log_probability(model, source, o) / length_penalty(float(len(o)), alpha) for o in outputs]
    best = np.argsort(scored)[::-1]
    found = found_by(model, source, Decoding(beam=40, length_penalty=alpha), LIMIT, nbest=5)
    assert [[*h.tokens, 0] for h in found] == [outputs[i] for i in best[:5]]
    assert np.allclose([h.score for h in found], [scored[i] for i in best[:5]], atol=1e-9)


@pytest.mark.one_of(28)
@held(*WRITING)
def test_a_beam_of_one_is_greedy(family: Family) -> None:
    model = family.model(pieces=VOCABULARY)
    for source in sources_of(family):
        words: list[int] = []
        while len(words) < 5 and words[-1:] != [0]:
            scores = [log_probability(model, source, [*words, t]) if t != 1 else -np.inf for t in range(VOCABULARY)]
            words.append(int(np.argmax(scores)))
        (found,) = found_by(model, source, Decoding(beam=1), 5)
        assert [*found.tokens, *([0] if found.finished else [])] == words
