"""Tagged words, and tag schemes (IO, IOB1, IOB2, BILOU): spans to tags and back, detection, allowed transitions.

``io``: every word of a span has ``I-LABEL``, so that two neighbours of one label become one. ``bio`` (IOB2): the first
has ``B-LABEL``. ``bilou`` (BIOES with other letters): the last has ``L-``, a span of one word ``U-``. ``none``: a tag
is just a tag. Read in addition: IOB1, where ``B-`` stands only between neighbours of one label, and the letters E and S
for L and U, M for I.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Scheme = Literal["none", "io", "bio", "bilou"]
Written = Literal["none", "io", "iob1", "bio", "bilou"]
Span = tuple[int, int, str]
"""First word, end (exclusive), and label."""

OUTSIDE = "O"
_LETTERS = {"B": "B", "I": "I", "M": "I", "L": "L", "E": "L", "U": "U", "S": "U"}
_SURE = 0.9
"""The share of tags, O aside, that must have a scheme's form; the rest are slips of the annotators."""
Place = tuple[int, int]
"""Start and end (exclusive) of a word in characters."""
SEPARATOR = "\t"
_WORD = re.compile(r"\w+|[^\w\s]")
_ALONE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Scripts that put no space between words: Thai, Lao, Burmese, Khmer, kana and Han."""


def split_tag(tag: str) -> tuple[str, str]:
    """The letter (B, I, L, U or O) and label of a tag: ``"E-PER"`` → ``("L", "PER")``; O for what no scheme explains.

    A letter alone has the empty label.
    """
    letter, hyphen, label = tag.partition("-")
    if letter in _LETTERS and bool(hyphen) == bool(label):
        return _LETTERS[letter], label
    return OUTSIDE, ""


def detect(sentences: Iterable[Sequence[str]]) -> Written:
    """The scheme that tagged sentences are written in; ``none`` if the tags do not look like spans."""
    counts: Counter[str] = Counter()
    inside = Counter[str]()
    for tags in sentences:
        counts.update(tags)
        inside.update(neighbours(tags))
    return scheme_of(counts, inside)


def scheme_of(counts: Counter[str], inside: Counter[str]) -> Written:
    """The scheme of tags, given their ``counts`` and those of what :func:`neighbours` yields."""
    outside = counts[OUTSIDE]
    counts = Counter({tag: count for tag, count in counts.items() if tag != OUTSIDE})
    labelled = sum(count for tag, count in counts.items() if split_tag(tag)[1])
    if labelled:
        spans = labelled >= _SURE * counts.total()
    else:
        spans = outside > 0 and set(counts) <= set(_LETTERS) and "B" in counts
    if not spans:
        return "none"
    letters = {split_tag(tag)[0] for tag in counts} - {OUTSIDE}
    if letters & {"L", "U"}:
        return "bilou"
    if letters == {"I"}:
        return "io"
    return "iob1" if inside["begun"] and not inside["free"] else "bio"


def neighbours(tags: Sequence[str]) -> Iterable[str]:
    """Evidence from neighbours: an I that begins a span (``begun``), a B that is required (``needed``) or not."""
    before = (OUTSIDE, "")
    for now in map(split_tag, tags):
        follows = before[0] != OUTSIDE and before[1] == now[1]
        if now[0] == "I" and not follows:
            yield "begun"
        elif now[0] == "B":
            yield "needed" if follows else "free"
        before = now


def spans_of(tags: Sequence[str], scheme: Written = "bio") -> list[Span]:
    """The spans of tags, in order, read leniently as CoNLL's scoring does [Sang03 §2].

    An I or L that continues nothing begins a span; a span also ends where another begins, or at an O. With this, every
    scheme but ``none`` is read the same way; under ``none`` each word is a span of its own.
    """
    if scheme == "none":
        return [(place, place + 1, tag) for place, tag in enumerate(tags)]
    found: list[Span] = []
    begin, before = 0, (OUTSIDE, "")
    for place, now in enumerate([*map(split_tag, tags), (OUTSIDE, "")]):
        continues = now[0] in "IL" and before[0] in "BI" and before[1] == now[1]
        if not continues:
            if before[0] != OUTSIDE:
                found.append((begin, place, before[1]))
            begin = place
        before = now
    return found


def tags_of(spans: Iterable[Span], words: int, scheme: Scheme = "bio") -> list[str]:
    """A tag for each of ``words`` words; under ``io`` neighbours of one label become one span.

    Raises:
        ValueError: spans overlap, are empty, or lie outside of the words.
    """
    tags = [OUTSIDE] * words
    free = 0
    for begin, end, label in sorted(spans):
        if not free <= begin < end <= words:
            raise ValueError(f"the span {begin} to {end} is empty, overlaps another, or lies outside of {words} words")
        tags[begin:end] = _letters(end - begin, label, scheme)
        free = end
    return tags


def _letters(length: int, label: str, scheme: Scheme) -> list[str]:
    if scheme == "none":
        return [label] * length
    letters = ["I"] * length
    if scheme != "io":
        letters[0] = "B"
    if scheme == "bilou":
        letters[-1] = "L" if length > 1 else "U"
    return [f"{letter}-{label}" if label else letter for letter in letters]


def convert_tags(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """Tags of any scheme but ``none``, written in another; under ``none`` as they are."""
    return list(tags) if scheme == "none" else tags_of(spans_of(tags), len(tags), scheme)


def inventory(labels: Iterable[str], scheme: Scheme) -> list[str]:
    """Every tag a scheme has for these labels, in order; O first but under ``none``."""
    if scheme == "none":
        return list(labels)
    letters = {"io": "I", "bio": "BI", "bilou": "BILU"}[scheme]
    return [OUTSIDE, *(f"{letter}-{label}" if label else letter for label in labels for letter in letters)]


@dataclass(frozen=True)
class ForbiddenTransitions:
    """What a scheme forbids, by the numbers of tags: transitions, at the start, and at the end."""

    between: tuple[tuple[int, int], ...] = ()
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()


def forbidden(tags: Sequence[str], scheme: Scheme) -> ForbiddenTransitions:
    """Forbidden transitions between tags, and forbidden first and last tags, under a scheme."""
    if scheme in ("none", "io"):
        return ForbiddenTransitions()
    known = [split_tag(tag) for tag in tags]
    between = tuple(
        (left, right)
        for left, before in enumerate(known)
        for right, now in enumerate(known)
        if not _follows(before, now, scheme)
    )
    edge = (OUTSIDE, "")
    first = tuple(number for number, now in enumerate(known) if not _follows(edge, now, scheme))
    last = tuple(number for number, before in enumerate(known) if not _follows(before, edge, scheme))
    return ForbiddenTransitions(between, first, last)


def _follows(before: tuple[str, str], now: tuple[str, str], scheme: Scheme) -> bool:
    """Whether one tag may follow another; the edges of a sentence are like O."""
    goes_on = now[0] in "IL"
    is_open = before[0] in "BI"
    if scheme == "bio":
        return not goes_on or (is_open and before[1] == now[1])
    return goes_on == is_open and (not goes_on or before[1] == now[1])


class TaggedWords(NamedTuple):
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
    for begin, end in map(re.Match.span, _WORD.finditer(text)) if text.isascii() else _words(text):
        for edge in (*edges[bisect_right(edges, begin) : bisect_left(edges, end)], end):
            places.append((begin, edge))
            begin = edge
    return places


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
