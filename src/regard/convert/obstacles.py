"""Obstacles to an export: recipe values that a format cannot express, and values that would fit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from regard.config import Attentive, Recipe
from regard.system.errors import UsageError


@dataclass(frozen=True)
class Obstacle:
    """A value of a recipe that a format has no form for.

    Args:
        field: its key, e.g. ``model.norm``.
        value: what the recipe has.
        fits: what the format has in its place, in words.
        why: the refusal in a sentence; default: made of the others.
    """

    field: str
    value: Any
    fits: str
    why: str = ""

    @property
    def change(self) -> str:
        """The required change, e.g. ``model.norm = layer instead of rms``."""
        return f"{self.field} = {self.fits} instead of {word(self.value)}"


SIZES = {"key_size": "d_k", "value_size": "d_v"}
"""Sizes that a recipe may leave to be d_model / heads, to their keys."""


def misfits(model: Attentive, **expected: Any) -> list[Obstacle]:
    """The fields of a model section that have other values than expected.

    Args:
        model: our section.
        expected: for each field the value it must have, or a tuple of those it may have.
    """
    found = []
    for name, value in expected.items():
        allowed = value if isinstance(value, tuple) else (value,)
        if (held := getattr(model, name)) not in allowed:
            fits = either(each for each in allowed if each is not None)
            found.append(Obstacle(f"model.{SIZES.get(name, name)}", held, fits))
    return found


def odd_heads(model: Attentive) -> list[Obstacle]:
    """Heads whose sizes are not d_model / heads."""
    size, rest = divmod(model.d_model, model.heads)
    if not rest:
        return misfits(model, key_size=size, value_size=size)
    sizes = [Obstacle(f"model.{name}", getattr(model, name), "model.d_model / model.heads") for name in ("d_k", "d_v")]
    return [Obstacle("model.heads", model.heads, f"a divisor of {model.d_model}"), *sizes]


def two_vocabularies(recipe: Recipe) -> list[Obstacle]:
    """Of a translator: one tokenizer cannot hold the pieces of two."""
    if recipe.task != "translation" or recipe.text.joint:
        return []
    return [Obstacle("text.joint", False, "true", "two vocabularies have no form in one tokenizer.json")]


def refuse(obstacles: Iterable[Obstacle], kind: str) -> None:
    """Raise a UsageError that names the field of the first obstacle, and after it all others.

    Args:
        obstacles: any number.
        kind: the name of the format, e.g. ``"BERT"``.
    """
    found = list(obstacles)
    if not found:
        return
    first, others = found[0], [f"{each.field} = {word(each.value)}, only for {each.fits}" for each in found[1:]]
    why = first.why or f"{kind} has no form for {first.value!r}, only for {first.fits}"
    more = f"; nor has {kind} one for {', nor for '.join(others)}" if others else ""
    how = "" if first.why else f": train with {'these' if others else 'that'} to take a model out"
    raise UsageError(f"{why}{more}{how}", first.field)


def either(values: Iterable[Any]) -> str:
    """Values of which one will do, in words."""
    *most, last = map(word, values)
    return f"{', '.join(most)} or {last}" if most else last


def word(value: Any) -> str:
    """A value as a recipe has it, without quotes."""
    return str(value).lower() if isinstance(value, bool) else str(value)
