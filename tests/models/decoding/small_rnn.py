"""Small recurrent models to test with, and the combinations of their choices that laws are held to."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
import torch

from regard.config import RnnSection
from regard.models.build import rnn
from regard.models.rnn import Rnn
from tests.models.small_models import PIECES, stir

SIZES: dict[str, Any] = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 12, "dropout": 0.0}
WORDS: dict[str, list[Any]] = {
    "cell": ["elman", "gru", "lstm"],
    "score": ["none", "dot", "scaled", "general", "additive", "cosine"],
    "two_way": [False, True],
    "input_feeding": [False, True],
}
TIES = ["none", "two", "three"]
EVERY: list[dict[str, Any]] = [
    {**choices, "tie": TIES[i % 3], "decoder_layers": 1 + i // 3 % 2}  # which meet the others only in turn
    for i, choices in enumerate(dict(zip(WORDS, chosen, strict=True)) for chosen in itertools.product(*WORDS.values()))
    if not (choices["input_feeding"] and choices["score"] == "none")
]


def _pairs(choices: dict[str, Any]) -> set[tuple[Any, Any]]:
    return set(itertools.combinations(choices.items(), 2))


def _covering(seed: int = 1) -> list[dict[str, Any]]:
    """A few combinations in which any two words meet: the one with most new pairs, again and again."""
    left = random.Random(seed).sample(EVERY, len(EVERY))
    wanted, chosen = set().union(*map(_pairs, left)), []
    while wanted:
        best = max(left, key=lambda choices: len(_pairs(choices) & wanted))
        chosen.append(best)
        wanted -= _pairs(best)
    return chosen


FEW = _covering()
COMBINATIONS = pytest.mark.parametrize(
    "choices",
    [
        pytest.param(
            choices,
            id="-".join(f"{field}{word}" if isinstance(word, int) else word for field, word in choices.items()),
            marks=() if choices in FEW else pytest.mark.long(minutes=0.01),
        )
        for choices in EVERY
    ],
)


def section(**choices: Any) -> RnnSection:
    return RnnSection(**{**SIZES, **choices})


def small(*, pieces: int = PIECES, dtype: torch.dtype = torch.float64, key: int = 7, **choices: Any) -> Rnn:
    """A recurrent model in evaluation mode, all its weights moved a little but the start symbol's row."""
    built = rnn(section(**choices), pieces, pieces, key)
    stir(built, key)
    return built.to(dtype).eval()
