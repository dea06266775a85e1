"""Inline marks in the text of a segment: which of them are pairs; HTML and reStructuredText in strings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import unescape
from typing import Literal

from regard.documents.markup import VOID
from regard.documents.segment import Place, Segment, SegmentBuilder

Write = Callable[[str], str]
DEEPEST = 100
"""Pairs within one another; what is deeper stays as elements without text."""
_MARK = re.compile(
    r"<(?P<end>/?)(?P<element>[A-Za-z][\w:-]*+|\d+(?=/?>))(?P<rest>(?:[^<>\"']++|\"[^\"<>]*+\"|'[^'<>]*+')*+)>"
    r"|``(?P<code>[^`]++)``"
    r"|(?<![\w`])(?::[A-Za-z][\w+.:-]{0,40}:)?`(?=\S)(?P<title>[^`]*?[^`\s])(?P<url>\s?<[^`<>]++>)?`_{0,2}+(?![\w`])"
    r"|(?<![\w*])(?P<stars>\*\*?)(?P<strong>[^\s*](?:[^*]*[^\s*])?)(?P=stars)(?![\w*])"
    r"|(?<![\w|])\|(?P<name>[^\s|](?:[^|\n]{0,60}[^\s|])?)\|(?![\w|])"
    r"|(?P<entity>&(?:#\w+|[A-Za-z]\w+);)"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a segment: text, or a mark as the document has it.

    Args:
        raw: of a mark.
        text: what is read of it.
        name: a mark of the kind ``close`` ends the last ``open`` of the same name.
    """

    kind: Literal["text", "open", "close", "empty", "keep"]
    raw: str = ""
    text: str = ""
    name: str = ""


def segment_of(
    given: Iterable[Piece], place: Place, where: str, escape: Write = str, quote: Write = str, blanks: bool = True
) -> Segment:
    """The segment of some pieces; a mark without its partner, or across a pair, is an element without text.

    Args:
        given: the pieces.
        place: the characters of the raw document that they are.
        where, escape, quote: as :class:`~regard.documents.segment.Segment`.
        blanks: as :class:`~regard.documents.segment.SegmentBuilder`.
    """
    pieces, builder = list(given), SegmentBuilder(place[0], blanks)
    partners = find_partners(pieces)
    for number, piece in enumerate(pieces):
        if piece.kind == "text":
            builder.add(piece.text)
        elif piece.kind == "keep":
            builder.keep(piece.raw, piece.text)
        elif number not in partners:
            builder.empty(piece.raw)
        elif piece.kind == "open":
            builder.open(piece.raw)
        else:
            builder.close(piece.raw)
    return builder.segment(place[1], where, escape, quote=quote)


def find_partners(pieces: Sequence[Piece]) -> dict[int, int]:
    """Of each mark that is a half of a pair the other half."""
    waiting, names, found = list[int](), Counter[str](), dict[int, int]()
    for number, piece in enumerate(pieces):
        if piece.kind == "open" and len(waiting) < DEEPEST:
            waiting.append(number)
            names[piece.name] += 1
        elif piece.kind == "close" and names[piece.name]:
            last = -1
            while last < 0 or pieces[last].name != piece.name:
                last = waiting.pop()
                names[pieces[last].name] -= 1
            found |= {last: number, number: last}
    return found


def keep_matches(pieces: Iterable[Piece], pattern: re.Pattern[str]) -> Iterator[Piece]:
    """The pieces, with what a pattern finds in their text kept."""
    for piece in pieces:
        at = 0
        for found in pattern.finditer(piece.text) if piece.kind == "text" else ():
            yield Piece("text", text=piece.text[at : found.start()])
            yield Piece("keep", found[0], found[0])
            at = found.end()
        yield replace(piece, text=piece.text[at:])


def read_marks(text: str) -> Iterator[Piece]:
    """The pieces of a string in which tags of HTML and roles, links and stars of reStructuredText may stand."""
    at = 0
    for found in _MARK.finditer(text):
        if found.start() > at:
            yield Piece("text", text=text[at : found.start()])
        yield from _mark(found)
        at = found.end()
    if at < len(text):
        yield Piece("text", text=text[at:])


def _mark(found: re.Match[str]) -> Iterator[Piece]:
    raw, stars, title = found[0], found["stars"], found["title"]
    if name := found["element"]:
        void = name.lower() in VOID or found["rest"].endswith("/")
        yield Piece("empty" if void else "close" if found["end"] else "open", raw, name=name.lower())
    elif stars or (title and found["url"]):
        text = found["strong"] if stars else title
        before, _, after = raw.partition(text)
        yield from (Piece("open", before, name="`"), Piece("text", text=text), Piece("close", after, name="`"))
    elif found["entity"]:
        yield Piece("keep", raw, unescape(raw))
    else:
        yield Piece("keep", raw, (found["code"] or title or found["name"]).lstrip("~!"))
