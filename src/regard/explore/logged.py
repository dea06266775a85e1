"""What a line of a training's log says, as far as it is what a training writes; the rest of a damaged line is left out.

A log outlives power cuts, full disks and people who edit it, so nothing is taken on trust.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from typing import Any

import numpy as np

from regard.explore.curves import UNKNOWN
from regard.text.normalisation import well_formed

LARGEST = float(np.finfo(np.float32).max)
STEPS = 2**53
"""A page counts no further."""
NAME, TEXT = 60, 1000
"""Characters of a name, and of a sample's text that are shown."""
SCORES = 32
"""What one validation measures at most."""
NUMBERS = (float, int)
"""What JSON makes of numbers; true and false are none."""
TEXTS = ("source", "reference", "hypothesis")

Values = dict[str, Any]


def entry(line: bytes) -> Values | None:
    """The object in a line; ``None`` where there is none: a power cut may leave half a line between whole ones."""
    try:
        values = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def whole(value: Any) -> int | None:
    """A number of steps; ``None`` where it is none."""
    return value if type(value) is int and 0 <= value <= STEPS else None


def number(value: Any) -> float:
    """A number that a page can draw; not a number where it is none."""
    if type(value) in NUMBERS and -LARGEST <= value <= LARGEST:
        return float(value)
    return UNKNOWN


def numbers(values: Any) -> dict[str, float]:
    """The numbers of an object by their names; those that are not known are not there."""
    return {name: found for name, value in _named(values) if isfinite(found := number(value))}


def validation(values: Values) -> Values | None:
    """Step, loss and scores of a validation; ``None`` where there is no step, or no loss."""
    step, found = whole(values.get("step")), dict(list(numbers(values).items())[:SCORES])
    if step is None or "loss" not in found:
        return None
    return {**found, "step": step, "best": values.get("best") is True}


def sample(values: Values) -> Values | None:
    """A sample output and what it is of, long ones cut; ``None`` where one of the texts is missing."""
    step, texts = whole(values.get("step")), [values.get(name) for name in TEXTS]
    if step is None or not all(isinstance(text, str) for text in texts):
        return None
    return {"step": step, **{name: _short(text) for name, text in zip(TEXTS, texts, strict=True)}}


def _named(values: Any) -> Iterator[tuple[str, Any]]:
    """The values that have a name of a sensible length."""
    if isinstance(values, dict):
        yield from ((well_formed(name), value) for name, value in values.items() if len(name) <= NAME)


def _short(text: str | None) -> str:
    text = well_formed(text or "")
    return text if len(text) <= TEXT else text[:TEXT] + "…"
