"""What suits a corpus where nobody says: preset, vocabulary, batch and length of the run, by its number of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from regard.models.presets import preset


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


def values(size: Size, name: str | None, with_model: bool) -> dict[str, Any]:
    """The row as recipe values.

    Args:
        size: the row.
        name: a preset asked for instead of the row's.
        with_model: False where a recipe brings a model section of its own; nothing is mixed into that.
    """
    chosen = preset(name or size.preset)
    found: dict[str, Any] = {
        "text": {"vocabulary": size.vocabulary},
        "training": {"tokens": size.tokens, **dict(size.training), **chosen.training},
    }
    found["training"].pop("steps", None)  # the paper's number of steps belongs to its corpus
    if with_model or name:
        found["model"] = dict(chosen.model)
    return found
