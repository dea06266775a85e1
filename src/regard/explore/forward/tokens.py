"""Tokens as displayed: text, character offsets, and grouping into words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from regard.text.tokenizers.vocabulary import AnyTokenizer

_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


@dataclass(frozen=True)
class Token:
    """A token's display text, and the characters it covers (none for ``<s>`` and ``</s>``)."""

    text: str
    start: int
    end: int


def piece(tokenizer: AnyTokenizer, id: int) -> str:
    """The display text of a piece."""
    return visible(tokenizer.piece(id))


def visible(piece: str) -> str:
    """A piece with invisible characters replaced by their code points, e.g. ``<0x0A>``."""
    return piece if piece.isprintable() else "".join(c if c.isprintable() else f"<0x{ord(c):02X}>" for c in piece)


def mark(tokenizer: AnyTokenizer, id: int, place: int) -> Token:
    """A token that covers no characters, before the character at ``place``."""
    return Token(piece(tokenizer, id), place, place)


def words(tokens: Sequence[Token], text: str) -> list[tuple[str, list[int]]]:
    """The words of a sentence with the indices of their tokens; ``<s>`` and ``</s>`` are words of their own.

    A token that is only a space belongs to the word after it.
    """
    spans = [(match.start(), match.end()) for match in _WORD.finditer(text)]
    found: list[tuple[tuple[int, int] | None, str, list[int]]] = []
    for place, token in enumerate(tokens):
        first = next((i for i in range(token.start, len(text)) if not text[i].isspace()), token.start)
        span = next(((a, b) for a, b in spans if a <= first < b), None) if token.end > token.start else None
        if span is not None and found and found[-1][0] == span:
            found[-1][2].append(place)
        else:
            found.append((span, text[slice(*span)] if span else token.text, [place]))
    return [(word, places) for _, word, places in found]


def by_word(weight_QK: NDArray[Any], queries: Sequence[list[int]], keys: Sequence[list[int]]) -> NDArray[Any]:
    """Word-level attention: summed over a key word's tokens, averaged over a query word's, so that rows sum to one."""
    summed = np.stack([weight_QK[:, places].sum(axis=1) for places in keys], axis=1)
    return np.stack([summed[places].mean(axis=0) for places in queries])
