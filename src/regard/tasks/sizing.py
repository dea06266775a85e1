"""What suits a corpus where nobody says: preset, vocabulary, batch and length of the run, by its number of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from regard.config import TransformerSection
from regard.errors import RegardError
from regard.models.build import outline
from regard.models.presets import preset
from regard.training.memory import free_memory


@dataclass(frozen=True)
class Size:
    """Defaults for corpora below ``pairs`` sentence pairs.

    Args:
        tokens: target tokens of a batch; small data wants small batches (docs/experiments.md).
        epochs: passes over the corpus where neither steps nor minutes are given.
    """

    pairs: float
    preset: str
    vocabulary: int
    tokens: int
    epochs: int
    training: tuple[tuple[str, Any], ...] = ()


SIZES = (
    Size(10_000, "tiny", 2_000, 1024, 60, (("rate", 3e-3),)),
    Size(80_000, "tiny", 6_000, 1024, 30, (("rate", 3e-3),)),
    Size(500_000, "small", 8_000, 2048, 20),
    Size(3_000_000, "base", 16_000, 8192, 8, (("rate", 7e-4), ("warmup", 4000))),
    Size(float("inf"), "base", 32_000, 25_000, 4, (("rate", 7e-4), ("warmup", 4000))),
)
"""The documented table (docs/recipes.md): the first row a corpus is below."""


def size_for(pairs: int) -> Size:
    """The row of the table for so many pairs."""
    return next(size for size in SIZES if pairs < size.pairs)


NOAM = 1.0
"""The rate under ``noam``, where it is a factor of the paper's formula: the paper's [Vaswani17 §5.3, eq. 3]."""


def values(size: Size, name: str | None, with_model: bool, schedule: str | None = None) -> dict[str, Any]:
    """The row as recipe values.

    Args:
        size: the row.
        name: a preset asked for instead of the row's.
        with_model: False where a recipe brings a model section of its own; nothing is mixed into that.
        schedule: what is asked for; the row's peak rates are not for ``noam``.
    """
    chosen = preset(name or size.preset)
    found: dict[str, Any] = {
        "text": {"vocabulary": size.vocabulary},
        "training": {"tokens": size.tokens, **dict(size.training), **chosen.training},
    }
    if schedule == "noam":
        found["training"]["rate"] = NOAM
    found["training"].pop("steps", None)  # the paper's number of steps belongs to its corpus
    if with_model or name:
        found["model"] = dict(chosen.model)
    return found


BYTES = 16
"""Of a parameter in training: fp32 weight, gradient and Adam's two moments."""
FEWEST = 258
"""Pieces of the smallest vocabulary: the bytes and two symbols."""


def refuse_too_large(
    model: TransformerSection, device: torch.device, source: int = FEWEST, target: int = FEWEST
) -> None:
    """Raise a RegardError if a model cannot be trained in the memory there is, before any of it is taken.

    Args:
        model: its sizes.
        device: where it would be trained.
        source, target: pieces of the vocabularies; default: as few as there can be.
    """
    free = free_memory(device)
    count = sum(parameter.numel() for parameter in outline(model, source, target).parameters())
    if free is None or BYTES * count <= free:
        return
    raise RegardError(
        f"{count:,} parameters (d_model {model.d_model}, d_ff {model.d_ff}, {model.encoder_layers} + "
        f"{model.decoder_layers} layers, {target:,} pieces) need {BYTES * count / 1e9:,.1f} GB to be trained, but "
        f"{free / 1e9:,.1f} GB are free; choose a smaller preset or model",
        "model",
    )
