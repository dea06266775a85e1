"""Paragraphs that are made of runs: pieces of text with a format, elements without text, and pairs, as one segment."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import ClassVar

from regard.documents.elements import Element, elements, outermost, text_of, xml_text
from regard.documents.markup import escape_text
from regard.documents.segment import BARE, Segment, SegmentBuilder, TextDocument, Wrap, inner

DEEPEST = 50
"""Pairs, and paragraphs, within one another; what is deeper is not translated."""
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@dataclass(slots=True)
class Piece:
    """A piece of a paragraph: text, or an element without text, or a pair.

    Args:
        begin, end: the characters of the run in which it stands; those of pieces of one run are the same.
        text: of a run.
        wrap: what stands around the text; of a pair, around text outside of it, if there is no other.
        key: runs of the same one have the same format.
        raw: an element without text, a run that is kept, or what stands before a pair.
        kept: the text is not translated.
        inside, after: of a pair.
        starts, stops: what begins and ends at this element, if it is one of two that belong together.
    """

    begin: int
    end: int
    text: str = ""
    wrap: Wrap = BARE
    key: str = "plain"
    raw: str = ""
    kept: bool = False
    inside: list[Piece] = field(default_factory=list)
    after: str = ""
    starts: str = ""
    stops: str = ""

    @property
    def has_words(self) -> bool:
        """Whether there is text to translate in it."""
        return any(one.has_words for one in self.inside) or (not self.kept and bool(self.text.strip()))


def pair(begin: int, end: int, before: str, inside: list[Piece], after: str) -> Piece:
    """What stands around some pieces; around none that has text it is itself an element without text."""
    if any(one.text or one.inside for one in inside):
        return Piece(begin, end, raw=before, inside=inside, after=after)
    return Piece(begin, end, raw="".join([before, *(one.raw for one in inside), after]))


def join_kept(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces of which those that are kept and follow each other are one."""
    found = list[Piece]()
    for kept, group in groupby(pieces, lambda one: one.kept):
        some = list(group)
        raw, text = "".join(one.raw for one in some), "".join(one.text for one in some)
        found += [Piece(some[0].begin, some[-1].end, text, raw=raw, kept=True)] if kept else some
    return found


def find_pairs(pieces: Sequence[Piece], depth: int = 0) -> list[Piece]:
    """Pieces of which those that start and stop the same thing are pairs, where they are nested."""
    partners, open_ones, stack = dict[int, int](), dict[str, int](), list[int]()
    for number, piece in enumerate(pieces):
        if piece.starts and len(stack) + depth < DEEPEST and piece.starts not in open_ones:
            open_ones[piece.starts] = number
            stack.append(number)
        elif piece.stops in open_ones:
            while (last := stack.pop()) != open_ones[piece.stops]:
                del open_ones[pieces[last].starts]
            del open_ones[piece.stops]
            partners[last] = number
    levels, starts = [list[Piece]()], list[int]()
    for number, piece in enumerate(pieces):
        if number in partners:
            levels.append([])
            starts.append(number)
        elif starts and number == partners[starts[-1]]:
            start = pieces[starts.pop()]
            inside = levels.pop()
            levels[-1].append(pair(start.begin, piece.end, start.raw, inside, piece.raw))
        else:
            levels[-1].append(piece)
    return levels[0]


def segment_of(pieces: Sequence[Piece], where: str, escape: Callable[[str], str]) -> Segment | None:
    """The segment of a paragraph, without what stands before its first and behind its last text."""
    words = [number for number, piece in enumerate(pieces) if piece.has_words]
    if not words:
        return None
    first, last = words[0], words[-1]
    while first and pieces[first - 1].end > pieces[first].begin:
        first -= 1
    while last + 1 < len(pieces) and pieces[last + 1].begin < pieces[last].end:
        last += 1
    chosen = pieces[first : last + 1]
    main = _main(chosen) or next(one for piece in chosen if (one := _main(piece.inside)))
    builder = SegmentBuilder(chosen[0].begin, blanks=True)
    _fill(builder, chosen, main.key)
    return builder.segment(chosen[-1].end, where, escape, main.wrap)


def _main(pieces: Sequence[Piece]) -> Piece | None:
    """A piece of the format that most of the text has."""
    sizes, found = Counter[str](), dict[str, Piece]()
    for piece in pieces:
        if piece.text and not piece.kept:
            sizes[piece.key] += len(piece.text.strip())
            found.setdefault(piece.key, piece)
    if sizes:
        return found[sizes.most_common(1)[0][0]]
    pairs = (one if one.wrap != BARE else _main(one.inside) for one in pieces if one.inside)
    return next(filter(None, pairs), None)


def _fill(builder: SegmentBuilder, pieces: Sequence[Piece], around: str) -> None:
    """Add text and tags; text of another format than that around is a tag."""
    inside, waiting = "", list[Piece]()
    for piece in [*pieces, Piece(0, 0, kept=True)]:
        plain = bool(piece.text) and not piece.kept
        if not (plain or piece.inside or piece.kept):
            waiting += [piece] if piece.raw else []
            continue
        wanted = piece.key if plain and piece.key != around else ""
        if inside and wanted != inside:
            builder.close("")
            inside = ""
        for one in waiting:
            builder.empty(one.raw)
        waiting = []
        if plain:
            if wanted and not inside:
                builder.open("", piece.wrap)
                inside = wanted
            builder.add(piece.text)
        elif piece.inside:
            main = _main(piece.inside)
            builder.open(piece.raw, main.wrap if main else None)
            _fill(builder, piece.inside, main.key if main else around)
            builder.close(piece.after)
        elif piece.raw:
            builder.keep(piece.raw, piece.text)


class Part(ABC):
    """A member of an archive that is XML, and has paragraphs; each kind reads them in its own way.

    Args:
        data: of the member.
    """

    paragraphs: ClassVar[frozenset[str]]
    """Their elements."""
    places: ClassVar[frozenset[str]] = frozenset()
    """Where they are looked for, if not everywhere."""

    def __init__(self, data: bytes) -> None:
        self.raw, self._encoding = xml_text(data)
        self._segments = list[Segment]()

    def document(self) -> TextDocument:
        """The member with its segments."""
        for one in elements(self.raw, self.places or self.paragraphs):
            self.visit([one])
        self._segments.sort(key=lambda one: (one.begin, -one.end))
        return TextDocument(self.raw, self._segments, self._encoding)

    def visit(self, given: Sequence[Element], depth: int = 0) -> None:
        """Read the paragraphs among some elements, and those within them."""
        for one in outermost(given, self.paragraphs) if depth < DEEPEST else ():
            self.visit(self.read(one), depth + 1)

    @abstractmethod
    def read(self, paragraph: Element) -> Sequence[Element]:
        """Add the segments of a paragraph, but not those of the paragraphs in the elements that are returned."""

    def add(self, pieces: Sequence[Piece], escape: Callable[[str], str]) -> None:
        """Add the segment of some pieces, if they have words."""
        if segment := segment_of(pieces, f"paragraph {len(self._segments) + 1}", escape):
            self._segments.append(segment)

    def raw_of(self, element: Element) -> str:
        """An element as it is written, with its paragraphs as they are translated."""
        has = element.children and outermost(element.children, self.paragraphs)
        return inner(element.begin, element.end) if has else self.raw[element.begin : element.end]


class Properties(Part):
    """Title, subject and description of a document."""

    paragraphs = frozenset(("dc:title", "dc:subject", "dc:description"))

    def read(self, paragraph: Element) -> Sequence[Element]:
        """All of it is text."""
        text = text_of(self.raw, paragraph)
        self.add([Piece(paragraph.inside, paragraph.outside, text)], escape_xml)
        return ()


def read_properties(data: bytes) -> TextDocument:
    """A part of properties."""
    return Properties(data).document()


def escape_xml(text: str) -> str:
    """Text as XML, without characters that it cannot have."""
    return escape_text(_FORBIDDEN.sub("", text)).replace("\r", "&#13;")
