"""Words beyond all measure in texts at use: nothing can be made of them, and a model would read them for hours."""

from __future__ import annotations

import re

_WORD = re.compile(r"\S+")


def shortened(text: str, longest: int, *, end: bool = False) -> tuple[str, int]:
    """A text whose words, what stands between white space, have ``longest`` characters at most, and how many it lost.

    Args:
        text: any text; of most, all is kept.
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
