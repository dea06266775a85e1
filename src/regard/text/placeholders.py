"""Placeholders: signs behind the words that an inline tag encloses, which a translator can learn to carry along.

Each word has its own, so that a sign follows from the one word that was just translated; of signs at both ends of a tag
a model must know before what comes. They stand before the blank of the next word, so that no piece of a text is another
with them than without.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from tokenizers import Regex, pre_tokenizers

from regard.text.lines import replace_surrogates
from regard.text.tokenizers.byte_pieces import WORD

SIGNS = "⦿⦾⦹⦻"
"""One for each tag of a text."""
_NONE = str.maketrans("", "", SIGNS)
_PART = re.compile(f"([^{SIGNS}]+)([{SIGNS}]*)")
_WORDS = pre_tokenizers.Split(Regex(WORD), "isolated")


def words_of(text: str) -> list[str]:
    """The words and signs of a text, each with the blank before it."""
    return [word for word, _ in _WORDS.pre_tokenize_str(replace_surrogates(text))]


def plain(text: str) -> str:
    """A text without placeholders."""
    return text.translate(_NONE)


def with_placeholders(words: Sequence[str], tags: Sequence[tuple[str, Collection[int]]]) -> str:
    """A text with the placeholder of each tag behind each of its words.

    Args:
        words: of the text.
        tags: the sign of each, and its words.
    """
    signs = ("".join(sign for sign, of in tags if place in of) for place in range(len(words)))
    return "".join(word + behind for word, behind in zip(words, signs, strict=True))


def signs_of(text: str) -> list[str]:
    """Of each character of a text without its placeholders those of its word, in one order."""
    found = list[str]()
    for part in _PART.finditer(text):
        *before, last = words_of(part[1])
        found += [""] * sum(map(len, before)) + ["".join(sorted(part[2]))] * len(last)
    return found
