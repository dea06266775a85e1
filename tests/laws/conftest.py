"""The combinations of choices that laws are held to: a few that cover all pairs of words; with --all, many more."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

WORDS: dict[str, list[Any]] = {
    "norm": ["layer", "rms", "batch", "group"],
    "norm_place": ["post", "pre"],
    "activation": ["relu", "gelu", "gelu_tanh", "swish", "gated_gelu", "gated_swish"],
    "positions": ["sinusoidal", "learned", "relative", "none"],
    "tie": ["none", "two", "three"],
    "sizes": [{}, {"d_k": 2, "d_v": 5}, {"d_k": 6}],
    "parts": [{}, {"biases": False, "scale_scores": False}, {"scale_embedding": False, "scale_output": True}],
}
EVERY = [dict(zip(WORDS, chosen, strict=True)) for chosen in itertools.product(*WORDS.values())]
MORE = 200
"""Of all combinations so many, drawn by seed, are held to the laws in the long grade."""


def pairs(combination: dict[str, Any]) -> set[tuple[str, str]]:
    words = [f"{field}={word}" for field, word in combination.items()]
    return set(itertools.combinations(words, 2))


def covering(combinations: list[dict[str, Any]], seed: int = 1) -> list[dict[str, Any]]:
    """A few in which any two words meet: the one with most new pairs, again and again; ties in seeded order."""
    left = random.Random(seed).sample(combinations, len(combinations))
    wanted, chosen = set().union(*map(pairs, left)), []
    while wanted:
        best = max(left, key=lambda combination: len(pairs(combination) & wanted))
        chosen.append(best)
        wanted -= pairs(best)
    return chosen


T5 = {
    "norm": "rms",
    "norm_place": "pre",
    "activation": "relu",
    "positions": "relative",
    "tie": "three",
    "sizes": {},
    "parts": {"biases": False, "scale_scores": False, "scale_embedding": False, "scale_output": True},
}
"""What [Raffel20 §2.1] changed of the Transformer."""
FEW = [*covering(EVERY), T5]
DRAWN = FEW + [one for one in random.Random(2).sample(EVERY, MORE) if one not in FEW]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "choices" in metafunc.fixturenames:
        metafunc.parametrize(
            "choices",
            [
                pytest.param(
                    {field: word for field, word in combination.items() if isinstance(word, str)}
                    | combination["sizes"]
                    | combination["parts"],
                    id="-".join(
                        "".join(f"{k}{v}" for k, v in w.items()) if isinstance(w, dict) else w
                        for w in combination.values()
                    ),
                    marks=() if combination in FEW else pytest.mark.long(minutes=0.01),
                )
                for combination in DRAWN
            ],
        )
