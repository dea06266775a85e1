"""Small models without a second side (GPT, BERT, ViT) to test with, and the choices that laws are held to."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from regard.config import BertSection, GptSection, RnnEncoderSection, VitSection
from regard.models import build
from regard.models.bert import Bert
from regard.models.gpt import Gpt
from regard.models.inputs import Patches, Tokens
from regard.models.rnn import RecurrentEncoder
from regard.models.vit import Vit
from tests.models.small_models import PIECES, sequences, stir

SIZES: dict[str, Any] = {
    "layers": 2,
    "d_model": 12,
    "d_ff": 20,
    "heads": 3,
    "max_positions": 64,
    "dropout": 0.0,
    "norm_groups": 3,
    "relative_buckets": 8,
    "relative_distance": 16,
}
COMMON: dict[str, list[Any]] = {
    "norm_place": ["post", "pre"],
    "activation": ["relu", "gelu", "gelu_tanh", "swish", "gated_gelu", "gated_swish"],
    "sizes": [{}, {"d_k": 2, "d_v": 5}, {"d_k": 6}],
    "parts": [{}, {"biases": False, "scale_scores": False}],
}
TEXTS = {"positions": ["sinusoidal", "learned", "relative", "none"]}
OF_GPT = {"norm": ["layer", "rms", "group"], **COMMON, **TEXTS}
OF_BERT = {
    "norm": ["layer", "rms", "batch", "group"],
    **COMMON,
    **TEXTS,
    "segments": [{"segments": 0}, {"segments": 2}],
    "embedding_norm": [{"embedding_norm": False}, {"embedding_norm": True}],
    "head": ["words", "classes", "tags"],
    "pool": ["first", "mean", "max"],
    "pooler": [{"pooler": False}, {"pooler": True}],
}
OF_VIT = {
    "norm": ["layer", "rms", "batch", "group"],
    **COMMON,
    "positions": ["learned", "grid", "none"],
    "pool": ["first", "mean", "max"],
}
OF_RNN_ENCODER = {
    "cell": ["elman", "gru", "lstm"],
    "layers": [{"layers": 1}, {"layers": 2}],
    "two_way": [{"two_way": False}, {"two_way": True}],
    "read": [
        *({"head": "classes", "pool": pool} for pool in ("mean", "max", "attention")),
        *({"head": "tags", "pool": pool} for pool in ("mean", "max")),
    ],
    "pooler": [{"pooler": False}, {"pooler": True}],
}
DRAWN, MORE = 400, 60
"""Combinations drawn by seed; any two words that meet in them meet in the few that are held to the laws, and so many
more are in the long grade."""
CLASSES = 5


def _words(combination: dict[str, Any]) -> set[tuple[str, str]]:
    return set(itertools.combinations([f"{field}={word}" for field, word in combination.items()], 2))


def _covering(every: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A few in which any two words meet: the one with most new pairs, again and again."""
    left = list(every)
    wanted, chosen = set().union(*map(_words, left)), []
    while wanted:
        best = max(left, key=lambda combination: len(_words(combination) & wanted))
        chosen.append(best)
        wanted -= _words(best)
    return chosen


def combinations(words: dict[str, list[Any]]) -> pytest.MarkDecorator:
    """The parameter ``chosen``: a few combinations that cover all pairs of words, and more in the long grade."""
    random_words = random.Random(3)
    every = [{field: random_words.choice(those) for field, those in words.items()} for _ in range(DRAWN)]
    few = _covering(every)
    more = [one for one in every[:MORE] if one not in few]
    return pytest.mark.parametrize(
        "chosen",
        [
            pytest.param(_flat(one), id=_name(one), marks=() if one in few else pytest.mark.long(minutes=0.01))
            for one in few + more
        ],
    )


def _flat(combination: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field, word in combination.items():
        found |= word if isinstance(word, dict) else {field: word}
    return found


def _name(combination: dict[str, Any]) -> str:
    words = ("".join(f"{k}{v}" for k, v in w.items()) if isinstance(w, dict) else w for w in combination.values())
    return "-".join(words)


def gpt(*, pieces: int = PIECES, dtype: torch.dtype = torch.float64, key: int = 7, **choices: Any) -> Gpt:
    """A decoder-only model in evaluation mode, all its weights moved a little."""
    built = build.gpt(GptSection(**{**SIZES, **choices}), pieces, key)
    stir(built, key)
    return built.to(dtype).eval()


def bert(*, dtype: torch.dtype = torch.float64, key: int = 7, head: str = "words", **choices: Any) -> Bert:
    """An encoder-only model in evaluation mode with one of the heads, all its weights moved a little."""
    section = BertSection(**{**SIZES, **choices})
    heads = {
        "words": build.words(section),
        "classes": build.classes(section, CLASSES),
        "tags": build.tags(section, CLASSES),
    }
    built = build.bert(section, PIECES, heads[head], key)
    stir(built, key)
    return built.to(dtype).eval()


def rnn_encoder(
    *, dtype: torch.dtype = torch.float64, key: int = 7, head: str = "classes", **choices: Any
) -> RecurrentEncoder:
    """A recurrent reader in evaluation mode with one of the heads, all its weights moved a little."""
    section = RnnEncoderSection(**{"d_model": 12, "dropout": 0.0, **choices})
    heads = {"classes": build.classes(section, CLASSES), "tags": build.tags(section, CLASSES)}
    built = build.rnn_encoder(section, PIECES, heads[head], key)
    stir(built, key)
    return built.to(dtype).eval()


IMAGE: dict[str, Any] = {"height": 4, "width": 6, "channels": 1, "patch": 2}
"""Six patches of four pixels."""


def vit(*, dtype: torch.dtype = torch.float64, key: int = 7, **choices: Any) -> Vit:
    """An encoder of images in evaluation mode, all its weights moved a little."""
    sizes = {name: value for name, value in SIZES.items() if name in VitSection.model_fields}
    built = build.vit(VitSection(**{**sizes, **IMAGE, **choices}), CLASSES, key)
    stir(built, key)
    return built.to(dtype).eval()


def texts(given: Sequence[np.ndarray], tail: int = 0, spare: int = 0) -> Tokens:
    """Texts end to end, ``tail`` tokens of none of them behind."""
    ids = np.concatenate([*given, np.zeros(tail, np.int64)])
    return Tokens(torch.from_numpy(ids), sequences([len(one) for one in given], tail, spare))


def images(count: int, dtype: torch.dtype = torch.float64, seed: int = 0, tail: int = 0) -> Patches:
    """Images as patches, a row of zeros before each."""
    patches = (IMAGE["height"] // 2) * (IMAGE["width"] // 2)
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randn(count, 1 + patches, 4, generator=generator, dtype=torch.float64)
    pixels[:, 0] = 0
    pixels_TP = torch.cat([pixels.flatten(0, 1), torch.zeros(tail, 4, dtype=torch.float64)]).to(dtype)
    return Patches(pixels_TP, sequences([1 + patches] * count, tail))
