"""What a list of texts must be, and what a model reads of one."""

from __future__ import annotations

from collections.abc import Sequence

from regard.errors import UsageError
from regard.text.vocabulary import AnyTokenizer

Read = tuple[int, int, int]
"""An id that a model reads, and the characters it stands for, from and to; none for a symbol."""


def refuse_others(texts: object) -> None:
    """Raise a UsageError that names the type of what is no list of texts."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise UsageError(f"a list of texts is wanted, not {type(texts).__name__}")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise UsageError(f"a text must be str, not {type(text).__name__}", f"texts[{place}]")


def read_as(
    tokenizer: AnyTokenizer, text: str, begin: Sequence[int], end: Sequence[int] = ()
) -> tuple[str, list[Read]]:
    """A text as the tokenizer has it, and its pieces between symbols, each with its characters."""
    encoding = tokenizer.encode(text)
    last = len(encoding.text)
    inner = [(id, start, stop) for id, (start, stop) in zip(encoding.ids, encoding.offsets, strict=True)]
    return encoding.text, [*((id, 0, 0) for id in begin), *inner, *((id, last, last) for id in end)]
