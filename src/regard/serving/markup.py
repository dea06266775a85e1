"""Texts with tags as segments: fragments of HTML, of XML of any kind, and texts with numbered tags.

All but their text stays byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import unescape
from html.entities import html5
from typing import Literal, NamedTuple

from regard.documents.blocks import BlockSegments, Inline
from regard.documents.formats.html import BLOCKS, NEVER, HTMLReader
from regard.documents.inline import Piece, segment_of
from regard.documents.markup import Token, refuse_bad_xml, tokens
from regard.documents.pieces import escape_xml
from regard.documents.segment import Segment, TextDocument
from regard.serving.core import Markup
from regard.system.errors import RegardError

Kind = Literal["open", "close", "empty"]
NO_TAGS = frozenset[str]()
ROOT = "fragment"
_PROLOGUE = re.compile(r"\s*+(?:<\?xml\s|(?:(?><\?.*?\?>)|(?><!--.*?-->)|\s++)*+<!DOCTYPE)", re.DOTALL)
_ENCODING = re.compile(r"""\A(<\?xml[^>]*?)\sencoding\s*=\s*["'][^"']*["']""")
_NUMBERED = re.compile(r"<(/?)([a-z]{1,8}\d+) ?(/?)>")
_ENTITY = re.compile(r"&(\w+;)")


def read(
    text: str,
    markup: Markup,
    ignore_tags: frozenset[str] = NO_TAGS,
    splitting_tags: frozenset[str] = NO_TAGS,
    non_splitting_tags: frozenset[str] = NO_TAGS,
    outline: bool = True,
) -> TextDocument:
    """A text with tags as a document; what its ``splice`` writes is a text.

    Args:
        text: a fragment, or a whole document.
        markup: what its tags are. HTML is read as a browser reads it; XML must be well-formed, but may have HTML's
            entities; of a text only numbered tags are, and they need not be pairs.
        ignore_tags: elements whose content is kept.
        splitting_tags: elements that are segments of their own.
        non_splitting_tags: elements that are not.
        outline: whether elements of XML beside which no text stands are segments of their own, too.

    Raises:
        RegardError: it is not well-formed XML, or declares entities.
    """
    if markup == "html":
        blocks, never = (BLOCKS | splitting_tags) - non_splitting_tags, NEVER | ignore_tags
        return TextDocument(text, HTMLReader(text, blocks, never).segments())
    if markup != "xml":
        return TextDocument(text, [_numbered(text)])
    refuse_malformed(text)
    reader = _XMLReader(text, ignore_tags, splitting_tags, non_splitting_tags, outline)
    return TextDocument(text, list(reader.segments()))


def markup_of(texts: Iterable[str]) -> Markup:
    """That of plain texts: numbered where one has tags as ``<b0>``.

    OmegaT and extensions of browsers write them for the tags of a document.
    """
    return "numbered" if any(map(_NUMBERED.search, texts)) else "text"


def _numbered(text: str) -> Segment:
    """A text as one segment; a tag without its partner is an element without text."""
    pieces, at = list[Piece](), 0
    for found in _NUMBERED.finditer(text):
        begin, end = found.span()
        behind = end + (text[end : end + 1] == " " and text[begin - 1 : begin] == " " and bool(found[3]))
        kind: Kind = "empty" if found[3] else "close" if found[1] else "open"
        pieces += [Piece("text", text=text[at:begin]), Piece(kind, text[begin:behind], name=found[2])]
        at = behind
    return segment_of([*pieces, Piece("text", text=text[at:])], (0, len(text)), "line 1")


def refuse_malformed(text: str) -> None:
    """Refuse what is no well-formed XML, with or without one element around all; HTML's entities are none of it.

    Raises:
        RegardError: it is.
    """
    known = _ENTITY.sub(lambda found: " " * len(found[0]) if found[1] in html5 else found[0], text)
    whole = known.lstrip() if _PROLOGUE.match(known) else f"<{ROOT}>{known}</{ROOT}>"
    try:
        refuse_bad_xml(_ENCODING.sub(r"\1", whole, count=1).encode())
    except RegardError as error:
        raise RegardError(f"the tags of a text cannot be read: {error.message}") from None


class _Element(NamedTuple):
    """An element that is open.

    Args:
        alone: whether no text stands directly in it, nor in those around it.
        kept: its content is not translated.
        splits: its tags are boundaries of segments.
    """

    alone: bool
    kept: bool = False
    splits: bool = False


class _XMLReader:
    """Reads well-formed XML."""

    def __init__(
        self, raw: str, ignored: frozenset[str], splitting: frozenset[str], never: frozenset[str], outline: bool
    ) -> None:
        self._raw, self._blocks = raw, BlockSegments(raw, escape_xml, trim=True, blanks=True)
        self._ignored, self._splitting, self._never, self._outline = ignored, splitting, never, outline
        self._tokens, self._with_text, opened = list(tokens(raw)), set[int](), [-1]
        for number, token in enumerate(self._tokens):
            if token.kind == "open":
                opened.append(number)
            elif token.kind == "close":
                opened.pop()
            elif self._text(token).strip():
                self._with_text.add(opened[-1])

    def segments(self) -> Iterator[Segment]:
        """Those of the text, in its order."""
        run, around, opened = list[Inline](), _Element(-1 not in self._with_text), list[_Element]()
        for number, token in enumerate(self._tokens):
            if token.kind == "open":
                opened.append(around)
                around = self._element(number, token, around)
            splits = around.splits if token.kind in ("open", "close") else self._divides(token.name, around)
            if splits:
                yield from self._blocks.split(run)
                run = []
            elif text := self._text(token):
                run.append(Inline("text", token.begin, token.end, text, kept=around.kept))
            else:
                kind: Kind = token.kind if token.kind in ("open", "close") else "empty"
                run.append(Inline(kind, token.begin, token.end, name=token.name, kept=around.kept))
            if token.kind == "close":
                around = opened.pop()
        yield from self._blocks.split(run)

    def _element(self, number: int, token: Token, around: _Element) -> _Element:
        kept = around.kept or token.name in self._ignored
        alone = self._outline and around.alone and not (kept or token.name in self._never)
        splits = alone or self._divides(token.name, around)
        return _Element(around.alone and number not in self._with_text, kept, splits)

    def _divides(self, name: str, around: _Element) -> bool:
        return not around.kept and name in self._splitting - self._never - self._ignored

    def _text(self, token: Token) -> str:
        raw = self._raw[token.begin : token.end]
        if token.kind == "text":
            return unescape(raw)
        return raw[9:-3] if token.kind == "other" and raw.startswith("<![CDATA[") else ""
