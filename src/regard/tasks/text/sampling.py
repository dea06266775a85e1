"""Options by which a text is drawn, checked and laid over those of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.config import Decoding, check_value
from regard.system.errors import UsageError

SAMPLING = ("temperature", "top_k", "top_p", "min_p", "typical", "repetition_penalty")
"""Fields of the section ``decoding`` by which a text is drawn."""


def sampling_options(decoding: Decoding, given: Mapping[str, Any], method: str) -> Decoding:
    """The section with those options that are given, not ``None``.

    Args:
        decoding: of the recipe.
        given: by name.
        method: that is given them, for the sentence.

    Raises:
        UsageError: an option that is none, or a value that does not fit.
    """
    known = {name: value for name, value in given.items() if value is not None}
    if strange := sorted(known.keys() - SAMPLING):
        raise UsageError(f"is no option of {method}; known are {', '.join(SAMPLING)}", strange[0])
    for name, value in known.items():
        check_value(f"decoding.{name}", value, name)
    return decoding.model_copy(update=known)
