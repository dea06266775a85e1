"""OpenDocument: a segment for each paragraph and heading of texts, sheets and presentations, of notes and headers.

Cells of numbers, dates and formulas, deleted text and code stay as they are; spans that differ in nothing but their
language or the session in which they were written are one. The text of fields is read, and kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from regard.documents.archive import Archive, ArchiveDocument
from regard.documents.elements import Element, child, elements, outermost, raw_name, text_of, values, xml_text
from regard.documents.formats.docx import CODE
from regard.documents.pieces import DEEPEST, Part, Piece, escape_xml, find_pairs, join_kept, pair, read_properties
from regard.system.errors import RegardError

CELL = "table:table-cell"
LEFT = frozenset(("text:tracked-changes", "table:tracked-changes"))
"""What has paragraphs that are no longer in the document."""
HEADERS = frozenset(f"style:{side}{kind}" for side in ("header", "footer") for kind in ("", "-left", "-first"))
HOLDERS = frozenset(("text:a", "text:meta", "text:meta-field"))
CHARACTERS = {"text:line-break": "\n", "text:tab": "\t"}
_SIDE = re.compile("-(?:start|end)$")
_HIDDEN = 'display="none"'
_WHITE = re.compile(r"[ \t\r\n]+")
_SEVERAL = re.compile("(?<= ) +")
_IGNORED = re.compile(
    r"""\s[\w-]+:(?:(?:paragraph-)?rsid|(?:language|country|script|rfc-language-tag)(?:-asian|-complex)?)="""
    r"""(?:"[^"]*"|'[^']*')"""
)


def read(data: bytes) -> ArchiveDocument:
    """A text, a spreadsheet or a presentation."""
    archive = Archive(data)
    if "content.xml" not in archive.names:
        raise RegardError("is no OpenDocument file: it has no content.xml")
    if "META-INF/manifest.xml" in archive.names and archive.contains("META-INF/manifest.xml", b"encryption-data"):
        raise RegardError("is encrypted; save it without a password")
    names = [name for name in ("content.xml", "styles.xml", "meta.xml") if name in archive.names]
    styles = Styles([archive.part(name, xml_text)[0] for name in names[:2]])
    kinds = lambda data: Paragraphs(data, styles).document(), lambda data: Headers(data, styles).document()
    readers = {"content.xml": kinds[0], "styles.xml": kinds[1], "meta.xml": read_properties}
    return archive.document({name: readers[name] for name in names})


class Styles:
    """What the styles of a document tell.

    Args:
        raws: the texts of the members that have styles.
    """

    def __init__(self, raws: Sequence[str]) -> None:
        self._parents, self._keys = dict[tuple[str, str], str](), dict[str, str]()
        for raw in raws:
            for place in elements(raw, ("office:styles", "office:automatic-styles", "office:body")):
                if place.name == "office:body":
                    break
                for style in place.children:
                    self._add(raw, style, place.name == "office:automatic-styles")

    def is_code(self, family: str, name: str) -> bool:
        """Whether a style, or one that it is derived from, is called as styles of code are."""
        for _ in range(DEEPEST):
            if CODE.search(name.replace("_20_", " ")):
                return True
            name = self._parents.get((family, name), "")
        return False

    def key(self, name: str) -> str:
        """What tells the format of a span from that of others; empty if it is none."""
        return self._keys.get(name, f"style {name}")

    def _add(self, raw: str, style: Element, automatic: bool) -> None:
        has = values(raw, style)
        family, name, parent = (has.get(one, "") for one in ("family", "name", "parent-style-name"))
        self._parents[family, name] = parent
        if automatic and family == "text":
            given = child(style, "style:text-properties")
            opening = _IGNORED.sub("", raw[given.begin : given.inside]) if given else ""
            has_format = parent or "=" in opening
            self._keys[name] = f"{parent} {opening}" if has_format else ""


class Paragraphs(Part):
    """A member that has paragraphs.

    Args:
        data: of the member.
        styles: of the document.
    """

    paragraphs = frozenset(("text:p", "text:h", CELL, *LEFT))

    def __init__(self, data: bytes, styles: Styles) -> None:
        super().__init__(data)
        self._styles, self._last = styles, " "

    def read(self, paragraph: Element) -> Sequence[Element]:
        """A segment; of a cell that has a value of its own, paragraphs in notes and drawings alone are read."""
        if paragraph.name in LEFT:
            return ()
        if paragraph.name == CELL:
            has = values(self.raw, paragraph)
            own = has.get("value-type", "string") != "string" or has.keys() & {"formula", "string-value"}
            return [one for one in paragraph.children if not own or one.name != "text:p"]
        self._last = " "
        if not self._styles.is_code("paragraph", values(self.raw, paragraph).get("style-name", "")):
            prefix = "".join(raw_name(self.raw, paragraph).rpartition(":")[:2])
            found = join_kept(list(self._pieces(paragraph, Piece(0, 0), 0)))
            self.add(find_pairs(found), partial(_escape, prefix))
        return paragraph.children

    def _pieces(self, holder: Element, around: Piece, depth: int) -> Iterator[Piece]:
        """What an element has, in the format of a piece; all pieces of a span have its place."""
        for one in holder.children:
            begin, end = (around.begin, around.end) if around.end else (one.begin, one.end)
            here = replace(around, begin=begin, end=end)
            if (text := self._text(one)) is not None:
                yield replace(here, text=text)
            elif one.name == "text:span" and depth < DEEPEST:
                yield from self._span(one, here, depth)
            elif one.name in HOLDERS and depth < DEEPEST:
                inside = find_pairs(join_kept(list(self._pieces(one, here, depth + 1))), depth + 1)
                before, after = self.raw[one.begin : one.inside], self.raw[one.outside : one.end]
                yield pair(begin, end, before, inside, after)
            elif one.name != "text:soft-page-break":
                yield self._element(one, here)

    def _text(self, element: Element) -> str | None:
        """What is text; white space is one blank, and there is none at the beginning or behind another."""
        if element.name == "#text":
            text = _WHITE.sub(" ", text_of(self.raw, element))
            text = text[1:] if self._last == " " and text.startswith(" ") else text
            self._last = text[-1:] or self._last
            return text
        count = values(self.raw, element).get("c", "1") if element.name == "text:s" else ""
        blanks = " " * int(count) if re.fullmatch("[0-9]{1,3}", count) else None
        plain = self.raw.find("=", element.begin, element.inside) < 0
        found = CHARACTERS.get(element.name) if plain else blanks
        self._last = self._last if found is None else ""
        return found

    def _span(self, span: Element, around: Piece, depth: int) -> Iterator[Piece]:
        name = values(self.raw, span).get("style-name", "")
        key, raw = self._styles.key(name), self.raw_of(span).join(around.wrap)
        if self._styles.is_code("text", name):
            text = _WHITE.sub(" ", "".join(text_of(self.raw, one) for one in outermost(span.children, ("#text",))))
            self._last = text[-1:]
            yield replace(around, text=text, raw=raw, kept=True)
        elif _HIDDEN in key:
            yield Piece(around.begin, around.end, raw=raw)
        elif key:
            before, after = self.raw[span.begin : span.inside], self.raw[span.outside : span.end]
            wrap = around.wrap[0] + before, after + around.wrap[1]
            yield from self._pieces(span, replace(around, wrap=wrap, key=f"{around.key} {key}"), depth + 1)
        else:
            yield from self._pieces(span, around, depth + 1)

    def _element(self, element: Element, around: Piece) -> Piece:
        """A field, an element without text, or one of two marks that belong together, as those of a bookmark."""
        name, has, raw = element.name, values(self.raw, element), self.raw_of(element)
        mark = f"{_SIDE.sub('', name)} {has.get('name') or has.get('change-id') or has.get('id')}"
        if name.endswith("-end"):
            return Piece(around.begin, around.end, raw=raw, stops=mark)
        if name.endswith("-start") or name == "office:annotation":
            return Piece(around.begin, around.end, raw=raw, starts=mark)
        text = " " if name in CHARACTERS and self._last.strip() else text_of(self.raw, element).strip()
        self._last = text[-1:]
        return Piece(around.begin, around.end, text, raw=raw.join(around.wrap), kept=bool(text))


class Headers(Paragraphs):
    """A member of which headers and footers are read."""

    places = HEADERS


def _escape(prefix: str, text: str) -> str:
    """Text of a paragraph; several blanks, a line break and a tab are elements."""
    text = _SEVERAL.sub(lambda found: f'<{prefix}s {prefix}c="{len(found[0])}"/>', escape_xml(text))
    return text.replace("\n", f"<{prefix}line-break/>").replace("\t", f"<{prefix}tab/>")
