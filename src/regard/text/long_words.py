"""Truncation of extremely long words before inference."""

from __future__ import annotations

import re

_WORD = re.compile(r"\S+")


def shorten_words(text: str, longest: int, *, end: bool = False) -> tuple[str, int]:
    """Cut white-space separated words to ``longest`` characters; the text and the number of characters lost.

    Args:
        text: any text.
        longest: characters of a word that are kept.
        end: the last ones, not the first.
    """
    if len(text) <= longest:
        return text, 0
    kept, done = list[str](), 0
    for word in _WORD.finditer(text):
        first, last = word.span()
        if last - first > longest:
            begin = last - longest if end else first
            kept += [text[done:first], text[begin : begin + longest]]
            done = last
    found = "".join([*kept, text[done:]])
    return found, len(text) - len(found)
