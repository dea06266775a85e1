"""A segment: a piece of a document's text, with its inline tags as spans; and how its translation is written."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from regard.system.errors import RegardError

Place = tuple[int, int]
"""First character and end (exclusive) of what a tag encloses in a translation."""
Wrap = tuple[str, str]
"""What stands before and behind a run of text, as it is written in the document."""
BARE: Wrap = ("", "")
_BLANKS = re.compile(r"[ \t\r\n\f]+")
INNER = re.compile("\0([0-9]{1,12}):([0-9]{1,12})\0")
"""What :func:`inner` writes."""


@dataclass(frozen=True)
class Tag:
    """An inline tag of a segment: a pair around some of its text, or an element without text.

    Args:
        begin, end: the characters of the segment's text that it encloses; the same for an element without text.
        before, after: what is written before and behind them, as the document has it.
        parent: the tag in which it stands, by its place in the segment's tags; -1: in none.
        kept: what it encloses is not translated (code, a placeholder); ``before`` is all of it, text and tags.
        wrap: what stands around each run of text directly inside; ``None``: as around it.
    """

    begin: int
    end: int
    before: str
    after: str = ""
    parent: int = -1
    kept: bool = False
    wrap: Wrap | None = None


@dataclass(frozen=True)
class Segment:
    """A piece of text that is translated as a whole: a paragraph, a heading, a cell, a value.

    Args:
        begin, end: the characters of the raw document that its translation replaces.
        text: what the model reads, without tags, entities and escapes.
        tags: its inline tags, in the order of the document; one inside another comes behind it.
        where: its place, for messages: ``line 17``, ``word/document.xml, paragraph 3``.
        escape: writes text as the document does, ``&`` as ``&amp;``.
        wrap: what stands around each run of text outside of tags.
        quote: writes the whole translation, tags and all, into its place: a string with its quotes, an element.
    """

    begin: int
    end: int
    text: str
    tags: tuple[Tag, ...] = ()
    where: str = ""
    escape: Callable[[str], str] = field(default=str, compare=False)
    wrap: Wrap = BARE
    quote: Callable[[str], str] = field(default=str, compare=False)


@dataclass(frozen=True)
class SegmentTranslation:
    """The translation of a segment.

    Args:
        text: without tags.
        places: of each tag of the segment what it encloses; nested as the tags are, neighbours apart. What a kept
            tag encloses is replaced by it.
    """

    text: str
    places: tuple[Place, ...] = ()


class Document(Protocol):
    """A document whose segments were found."""

    segments: Sequence[Segment]

    def write(self, translations: Mapping[int, SegmentTranslation]) -> bytes:
        """The document with the translations of some segments, by their numbers; all else byte for byte as it was."""


def inner(begin: int, end: int) -> str:
    """Raw text in a tag that has segments of its own: the characters of the document with their translations."""
    return f"\0{begin}:{end}\0"


class LineNumbers:
    """The lines of a text, counted from 1, by the place of a character."""

    def __init__(self, raw: str) -> None:
        self._begins = [found.end() for found in re.finditer("\n", raw)]

    def of(self, place: int) -> str:
        """``line 17``."""
        return f"line {bisect_right(self._begins, place) + 1}"


class SegmentBuilder:
    """Collects the text and the tags of one segment in the order of the document.

    Args:
        begin: where its raw text begins.
        blanks: keeps white space as it is; else any of it is one space, and there is none at the beginning.
    """

    def __init__(self, begin: int, blanks: bool = False) -> None:
        self.begin = begin
        self._blanks, self._text, self._size = blanks, list[str](), 0
        self._tags, self._open = list[Tag](), list[int]()

    def add(self, text: str) -> None:
        """Further text, without escapes."""
        if not self._blanks:
            text = _BLANKS.sub(" ", text)
            if text.startswith(" ") and (not self._size or self._text[-1].endswith(" ")):
                text = text[1:]
        if text:
            self._text.append(text)
            self._size += len(text)

    def open(self, before: str, wrap: Wrap | None = None) -> None:
        """The beginning of a pair."""
        self._open.append(self._put(Tag(self._size, self._size, before, wrap=wrap)))

    def close(self, after: str) -> None:
        """The end of the pair that was opened last."""
        place = self._open.pop()
        self._tags[place] = replace(self._tags[place], end=self._size, after=after)

    def empty(self, raw: str) -> None:
        """An element without text."""
        self._put(Tag(self._size, self._size, raw))

    def keep(self, raw: str, text: str) -> None:
        """An element whose text is read, but not translated."""
        begin = self._size
        self.add(text)
        self._put(Tag(min(begin, self._size), self._size, raw, kept=True))

    def segment(
        self,
        end: int,
        where: str,
        escape: Callable[[str], str] = str,
        wrap: Wrap = BARE,
        quote: Callable[[str], str] = str,
    ) -> Segment:
        """The segment; its raw text ends at ``end``."""
        return Segment(self.begin, end, "".join(self._text), tuple(self._tags), where, escape, wrap, quote)

    def _put(self, tag: Tag) -> int:
        self._tags.append(replace(tag, parent=self._open[-1] if self._open else -1))
        return len(self._tags) - 1


def render(segment: Segment, translated: SegmentTranslation) -> str:
    """A translation as the document writes it, every tag once, one within another as they were."""
    inside: dict[int, list[int]] = {}
    for number, tag in enumerate(segment.tags):
        inside.setdefault(tag.parent, []).append(number)
    text, places = translated.text, translated.places
    if len(places) != len(segment.tags):
        raise ValueError(f"{len(places)} places for {len(segment.tags)} tags")

    def write(some: str, wrap: Wrap) -> str:
        return f"{wrap[0]}{segment.escape(some)}{wrap[1]}" if some else ""

    def put(parent: int, begin: int, end: int, wrap: Wrap) -> str:
        found, at = list[str](), begin
        for number in sorted(inside.get(parent, ()), key=lambda n: (*places[n], n)):
            tag, (first, last) = segment.tags[number], places[number]
            if not at <= first <= last <= end:
                raise ValueError(f"the places {places} overlap")
            within = "" if tag.kept else put(number, first, last, wrap if tag.wrap is None else tag.wrap)
            found += [write(text[at:first], wrap), tag.before, within, tag.after]
            at = last
        return "".join([*found, write(text[at:end], wrap)])

    return segment.quote(put(-1, 0, len(text), segment.wrap))


def unchanged(segment: Segment) -> SegmentTranslation:
    """A segment's text and tags as they are."""
    return SegmentTranslation(segment.text, tuple((tag.begin, tag.end) for tag in segment.tags))


@dataclass
class TextDocument:
    """A document that is one text, whose segments are replaced in place.

    Args:
        raw: the document, decoded.
        segments: in the order of the text; apart from each other, or within a tag of another (:func:`inner`).
        encoding: of its bytes.
        errors: what becomes of characters that it lacks, as :meth:`str.encode` has it.
    """

    raw: str
    segments: Sequence[Segment]
    encoding: str = "utf-8"
    errors: str = "strict"

    def write(self, translations: Mapping[int, SegmentTranslation]) -> bytes:
        """As :class:`Document` has it.

        Raises:
            RegardError: a translation has characters that the document's encoding lacks.
        """
        try:
            return self.splice(translations).encode(self.encoding, self.errors)
        except UnicodeEncodeError as error:
            lacks = f"{error.object[error.start]!r} cannot be written in {self.encoding}"
            raise RegardError(f"{lacks}; convert the document to UTF-8 before") from None

    def splice(self, translations: Mapping[int, SegmentTranslation]) -> str:
        """The same, not encoded."""
        numbers = sorted(translations)
        begins = [self.segments[number].begin for number in numbers]

        def piece(first: int, at: int, end: int) -> str:
            found = list[str]()
            for place in range(max(first, bisect_left(begins, at)), bisect_left(begins, end)):
                segment = self.segments[numbers[place]]
                if segment.begin >= at:
                    found += [self.raw[at : segment.begin], whole(place, segment)]
                    at = segment.end
            return "".join([*found, self.raw[at:end]])

        def whole(place: int, segment: Segment) -> str:
            def within(found: re.Match[str]) -> str:
                begin, end = int(found[1]), int(found[2])
                return piece(place + 1, begin, end) if segment.begin <= begin and end <= segment.end else found[0]

            return INNER.sub(within, self.render(segment, translations[numbers[place]]))

        return piece(0, 0, len(self.raw))

    def render(self, segment: Segment, translated: SegmentTranslation) -> str:
        """A translation as the document writes it."""
        return render(segment, translated)
