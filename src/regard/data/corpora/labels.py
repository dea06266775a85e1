"""Labels of texts: parsing of multi-label strings and numbers, and one scan of a corpus (16 bytes per text)."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Literal

Kind = Literal["single", "multi", "regression"]
SEPARATOR = "|"
"""Stands between the labels of a text that has several."""


def split_labels(text: str) -> list[str]:
    """The labels of a text that may have several, each once: ``"a|b"`` → ``["a", "b"]``, ``""`` → ``[]``."""
    return list(dict.fromkeys(label for one in text.split(SEPARATOR) if (label := one.strip())))


def join_labels(labels: Sequence[str]) -> str:
    """Several labels as one string, for :func:`split_labels`.

    Raises:
        ValueError: a label is empty, or holds the sign between labels.
    """
    for label in labels:
        if SEPARATOR in label or not label.strip():
            raise ValueError(f"the label {label!r:.60} is empty or holds {SEPARATOR!r}, the sign between labels")
    return SEPARATOR.join(label.strip() for label in labels)


def parse_number(label: str) -> float | None:
    """The finite number in a label, with a decimal point; None if it is not a number."""
    try:
        value = float(label)
    except ValueError:
        return None
    return value if isfinite(value) and "_" not in label else None
