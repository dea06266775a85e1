"""Named sizes: every row of the paper's Table 3, its big model, and two for small data [Vaswani17 §6.2, Table 3]."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import nn

from regard.config import TransformerSection, nearest
from regard.errors import UsageError
from regard.models.build import outline


@dataclass(frozen=True)
class Preset:
    """Values of the model section, and what the paper reports of them.

    Args:
        model: values that differ from the base model's.
        training: values of the training section that belong to the row (label smoothing, steps).
        parameters: the paper's figure in millions, where it gives one.
    """

    model: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    parameters: int | None = None
    what: str = ""


_SMALL: dict[str, Any] = {"norm_place": "pre", "dropout": 0.2}


def _heads(heads: int, size: int) -> Preset:
    return Preset({"heads": heads, "d_k": size, "d_v": size}, what=f"{heads} heads of {size}")


PRESETS: dict[str, Preset] = {
    "tiny": Preset(
        {"encoder_layers": 4, "decoder_layers": 4, "d_model": 128, "d_ff": 512, "heads": 4, **_SMALL},
        what="for tens of thousands of pairs",
    ),
    "small": Preset(
        {"encoder_layers": 3, "decoder_layers": 3, "d_model": 256, "d_ff": 1024, "heads": 4, **_SMALL},
        what="for a hundred thousand pairs and more",
    ),
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
}
PAPER_VOCABULARY = 37_000
"""Shared byte-pair pieces of the paper's English-German models [Vaswani17 §5.1]."""


def preset(name: str) -> Preset:
    """The preset of that name.

    Raises:
        UsageError: there is none; names the nearest.
    """
    if name not in PRESETS:
        raise UsageError(f"unknown preset {name!r}.{nearest(name, PRESETS)} Known: {', '.join(PRESETS)}", "preset")
    return PRESETS[name]


@dataclass(frozen=True)
class Part:
    """A part of a model and how many parameters it has."""

    name: str
    parameters: int


def parts(model: TransformerSection, source_pieces: int, target_pieces: int) -> list[Part]:
    """Parameters part by part, in the order of Figure 1; what is shared is counted once, where it first stands."""
    counted: set[int] = set()

    def count(module: nn.Module) -> int:
        fresh = {id(p): p.numel() for p in module.parameters() if id(p) not in counted}
        counted.update(fresh)
        return sum(fresh.values())

    built = outline(model, source_pieces, target_pieces)
    rows: list[tuple[str, nn.Module]] = [("source embedding", built.encoder.input)]
    rows += [(f"encoder.{i}.{name}", part) for i, name, part in _layer_parts(built.encoder)]
    rows += [("encoder.final", built.encoder.final), ("target embedding", built.decoder.input)]
    rows += [(f"decoder.{i}.{name}", part) for i, name, part in _layer_parts(built.decoder)]
    rows += [("decoder.final", built.decoder.final), ("output", built.output)]
    return [Part(name, count(module)) for name, module in rows]


def _layer_parts(stack: nn.Module) -> list[tuple[int, str, Any]]:
    layers: Any = stack.layers
    return [(i, name, part) for i, layer in enumerate(layers) for name, part in layer.named_children()]
