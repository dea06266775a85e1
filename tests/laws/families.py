"""The families that laws are held to: how a small one is built, what it reads, and the choices that laws cover.

For each family a few combinations cover all pairs of words; more of them are in the long grade.
"""

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from regard.models.inputs import pairs
from regard.nn.layout import Sequences
from regard.nn.loss import SmoothedCrossEntropy
from tests.models import small_models as small
from tests.models.small_models import PIECES

Choices = dict[str, Any]
DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
GRADIENT = pytest.mark.parametrize("gradient", [False, True], ids=["no_grad", "grad"])
SOURCES, TARGETS = small.sentences([5, 1, 7, 3]), small.sentences([4, 6, 1, 3], seed=9)
DRAWN, MORE, USUAL = 400, {"transformer": 200}, 60
"""Combinations drawn by seed, and how many are in the long grade: of some families, and usually."""
COMMON: dict[str, list[Any]] = {
    "norm_place": ["post", "pre"],
    "activation": ["relu", "gelu", "gelu_tanh", "swish", "gated_gelu", "gated_swish"],
    "sizes": [{}, {"d_k": 2, "d_v": 5}, {"d_k": 6}],
    "parts": [{}, {"biases": False, "scale_scores": False}],
}
ANY_NORM = {"norm": ["layer", "rms", "batch", "group"]}
POSITIONS = {"positions": ["sinusoidal", "learned", "relative", "alibi", "rotary", "none"]}
RECURRENT = {"cell": ["elman", "gru", "lstm"], "two_way": [{"two_way": False}, {"two_way": True}]}
T5 = {"norm": "rms", "norm_place": "pre", "activation": "relu", "positions": "relative", "tie": "three"} | {
    "sizes": {},
    "parts": {"biases": False, "scale_scores": False, "scale_embedding": False, "scale_output": True},
}
"""What [Raffel20 §2.1] changed of the Transformer."""
WORDS: dict[str, dict[str, list[Any]]] = {
    "transformer": {
        **ANY_NORM,
        **COMMON,
        **POSITIONS,
        "tie": ["none", "two", "three"],
        "parts": [*COMMON["parts"], {"scale_embedding": False, "scale_output": True}, {"decoder_heads": 1}],
    },
    "rnn": {
        **RECURRENT,
        "score": ["none", "dot", "scaled", "general", "additive", "cosine"],
        "input_feeding": [{"input_feeding": False}, {"input_feeding": True}],
        "tie": ["none", "two", "three"],
        "layers": [{"decoder_layers": 1}, {"decoder_layers": 2}],
    },
    "bert": {
        **ANY_NORM,
        **COMMON,
        **POSITIONS,
        "segments": [{"segments": 0}, {"segments": 2}],
        "embedding_norm": [{"embedding_norm": False}, {"embedding_norm": True}],
        "head": ["words", "classes", "tags"],
        "pool": ["first", "mean", "max"],
        "pooler": [{"pooler": False}, {"pooler": True}],
        "words": [{"word_features": None}, {"word_features": 11}],
    },
    "gpt": {"norm": ["layer", "rms", "group"], **COMMON, **POSITIONS},
    "vit": {**ANY_NORM, **COMMON, "positions": ["learned", "grid", "none"], "pool": ["first", "mean", "max"]},
    "rnn-encoder": {
        **RECURRENT,
        "layers": [{"layers": 1}, {"layers": 2}],
        "read": [
            *({"head": "classes", "pool": pool} for pool in ("mean", "max", "attention")),
            *({"head": "tags", "pool": pool} for pool in ("mean", "max")),
        ],
        "pooler": [{"pooler": False}, {"pooler": True}],
        "words": [{"word_features": None}, {"word_features": 11}, {"units": "words"}, {"d_embedding": 10}],
    },
}


FURTHER_POSITIONS = {
    "positions": [{"positions": "timing_signal", "first_position": 2}, {"positions": "learned", "first_position": 2}]
}
FURTHER: dict[str, dict[str, list[Any]]] = {
    "transformer": {
        **FURTHER_POSITIONS,
        "parts": [{"output_bias": True, "embedding_norm": True}],
        "cell": [{}, {"decoder_cell": "ssru"}],
    },
    **dict.fromkeys(("bert", "gpt"), FURTHER_POSITIONS),
}
"""Words that came later, drawn by themselves, so that the combinations of before stay as they were."""


def _flat(combination: Mapping[str, Any]) -> Choices:
    found: Choices = {}
    for field, word in combination.items():
        found |= word if isinstance(word, dict) else {field: word}
    return found


def _name(combination: Mapping[str, Any]) -> str:
    words = ("".join(f"{k}{v}" for k, v in w.items()) if isinstance(w, dict) else w for w in combination.values())
    return "-".join(words)


def _words(combination: Mapping[str, Any]) -> set[tuple[str, str]]:
    return set(itertools.combinations([f"{field}={word}" for field, word in combination.items()], 2))


def _covering(every: list[Choices]) -> list[Choices]:
    """A few in which any two words meet: the one with most new pairs, again and again."""
    words, chosen = [_words(one) for one in every], []
    wanted = set().union(*words)
    while wanted:
        best = max(range(len(every)), key=lambda n: len(words[n] & wanted))
        chosen.append(every[best])
        wanted -= words[best]
    return chosen


def _combinations(family: str) -> list[tuple[Choices, bool]]:
    """Combinations of a family's words, and whether each is one of the few."""
    words = random.Random(3)
    every = [{field: words.choice(those) for field, those in WORDS[family].items()} for _ in range(DRAWN)]
    every = [one for one in every if one.get("score") != "none" or not one["input_feeding"]["input_feeding"]]
    few = _covering(every) + [T5] * (family == "transformer")
    drawn = every[: MORE.get(family, USUAL)]
    if family in FURTHER:
        all_words = {field: WORDS[family].get(field, []) + FURTHER[family].get(field, []) for field in _fields(family)}
        later = [{field: words.choice(those) for field, those in all_words.items()} for _ in range(DRAWN)]
        few += _covering(later)
        drawn += later[:USUAL]
    return [(one, True) for one in few] + [(one, False) for one in drawn if one not in few]


def _fields(family: str) -> list[str]:
    return list(dict.fromkeys([*WORDS[family], *FURTHER[family]]))


COMBINATIONS = {family: _combinations(family) for family in WORDS}
FEW = {family: [_flat(one) for one, few in found if few] for family, found in COMBINATIONS.items()}


@dataclass(frozen=True)
class Family:
    """A family of one input; ``choices`` are what its models are built with."""

    name: str
    choices: Choices

    def model(self, dtype: torch.dtype = torch.float64, **more: Any) -> Any:
        """A small model in evaluation mode."""
        return getattr(small, self.name.replace("-", "_"))(dtype=dtype, **{**self.choices, **more})

    def given(self, dtype: torch.dtype = torch.float64, tail: int = 0, spare: int = 0) -> Any:
        """Four texts."""
        return small.texts(SOURCES, tail, spare)

    def alone(self, b: int, dtype: torch.dtype) -> Any:
        """One of them."""
        return small.texts([SOURCES[b]])

    def said(self, model: nn.Module, given: Any) -> list[tuple[Tensor, Sequences]]:
        """Outputs with what they are outputs of: a row for each token, or for each text."""
        return [(model(given), given.sequences)]

    def written(self, given: Any) -> Any:
        """The tokens of which a later one must not change an earlier output."""
        return given

    def heard(self) -> dict[str, list[tuple[int, int]]]:
        """For each point that weights pass, how many queries and keys each of its tensors has."""
        shapes = [(len(ids), len(ids)) for ids in SOURCES]
        return {f"encoder.{layer}.attention.weight": shapes for layer in range(2)}

    def loss(self, model: Any) -> Tensor:
        """A loss that every parameter has a part in."""
        given = small.texts(small.sentences([6, 7, 5]), tail=3)
        return against_noise(model(given))

    def steps(self) -> tuple[list[np.ndarray], np.ndarray]:
        """Sources of a search, and the first token of each."""
        return SOURCES, np.full(len(SOURCES), PIECES)

    @property
    def attends(self) -> bool:
        """Whether its attention without hooks may round like the reference, sentence by sentence."""
        return True


class EncoderDecoder(Family):
    """Transformer and rnn, which read pairs."""

    def given(self, dtype: torch.dtype = torch.float64, tail: int = 0, spare: int = 0) -> Any:
        return pairs(small.batch(SOURCES, TARGETS, tail, spare))

    def alone(self, b: int, dtype: torch.dtype) -> Any:
        return pairs(small.batch([SOURCES[b]], [TARGETS[b]]))

    def said(self, model: Any, given: Any) -> list[tuple[Tensor, Sequences]]:
        memory = model.encoder(given.source)
        read = [memory] if isinstance(memory, Tensor) else [memory.memory_SD, memory.last_BX]
        return [*((one, given.source.sequences) for one in read), (model(given), given.target.sequences)]

    def written(self, given: Any) -> Any:
        return given.target

    def heard(self) -> dict[str, list[tuple[int, int]]]:
        lengths = list(zip(map(len, SOURCES), map(len, TARGETS), strict=True))
        cross, own = [(t, s) for s, t in lengths], [(t, t) for _, t in lengths]
        uses = [("attention", own), ("cross", cross)]
        if self.name == "rnn":
            if self.choices["input_feeding"]:  # a step at a time, of all sentences that are long enough
                times = range(max(t for _, t in lengths))
                order = sorted(lengths, key=lambda pair: -pair[1])
                cross = [(1, s) for time in times for s, t in order if t > time]
            return {} if self.choices["score"] == "none" else {"decoder.cross.weight": cross}
        return super().heard() | {
            f"decoder.{layer}.{kind}.weight": shapes
            for layer in range(2)
            for kind, shapes in uses["decoder_cell" in self.choices :]
        }

    def loss(self, model: Any) -> Tensor:
        given = small.some_pairs([(5, 6), (7, 4), (3, 5)], tail=3)
        projection = model.projection(model(given))
        total, _ = SmoothedCrossEntropy(0.1)(*projection, given.labels_T, given.weight_T.double(), model.pieces)
        return total  # type: ignore[no-any-return]

    @property
    def attends(self) -> bool:
        return self.name != "rnn"


class Gpt(Family):
    """Decoder-only models."""

    def heard(self) -> dict[str, list[tuple[int, int]]]:
        return {name.replace("encoder", "decoder"): shapes for name, shapes in super().heard().items()}

    def loss(self, model: Any) -> Tensor:
        given = small.texts(small.sentences([6, 7, 5]), tail=3)
        labels_T, weight_T = torch.arange(len(given.ids_T)) % PIECES, given.sequences.inside_T.double()
        total, _ = SmoothedCrossEntropy(0.1)(*model.projection(model(given)), labels_T, weight_T, PIECES)
        return total  # type: ignore[no-any-return]

    def steps(self) -> tuple[list[np.ndarray], np.ndarray]:
        return SOURCES, np.array([3, 4, 5, 6])


class Bert(Family):
    """Encoders of texts with each head."""

    def loss(self, model: Any) -> Tensor:
        given = small.texts(small.sentences([6, 7, 5]), tail=3, segments=True)  # batch norm does not see what all have
        said = model(given)
        return against_noise(model.head.scores(said) if self.choices["head"] == "words" else said)


class RnnEncoder(Family):
    """Recurrent encoders of texts with each head."""

    def heard(self) -> dict[str, list[tuple[int, int]]]:
        attends = self.choices["pool"] == "attention"
        return {"head.pool.weight": [(1, len(ids)) for ids in SOURCES]} if attends else {}

    @property
    def attends(self) -> bool:
        return False


class Vit(Family):
    """Encoders of images: a class token and six patches each."""

    def given(self, dtype: torch.dtype = torch.float64, tail: int = 0, spare: int = 0) -> Any:
        return small.images(3, dtype, tail=tail)

    def alone(self, b: int, dtype: torch.dtype) -> Any:
        alone, together = small.images(1, dtype), small.images(3, dtype)
        alone.pixels_TP[:] = together.pixels_TP[7 * b : 7 * b + 7]
        return alone

    def heard(self) -> dict[str, list[tuple[int, int]]]:
        return dict.fromkeys(super().heard(), [(7, 7)] * 3)

    def loss(self, model: Any) -> Tensor:
        return against_noise(model(small.images(3, tail=3)))


KINDS = {"transformer": EncoderDecoder, "rnn": EncoderDecoder, "bert": Bert, "gpt": Gpt, "vit": Vit} | {
    "rnn-encoder": RnnEncoder
}
ALL = tuple(KINDS)
WRITING = ("transformer", "rnn", "gpt")


def against_noise(said: Tensor) -> Tensor:
    """The output against random numbers."""
    target = torch.randn(said.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return (said * target).sum()


def held(*families: str, **thin: int) -> pytest.MarkDecorator:
    """The parameter ``family``: each combination of these; of ``thin`` ones every n-th in the default grade."""
    return pytest.mark.parametrize(
        "family",
        [
            pytest.param(
                KINDS[name](name, _flat(one)),
                id=f"{name}-{_name(one)}",
                marks=(pytest.mark.one_of(thin[name]) if name in thin else ())
                if few
                else pytest.mark.long(minutes=0.01),
            )
            for name in families
            for one, few in COMBINATIONS[name]
        ],
    )
