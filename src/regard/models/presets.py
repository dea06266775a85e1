"""Named model sizes: every row of the paper's Table 3, published related models, and small ones for small data.

The rows of the table are [Vaswani17 §6.2, Table 3]; the relatives' are [Devlin19 §3; Radford19 Table 2; Raffel20 §3.7;
Dosovitskiy21 Table 1].
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from regard.config import FAMILIES, BertSection, Model, nearest
from regard.models import build
from regard.system.errors import UsageError

PAPER_VOCABULARY = 37_000
"""Shared byte-pair pieces of the paper's English-German models [Vaswani17 §5.1]."""


@dataclass(frozen=True)
class Preset:
    """Values of the model section, and the published figures.

    Args:
        model: values that differ from the defaults of the family.
        training: values of the training section that belong to the row (label smoothing, steps).
        parameters: the published figure in millions, where there is one.
        family: the word of the model section.
        pieces: of the vocabulary the figure is for; of a model of images its classes.
    """

    model: dict[str, object] = field(default_factory=dict)
    training: dict[str, object] = field(default_factory=dict)
    parameters: int | None = None
    what: str = ""
    family: str = "transformer"
    pieces: int = PAPER_VOCABULARY

    @property
    def section(self) -> Any:
        """The model section itself."""
        return FAMILIES[self.family].model_validate(self.model)


_SMALL: dict[str, object] = {"norm_place": "pre", "dropout": 0.2}
_LEARNS_FAST: dict[str, object] = {**_SMALL, "positions": "relative"}
_MEAN: dict[str, object] = {"pool": "mean", "pooler": False, "norm_epsilon": 1e-5}


def _sizes(layers: int, d_model: int, d_ff: int, heads: int) -> dict[str, object]:
    return {"layers": layers, "d_model": d_model, "d_ff": d_ff, "heads": heads}


def _two_stacks(layers: int, d_model: int, d_ff: int, heads: int) -> dict[str, object]:
    sizes = {"d_model": d_model, "d_ff": d_ff, "heads": heads}
    return {"encoder_layers": layers, "decoder_layers": layers, **sizes}


def _heads(heads: int, size: int) -> Preset:
    return Preset({"heads": heads, "d_k": size, "d_v": size}, what=f"{heads} heads of {size}")


def _encoder(model: dict[str, object], what: str, pieces: int) -> Preset:
    return Preset({**model, **_MEAN}, what=what, family="bert", pieces=pieces)


def _bert(model: dict[str, object], parameters: int, what: str) -> Preset:
    return Preset({**model, "attention_dropout": 0.1}, {}, parameters, what, "bert", 30_522)


def _gpt2(layers: int, d_model: int, heads: int, parameters: int) -> Preset:
    model = {**_sizes(layers, d_model, 4 * d_model, heads), "attention_dropout": 0.1}
    return Preset(model, {}, parameters, f"{layers} layers of GPT-2", "gpt", 50_257)


def _t5(layers: int, d_model: int, d_ff: int, heads: int, parameters: int) -> Preset:
    model = _two_stacks(layers, d_model, d_ff, heads)
    model |= {"norm": "rms", "norm_place": "pre", "norm_epsilon": 1e-6, "positions": "relative", "biases": False}
    model |= {"scale_scores": False, "scale_embedding": False, "scale_output": True}
    model |= {"attention_dropout": 0.1, "feedforward_dropout": 0.1}
    return Preset(model, {}, parameters, f"T5, {layers} layers on each side", pieces=32_128)


PRESETS: dict[str, Preset] = {
    "tiny": Preset({**_two_stacks(4, 128, 512, 4), **_LEARNS_FAST}, what="for tens of thousands of pairs"),
    "small": Preset({**_two_stacks(3, 256, 1024, 4), **_LEARNS_FAST}, what="for a hundred thousand pairs and more"),
    "base": Preset({}, {"steps": 100_000}, 65, "the paper's base model"),
    "A1": _heads(1, 512),
    "A2": _heads(4, 128),
    "A3": _heads(16, 32),
    "A4": _heads(32, 16),
    "B1": Preset({"d_k": 16}, {}, 58, "smaller keys"),
    "B2": Preset({"d_k": 32}, {}, 60, "smaller keys"),
    "C1": Preset({"encoder_layers": 2, "decoder_layers": 2}, {}, 36, "2 layers"),
    "C2": Preset({"encoder_layers": 4, "decoder_layers": 4}, {}, 50, "4 layers"),
    "C3": Preset({"encoder_layers": 8, "decoder_layers": 8}, {}, 80, "8 layers"),
    "C4": Preset({"d_model": 256, "d_k": 32, "d_v": 32}, {}, 28, "narrower"),
    "C5": Preset({"d_model": 1024, "d_k": 128, "d_v": 128}, {}, 168, "wider"),
    "C6": Preset({"d_ff": 1024}, {}, 53, "smaller feed-forward"),
    "C7": Preset({"d_ff": 4096}, {}, 90, "larger feed-forward"),
    "D1": Preset({"dropout": 0.0}, what="no dropout"),
    "D2": Preset({"dropout": 0.2}, what="more dropout"),
    "D3": Preset({}, {"label_smoothing": 0.0}, None, "no label smoothing"),
    "D4": Preset({}, {"label_smoothing": 0.2}, None, "more label smoothing"),
    "E": Preset({"positions": "learned"}, what="learned positions instead of sinusoids"),
    "big": Preset(
        {"d_model": 1024, "d_ff": 4096, "heads": 16, "dropout": 0.3}, {"steps": 300_000}, 213, "the paper's big model"
    ),
    "bert-tiny": _encoder({**_sizes(2, 128, 512, 4), **_SMALL}, "reads texts; for thousands of them", 8000),
    "tagger-tiny": _encoder(
        {**_sizes(2, 128, 512, 4), **_SMALL, "positions": "relative", "segments": 0, "embedding_norm": False},
        "tags words; for thousands of texts",
        8000,
    ),
    "tagger-rnn": Preset(
        {"cell": "lstm", "d_model": 256, "d_embedding": 128, "units": "words", "dropout": 0.5},
        what="tags words, which it reads both ways; for thousands of texts",
        family="rnn-encoder",
        pieces=3000,
    ),
    "classifier-tiny": _encoder(
        {**_sizes(2, 256, 512, 4), "norm_place": "pre", "dropout": 0.4},
        "reads texts to label them; for thousands of them",
        4000,
    ),
    "classifier-rnn": Preset(
        {"d_model": 256, "pool": "attention"},
        what="reads texts both ways to label them; for a few thousand of them",
        family="rnn-encoder",
        pieces=4000,
    ),
    "bert-small": _encoder(
        {**_sizes(4, 256, 1024, 4), "norm_place": "pre", "dropout": 0.1},
        "encoder; for initialisation, pretrained on millions of words",
        8000,
    ),
    "bert-base": _bert({}, 110, "the paper's base model"),
    "bert-large": _bert(_sizes(24, 1024, 4096, 16), 340, "the paper's large model"),
    "gpt-tiny": Preset(
        {**_sizes(4, 192, 768, 3), "activation": "relu", "dropout": 0.1, "positions": "relative"},
        what="writes texts; for a million characters and more",
        family="gpt",
        pieces=8000,
    ),
    "gpt2": _gpt2(12, 768, 12, 124),
    "gpt2-medium": _gpt2(24, 1024, 16, 355),
    "gpt2-large": _gpt2(36, 1280, 20, 774),
    "gpt2-xl": _gpt2(48, 1600, 25, 1558),
    "t5-tiny": Preset(
        {**_t5(2, 128, 512, 4, 0).model, "attention_dropout": 0.0, "feedforward_dropout": 0.0},
        what="reads texts and writes others; for thousands of pairs",
        pieces=8000,
    ),
    "t5-small": _t5(6, 512, 2048, 8, 60),
    "t5-base": _t5(12, 768, 3072, 12, 220),
    "vit-tiny": Preset(
        {"height": 8, "width": 8, "channels": 1, "patch": 2, **_sizes(4, 64, 256, 4)},
        what="for thousands of small images",
        family="vit",
        pieces=10,
    ),
    "vit-base": Preset({"dropout": 0.0}, {}, 86, "the paper's base model, patches of 16", "vit", 1000),
}


def preset(name: str, fitting: Collection[str] = PRESETS, where: str = "preset") -> Preset:
    """The preset of that name.

    Args:
        name: one of :data:`PRESETS`.
        fitting: those that can be meant.
        where: who is to blame.

    Raises:
        UsageError: there is none; names the nearest that fits.
    """
    if name not in PRESETS:
        raise UsageError(f"unknown preset {name!r}.{nearest(name, fitting)} Known: {', '.join(fitting)}", where)
    return PRESETS[name]


@dataclass(frozen=True)
class Part:
    """A part of a model and how many parameters it has."""

    name: str
    parameters: int


def meta_model(model: Model, pieces: int, target_pieces: int | None = None) -> nn.Module:
    """The model of a section without memory for its weights: to count.

    An encoder guesses masked words, a recurrent one makes a vector.
    """
    with torch.device("meta"):
        return build.outline(
            model, pieces, pieces, "words" if isinstance(model, BertSection) else "nothing", target_pieces
        )


def count_parameters(model: nn.Module) -> int:
    """How many numbers a model learns; what is shared counts once."""
    return sum(part.numel() for part in model.parameters())


def parts_of(built: nn.Module) -> list[Part]:
    """Parameters of a model part by part, in the order of Figure 1; what is shared counts where it first stands."""
    counted: set[int] = set()

    def count(module: nn.Module) -> int:
        fresh = {id(p): p.numel() for p in module.parameters() if id(p) not in counted}
        counted.update(fresh)
        return sum(fresh.values())

    stacks = [name for name, _ in built.named_children() if name in EMBEDDINGS]
    rows: list[tuple[str, nn.Module]] = []
    for name, part in built.named_children():
        if name not in stacks:
            rows.append((name, part))
            continue
        for inner, within in part.named_children():
            if inner == "input":
                rows.append((EMBEDDINGS[name] if len(stacks) > 1 else "embedding", within))
            elif inner == "layers":
                for i, layer in within.named_children():
                    rows += [(f"{name}.{i}.{inner}", piece) for inner, piece in layer.named_children()]
            else:
                rows.append((f"{name}.{inner}", within))
    own = [Part(name, part.numel()) for name, part in built.named_parameters(recurse=False)]  # the output's bias
    return [Part(name, count(module)) for name, module in rows] + own


EMBEDDINGS = {"encoder": "source embedding", "decoder": "target embedding"}
"""Stacks of layers to what stands below them."""
