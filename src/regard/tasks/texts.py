"""What a list of texts must be."""

from __future__ import annotations

from collections.abc import Sequence

from regard.errors import UsageError


def refuse_others(texts: object) -> None:
    """Raise a UsageError that names the type of what is no list of texts."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise UsageError(f"a list of texts is wanted, not {type(texts).__name__}")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise UsageError(f"a text must be str, not {type(text).__name__}", f"texts[{place}]")
