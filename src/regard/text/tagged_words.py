"""A text with the place and tag of each word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

Place = tuple[int, int]
"""Start and end (exclusive) of a word in characters."""

SEPARATOR = "\t"
_WORD = re.compile(r"\w+|[^\w\s]")
_ALONE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Scripts that put no space between words: Thai, Lao, Burmese, Khmer, kana and Han."""


@dataclass(frozen=True)
class TaggedWords:
    """A text, the places of its words in order, and a tag for each."""

    text: str
    places: tuple[Place, ...] = ()
    tags: tuple[str, ...] = ()

    @classmethod
    def from_words(cls, words: Iterable[str], tags: Sequence[str], spaces: Sequence[bool] = ()) -> TaggedWords:
        """Join words by blanks, except where ``spaces`` is False."""
        text, places = "", []
        blank = ""
        for number, word in enumerate(words):
            text += blank
            places.append((len(text), len(text) + len(word)))
            text += word
            blank = " " if number >= len(spaces) or spaces[number] else ""
        return cls(text, tuple(places), tuple(tags))

    def sides(self) -> tuple[str, str]:
        """The text; and ``begin:end:tag`` of each word, a tab between two."""
        places = zip(self.places, self.tags, strict=True)
        return self.text, SEPARATOR.join(f"{begin}:{end}:{tag}" for (begin, end), tag in places)

    @property
    def words(self) -> list[str]:
        """The words themselves."""
        return [self.text[begin:end] for begin, end in self.places]


def places_of(text: str, cuts: Iterable[int] = ()) -> list[Place]:
    """Words of running text, cut at ``cuts`` as well.

    A word is letters, digits and their marks together, or any other sign alone; of scripts without spaces, a character.
    """
    edges = sorted(set(cuts))
    places = []
    for begin, end in _plain_words(text) if text.isascii() else _words(text):
        for edge in (*(edge for edge in edges if begin < edge < end), end):
            places.append((begin, edge))
            begin = edge
    return places


def _plain_words(text: str) -> Iterator[Place]:
    return (match.span() for match in _WORD.finditer(text))


def _words(text: str) -> Iterator[Place]:
    begin, goes_on = -1, False
    for place, character in enumerate(text):
        kind = _kind(character)
        if begin >= 0 and (kind == "mark" or (kind == "letter" and goes_on)):
            continue
        if begin >= 0:
            yield begin, place
        begin = -1 if kind == "blank" else place
        goes_on = kind in ("letter", "mark")
    if begin >= 0:
        yield begin, len(text)


def _kind(character: str) -> str:
    """``letter`` (digits too), ``mark`` (which belongs to what it follows), ``blank``, or ``alone``."""
    if character.isspace():
        return "blank"
    if unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf"):
        return "mark"
    if not (character.isalnum() or character == "_") or _ALONE.match(character):
        return "alone"
    return "letter"
