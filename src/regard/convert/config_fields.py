"""Typed access to the fields of foreign JSON files, with errors that name file and field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from regard.system.errors import RegardError

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "swish",
    "swish": "swish",
}
"""Their words for activations to ours."""
THEIRS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new", "swish": "silu"}
"""Our words for activations to theirs."""
LONGEST = 60
"""Characters of a value that a sentence shows."""


@dataclass(frozen=True)
class Fields:
    """Typed fields of a foreign JSON file; ``null`` counts as missing.

    Every method raises a RegardError that names file and field where a value is of another kind, or where one is
    missing that has no default.

    Args:
        values: by name.
        where: the file.
    """

    values: Mapping[str, Any]
    where: str

    def get(self, name: str) -> Any:
        """The raw value."""
        return self.values.get(name)

    def whole(self, name: str, default: int | None = None, least: int = 1) -> int:
        """A whole number."""
        value = self._require(name, default)
        if not _is_whole(value) or value < least:
            raise self._wrong(name, value, f"a whole number from {least} on")
        return int(value)

    def positive(self, name: str, default: float | None = None) -> float:
        """A number above zero."""
        value = _finite(found := self._require(name, default))
        if value is None or value <= 0:
            raise self._wrong(name, found, "a number above zero")
        return value

    def share(self, name: str, default: float | None = None) -> float:
        """A number from 0 to 1, without 1."""
        value = _finite(found := self._require(name, default))
        if value is None or not 0 <= value < 1:
            raise self._wrong(name, found, "a number from 0 to 1, without 1")
        return value

    def numbers(self, name: str, default: float | None = None) -> tuple[float, ...]:
        """A number, or a list of some."""
        value = self._require(name, default)
        found = [_finite(one) for one in (value if isinstance(value, list) else [value])]
        if not found or None in found:
            raise self._wrong(name, value, "a number, or a list of numbers")
        return tuple(one for one in found if one is not None)

    def pair(self, name: str, default: int | None = None) -> tuple[int, int]:
        """Height and width, of a size that may be one whole number for both."""
        value = self._require(name, default)
        two = value if isinstance(value, list) else [value, value]
        if len(two) != 2 or not all(_is_whole(one) and one > 0 for one in two):
            raise self._wrong(name, value, "a whole number from 1 on, or two of them")
        return two[0], two[1]

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self._require(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, value, "true or false")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A text."""
        value = self._require(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, value, "a text")
        return value

    def word(self, name: str, known: Mapping[str, str], default: str | None = None) -> str:
        """Our word for a word of theirs; an error lists the known ones."""
        theirs = self.text(name, default)
        if theirs not in known:
            raise RegardError(f"{name} {theirs!r} is not supported; known: {', '.join(known)}", self.where)
        return known[theirs]

    def only(self, **expected: Any) -> None:
        """Refuse a field that is present with another value than expected."""
        for name, value in expected.items():
            if (found := self.values.get(name, value)) != value:
                raise RegardError(
                    f"{name} = {format_value(found)} is not supported, only {format_value(value)} is",
                    self.where,
                )

    def _require(self, name: str, default: Any) -> Any:
        value = self.values.get(name)
        value = default if value is None else value
        if value is None:
            raise RegardError(f"lacks {name!r}", self.where)
        return value

    def _wrong(self, name: str, value: Any, wanted: str) -> RegardError:
        return RegardError(f"{name} is {format_value(value)}, where {wanted} is expected", self.where)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _finite(value: Any) -> float | None:
    """The finite number that a value is, if it is one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if isfinite(value) else None
    except OverflowError:  # a whole number that no float holds
        return None


def format_value(value: Any) -> str:
    """A value for a message, truncated."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
