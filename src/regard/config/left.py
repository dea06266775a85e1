"""What left the recipe: what folders of before hold of it, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.system.errors import UsageError

_CLASSES = "adversarial training is for classes alone now (classification.adversarial)"
_SECOND_TASK = "the demonstration alone has a second task, which regard demo trains"
LEFT: dict[str, tuple[tuple[Any, ...], str]] = {
    "disambiguation.words": (([], ()), _SECOND_TASK),
    "disambiguation.weight": ((1.0,), _SECOND_TASK),
    "tagging.adversarial": ((0.0,), _CLASSES),
    "text_to_text.adversarial": ((0.0,), _CLASSES),
    "masking.span": ((3.0,), "of text-to-text the mean length of spans is text_to_text.span_length"),
}
"""Dotted key → the values that change nothing, and a sentence for people who give another one."""
LEFT_TASKS = {"span-corruption": 'learn spans by task = "text-to-text" with text_to_text.spans = true'}
"""Task → what does the same."""
REPLACED = {("training", "product", "numpy"): "auto"}
"""Section, key and value → the value that stands for it where a finished model is read."""


def without_left(values: Mapping[str, Any], where: str | None = None) -> dict[str, Any]:
    """The values of a recipe without what left.

    Args:
        values: nested, as a recipe of before has them.
        where: where they were written, if they are to be followed; else they are of a finished model, which does not
            depend on how it was trained.

    Raises:
        UsageError: a value that left is to be followed, and would change something.
    """
    found = {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}
    for name, (unchanged, instead) in LEFT.items():
        section, _, key = name.partition(".")
        held = found.get(section)
        if not isinstance(held, dict) or key not in held:
            continue
        if where is not None and held[key] not in unchanged:
            raise UsageError(f"{name}: {instead}; leave it out", where)
        del held[key]
        if not held:
            del found[section]
    for (section, key, before), now in REPLACED.items():
        held = found.get(section)
        if where is None and isinstance(held, dict) and held.get(key) == before:
            held[key] = now
    return found


def saved_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a finished model's recipe as this version has them: a T5 that learned spans is text-to-text."""
    masking = values.get("masking")
    if values.get("task") == "span-corruption" and isinstance(masking, Mapping):
        spans = {"spans": True, "span_share": masking.get("share", 0.15), "span_length": masking.get("span", 3.0)}
        values = {**values, "task": "text-to-text", "text_to_text": spans, "masking": {}}
    return without_left(values)
