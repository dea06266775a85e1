"""Markdown (CommonMark with GitHub's tables and strikethrough): paragraphs, headings and cells are segments.

The blocks and the marks within them are those of markdown-it-py, which is asked where each stands. A translated
paragraph is one line. It is read again before it is written: what would be markup is escaped, and emphasis that the
rules of flanking would not see at its new place is written as HTML.
"""

from __future__ import annotations

import re
from array import array
from collections import ChainMap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from markdown_it import MarkdownIt

from regard.documents.blocks import BlockSegments, Inline
from regard.documents.commonmark import inlines_of, markdown_parser
from regard.documents.encoding import decode
from regard.documents.formats.html import HTMLReader
from regard.documents.segment import INNER, Place, Segment, SegmentTranslation, Tag, TextDocument, inner, render
from regard.system.errors import RegardError

MOST_BRACKETS = 1000
"""A paragraph with more stays as it is: the parser's time grows with their square."""
_BLANKS = " \t\n\v\f\r"
_NEWLINE = re.compile(r"\r\n?|\n")
_CONTINUED = re.compile(r"(?:\r\n?|\n)[ \t>]*")
_NOTHING = re.compile(r"(?!)")
_FRONT = re.compile(r"---[ \t]*\r?\n(?=[\w-]+[ \t]*:)(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_SCALAR = re.compile(
    r"""^(?:title|description|summary|subtitle)[ \t]*:[ \t]+
    ("[^"\\\n]*"|'[^'\n]*'|[^\W\d_](?:[^:#\n]|:(?!\s)|(?<!\s)\#)*?)[ \t]*\r?$""",
    re.MULTILINE | re.VERBOSE,
)
"""A value of the front matter that YAML reads as it stands."""
_PREFIX = re.compile(r"\[(?:[ xX]\](?=\s)|\^[^\]\s]+\]:)\s*")
"""What begins a paragraph and is no text: the box of a task, the name of a footnote."""
_HEADING = re.compile(r"#{1,6}[ \t]+")
_PIPE = re.compile(r"(?<!\\)\|")
_ALT = re.compile(r"!\[([^\\\[\]`*_<&|~\n]*)\](?:\(|\[[^\]])")
"""The text of an image in which nothing is markup, and which is not its reference."""
_RISKY = re.compile(
    r"""[`*_\[\]~$|<] | \\(?=[!-/:-@\[-`{-~]|\Z) | &(?=\#?\w+;) | !\Z | \#+\Z | \A[#+>=:-]
    | (?:(?<=\A\d)|(?<=\A\d\d)|(?<=\A\d{3})|(?<=\A\d{4}))[.)](?=\s|\Z)""",
    re.VERBOSE,
)
"""What may be markup in a text."""
_REFERENCES = {"`": "&#96;", "<": "&lt;"}
"""What an escape would not keep from being markup with its like elsewhere in the paragraph."""
_HTML = {"*": "em", "_": "em", "**": "strong", "__": "strong", "~~": "s"}


@dataclass(frozen=True)
class MarkdownSegment(Segment):
    """A segment with marks.

    Args:
        frame: what stands before it in its line where it is read again; ``None``: in a cell of a table.
        alone: whether it is all of its paragraph.
        marks: how many there are.
    """

    frame: str | None = ""
    alone: bool = True
    marks: int = 0


@dataclass
class MarkdownDocument(TextDocument):
    """A Markdown document with the parser and the references by which it was read."""

    parser: MarkdownIt = field(default_factory=markdown_parser)
    env: dict[str, Any] = field(default_factory=dict)

    def render(self, segment: Segment, translated: SegmentTranslation) -> str:
        """A translation, with what it takes to be read as it was meant."""
        if not isinstance(segment, MarkdownSegment):
            return render(segment, translated)
        own, html, written = segment.tags, tuple(map(_as_html, segment.tags)), ""
        for tags, risky in ((own, _NOTHING), (own, _RISKY), (html, _RISKY))[not segment.alone :]:
            marked = replace(segment, tags=tags, escape=lambda text: f"\1{text.replace(chr(10), ' ')}\1")
            pieces = render(marked, translated).split("\1")
            if not pieces[0] and pieces[1:]:
                pieces[1] = pieces[1].lstrip()
            written = "".join(
                _escaped(piece, risky, segment.frame) if place % 2 else piece for place, piece in enumerate(pieces)
            ).strip(" \t")
            if self._is_read_as(pieces, written, segment):
                break
        return written

    def _is_read_as(self, pieces: Sequence[str], written: str, segment: MarkdownSegment) -> bool:
        """Whether the parser finds as many marks, and marks and texts by turns as they are meant."""
        frame, content = segment.frame, self._content(written, segment.frame)
        references = {"references": ChainMap({}, self.env.get("references", {}))}
        if frame is not None:
            block = self.parser.parse(frame + content, references)
            kind = "heading_open" if frame else "paragraph_open"
            if len(block) != 3 or (block[0].type, block[1].content) != (kind, content):
                return False
        inlines = list(inlines_of(self.parser, content, references))
        found = (f"\1{one.text}\1" if _is_text(one) else content[one.begin : one.end] for one in inlines)
        wanted = (f"\1{piece}\1" if place % 2 else self._content(piece, frame) for place, piece in enumerate(pieces))
        alike = _comparable("".join(found)) == _comparable("".join(wanted))
        return alike and sum(not _is_text(one) for one in inlines) == segment.marks

    def _content(self, written: str, frame: str | None) -> str:
        """What the parser of a paragraph is given: without the marks of blocks, and a cell without its escapes."""
        whole = INNER.sub(lambda found: self.raw[int(found[1]) : int(found[2])], written)
        return whole.replace("\\|", "|") if frame is None else _CONTINUED.sub("\n", whole)


def read(data: bytes) -> MarkdownDocument:
    """A text's paragraphs, headings, cells, and what of its HTML is text."""
    raw, encoding = decode(data)
    if "\1" in raw:
        raise RegardError("has the character U+0001, which is no text; remove it before")
    reader = _Reader(raw)
    return MarkdownDocument(raw, reader.segments(), encoding, "strict", reader.parser, reader.env)


class _Reader:
    """Finds the segments of a document, block by block."""

    def __init__(self, raw: str) -> None:
        self.parser, self.env = markdown_parser(), dict[str, Any]()
        self._raw, self._inline, self._pages = raw, BlockSegments(raw, _literal, trim=False), HTMLReader(raw)
        self._front = _FRONT.match(raw, raw.startswith("\ufeff"))
        self._body = self._front.end() if self._front else int(raw.startswith("\ufeff"))
        ends = [found.span() for found in _NEWLINE.finditer(raw, self._body)]
        self._lines = list(
            zip([self._body, *(end for _, end in ends)], [*(begin for begin, _ in ends), len(raw)], strict=True)
        )

    def segments(self) -> list[Segment]:
        """Those of the document, by their beginning."""
        found, frame, row, line = list(self._values()), "", None, 0
        for token in self.parser.parse(self._raw[self._body :], self.env):
            if token.type in ("heading_open", "paragraph_open"):
                frame = "# " if "#" in token.markup else ""
            elif token.type == "tr_open":
                row = list[str]()
            elif token.type == "tr_close" and row is not None:
                found += self._row(row, line)
                row = None
            elif token.type == "inline" and token.map:
                line = token.map[0]
                if row is None:
                    found += self._block(token.content, self._lines[line : token.map[1]], frame)
                else:
                    row.append(token.content)
            elif token.type == "html_block" and token.map:
                found += self._html(token.content, self._lines[token.map[0] : token.map[1]])
        return sorted(found, key=lambda one: one.begin)

    def _values(self) -> Iterator[Segment]:
        """Title and description of the front matter."""
        for found in _SCALAR.finditer(self._raw, *self._front.span(1)) if self._front else ():
            text = found[1].strip("\"'")
            where = self._inline.where(found.start(1))
            yield Segment(*found.span(1), text, where=where, escape=_quoted, wrap=('"', '"'))

    def _block(self, content: str, lines: Sequence[Place], frame: str) -> Iterator[Segment]:
        """Those of a paragraph or a heading."""
        places, pieces = array("I"), content.split("\n")
        for (begin, end), piece in zip(lines, pieces, strict=False):
            core, raw = piece.strip(_BLANKS), self._raw[begin:end]
            mark = _HEADING.search(raw) if frame else None
            at = begin + (mark.end() if mark else len(raw.rstrip(_BLANKS)) - len(core))
            lead = len(piece) - len(piece.lstrip(_BLANKS))
            places.extend([at] * lead)
            places.extend(range(at, at + len(piece) - lead + 1))
            if not self._raw.startswith(core, at):
                return
        if len(places) == len(content) + 1:
            prefix = _PREFIX.match(content) if not frame else None
            cut = prefix.end() if prefix else 0
            yield from self._segments(content[cut:], places[cut:], frame)

    def _row(self, contents: Sequence[str], line: int) -> Iterator[Segment]:
        """Those of the cells of a row; its first one may stand behind a pipe, or behind marks of blocks."""
        begin, end = self._lines[line]
        pipes = [found.start() for found in _PIPE.finditer(self._raw, begin, end)]
        cells = list(zip([begin, *(at + 1 for at in pipes)], [*pipes, end], strict=True))
        for first in (0, 1):
            found = [self._cell(text, *place) for text, place in zip(contents, cells[first:], strict=False)]
            if None not in found:
                for text, places in zip(contents, found, strict=False):
                    yield from self._segments(text, places or [], None)
                return

    def _cell(self, text: str, begin: int, end: int) -> list[int] | None:
        raw, core = self._raw[begin:end].rstrip(_BLANKS), text.replace("|", "\\|")
        if not raw.endswith(core) or (not core and raw):
            return None
        sizes = (2 if sign == "|" else 1 for sign in text)
        return list(accumulate(sizes, initial=begin + len(raw) - len(core)))

    def _html(self, content: str, lines: Sequence[Place]) -> Iterator[Segment]:
        """Those of a block of HTML, if no marks of other blocks stand in its lines."""
        begin, end = lines[0][0], lines[-1][1]
        raw = [self._raw[one:other].strip() for one, other in lines]
        if raw == [piece.strip() for piece in content.rstrip("\n").split("\n")]:
            yield from self._pages.segments(begin, end)

    def _segments(self, content: str, places: Sequence[int], frame: str | None) -> Iterator[Segment]:
        if content.count("[") > MOST_BRACKETS:
            return
        inlines, opened = list[Inline](), 0
        for one in inlines_of(self.parser, content, self.env):
            begin, end, written = places[one.begin], places[one.end], ""
            if one.kind == "open" and one.name == "link":
                opened = one.end
            elif one.kind == "close" and one.name == "link" and content[one.begin : one.end] in ("]", "][]"):
                written = f"][{' '.join(content[opened : one.begin].split())}]"
            elif one.name == "image" and (alt := _ALT.match(self._raw, begin, end)):
                yield Segment(*alt.span(1), alt[1], where=self._inline.where(begin), escape=_literal)
                written = inner(begin, end)
            inlines.append(one._replace(begin=begin, end=end, written=written))
        at = 0
        for segment in self._inline.split(inlines):
            alone = (segment.begin, segment.end) == (places[0], places[-1])
            marks, at = 0, next(n for n in range(at, len(inlines)) if _reaches(inlines[n], segment.begin))
            while at < len(inlines) and _is_before(inlines[at], segment.end):
                marks, at = marks + (not _is_text(inlines[at])), at + 1
            yield MarkdownSegment(**vars(segment), frame=frame, alone=alone, marks=marks)


def _reaches(one: Inline, begin: int) -> bool:
    """Whether a mark belongs to what begins there; the beginning of code has no characters of its own."""
    return one.end > begin or one.begin == begin


def _is_before(one: Inline, end: int) -> bool:
    """Whether a mark belongs to what ends there; the end of code has no characters of its own."""
    return one.begin < end or (one.kind == "close" and one.end == end)


def _is_text(one: Inline) -> bool:
    return one.kind == "text" and not one.kept


def _escaped(text: str, risky: re.Pattern[str], frame: str | None) -> str:
    text = risky.sub(lambda found: _REFERENCES.get(found[0], f"\\{found[0]}"), text)
    return text.replace("|", "\\|") if frame is None and risky is _NOTHING else text


def _literal(text: str) -> str:
    return _escaped(text, _RISKY, "")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _comparable(pieces: str) -> str:
    return "".join(pieces.split()).replace("\1\1", "")


def _as_html(tag: Tag) -> Tag:
    """Emphasis as HTML, and code apart from other code."""
    if tag.kept:
        return replace(tag, before=f"{tag.before} ")
    name = _HTML.get(tag.before)
    return replace(tag, before=f"<{name}>", after=f"</{name}>") if name and tag.after == tag.before else tag
