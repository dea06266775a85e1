"""Word alignments: links between words of two texts, their file format, and how far they are from a gold standard."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from regard.system.errors import RegardError

Links = frozenset[tuple[int, int]]
"""Pairs of a source word and a target word that translate each other, counted from 0."""
Span = tuple[int, int]
"""First character and end (exclusive)."""
_WORD = re.compile(r"\S+")
_LINK = re.compile(r"([0-9]{1,9})([-?])([0-9]{1,9})")


def piece_words(text: str, spans: Sequence[Span]) -> list[int]:
    """The word of each piece, by its characters, from and to, in the text; words stand between blanks."""
    return piece_units(text, spans, [found.span() for found in _WORD.finditer(text)])


def piece_units(text: str, spans: Sequence[Span], units: Sequence[Span]) -> list[int]:
    """The unit of each piece, by the characters of both in the text.

    -1 for a symbol, which has none, and for a piece of punctuation in a unit that has letters or digits.
    """
    ends = [end for _, end in units]
    inner = [(end - len(text[begin:end].lstrip()), end) for begin, end in spans]
    words = [int(np.searchsorted(ends, begin, "right")) if begin < end else -1 for begin, end in inner]
    spoken = [any(map(str.isalnum, text[begin:end])) for begin, end in inner]
    core = {word for word, has in zip(words, spoken, strict=True) if has}
    return [word if has or word not in core else -1 for word, has in zip(words, spoken, strict=True)]


def write_links(links: Links) -> str:
    """Links on one line, as Moses and fast_align write them: ``0-0 1-2 2-1``."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def read_gold(line: str, where: str = "") -> tuple[Links, Links]:
    """The sure links of a line and the possible ones, the sure among them; ``0?1`` is possible only [Och03 §6].

    Raises:
        RegardError: it holds something else.
    """
    found = [_LINK.fullmatch(word) for word in line.split()]
    pairs = [(kind[2], (int(kind[1]), int(kind[3]))) for kind in found if kind]
    if len(pairs) < len(found):
        wrong = line.split()[found.index(None)]
        raise RegardError(f"{wrong[:20]!r} is no link; links are like 0-0 1-2, or 1?2 where it is only possible", where)
    return frozenset(link for kind, link in pairs if kind == "-"), frozenset(link for _, link in pairs)


def alignment_error_rate(found: Sequence[Links], gold: Sequence[tuple[Links, Links]]) -> float:
    """``1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)`` over all sentences, 0 to 1; smaller is better [Och03 §6, eq. 42].

    Args:
        found: A, of each sentence.
        gold: S and P, sure and possible links; P holds S.
    """
    right = total = 0
    for links, (sure, possible) in zip(found, gold, strict=True):
        right += len(links & sure) + len(links & possible)
        total += len(links) + len(sure)
    return 1.0 - right / total if total else 0.0
