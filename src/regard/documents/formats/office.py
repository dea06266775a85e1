"""Office Open XML: parts of a package by their content types; paragraphs of DrawingML; PPTX.

Of a presentation the slides, their notes, charts and diagrams are read, of any package the text boxes of drawings and
the properties of the document; masters and layouts are not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from regard.documents.archive import Archive, ArchiveDocument
from regard.documents.elements import Element, child, elements, text_of, values, xml_text
from regard.documents.pieces import Part, Piece, escape_xml, pair, read_properties
from regard.documents.segment import TextDocument
from regard.system.errors import RegardError

Reader = Callable[[bytes], TextDocument]
_OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_IGNORED = re.compile(
    r"""\s(?:lang|altLang|dirty|err|smtClean|smtId|noProof|bmk)=(?:"[^"]*"|'[^']*')|\s+(?=/>)"""
    r"""|<(?:\w+:)?rPr\s*/>|<((?:\w+:)?rPr)></\1>"""
)
"""What makes no other format of a run, nor what is empty without it."""
_DRAWINGS = "drawingml.chart+xml", "drawingml.diagramData+xml", "diagramDrawing+xml", "officedocument.drawing+xml"


class Drawing(Part):
    """Paragraphs of DrawingML: of slides, notes, charts, diagrams and text boxes."""

    paragraphs = frozenset(("a:p",))

    def read(self, paragraph: Element) -> Sequence[Element]:
        """A segment for each line; the text of fields (the number of a slide, a date) is kept."""
        lines = [list[Piece]()]
        for one in paragraph.children:
            if one.name == "a:br":
                lines.append([])
            elif one.name == "a:r":
                self._run(lines[-1], one)
            elif one.name != "#text":
                text = child(one, "a:t") if one.name == "a:fld" else None
                words = text_of(self.raw, text) if text else ""
                lines[-1].append(Piece(one.begin, one.end, words, raw=self.raw_of(one), kept=bool(words)))
        for line in lines:
            self.add(line, escape_xml)
        return paragraph.children

    def _run(self, line: list[Piece], run: Element) -> None:
        """A link is a pair around its text; equal ones that follow each other are one."""
        text = child(run, "a:t")
        if text is None or text.inside == text.end:
            line.append(Piece(run.begin, run.end, raw=self.raw[run.begin : run.end]))
            return
        before, after = self.raw[run.begin : text.inside], self.raw[text.outside : run.end]
        key, words = _IGNORED.sub("", _IGNORED.sub("", before)), text_of(self.raw, text)
        link = child(child(run, "a:rPr"), "a:hlinkClick")
        if link is None:
            line.append(Piece(run.begin, run.end, words, (before, after), key))
            return
        inside = Piece(run.begin, run.end, words)
        if line and line[-1].inside and line[-1].key == key:
            line[-1].inside.append(inside)
            line[-1].end = run.end
        else:
            line.append(pair(run.begin, run.end, before, [inside], after))
            unlinked = self.raw[run.begin : link.begin] + self.raw[link.end : text.inside]
            line[-1].key, line[-1].wrap = key, (unlinked, after)


class Package:
    """A package whose first part is of a kind.

    Args:
        data: of the package.
        kind: how such documents are called.
        main: the endings of the content types that their first part may have.
    """

    def __init__(self, data: bytes, kind: str, main: tuple[str, ...]) -> None:
        if data.startswith(_OLD):
            raise RegardError(f"is encrypted, or of an Office before 2007; save it as {kind}, without a password")
        self.archive = Archive(data)
        types = self._types()
        if any("macroEnabled" in one for one in types.values()):
            raise RegardError(f"has macros; save it as {kind} without them")
        if not any(one.endswith(main) for one in types.values()):
            raise RegardError(f"is no {kind}")
        self.types = types

    def raw(self, ending: str) -> list[str]:
        """The texts of the parts of a content type."""
        return [self.archive.part(name, xml_text)[0] for name, one in self.types.items() if one.endswith(ending)]

    def document(self, readers: Mapping[str, Reader]) -> ArchiveDocument:
        """The document, with drawings and properties.

        Args:
            readers: of further parts, by the endings of their content types.
        """
        known = {**dict.fromkeys(_DRAWINGS, read_drawing), "core-properties+xml": read_properties, **readers}
        chosen = [(name, end) for name, one in self.types.items() for end in known if one.endswith(end)]
        return self.archive.document({name: known[end] for name, end in chosen})

    def _types(self) -> dict[str, str]:
        """The content type of each member."""
        raw, _ = self.archive.part("[Content_Types].xml", xml_text)
        found = {}
        for one in elements(raw, ("?:Default", "?:Override")):
            has = values(raw, one)
            found[has.get("PartName", f".{has.get('Extension')}").lower()] = has.get("ContentType", "")
        endings = {name: f".{name.rpartition('.')[2]}" for name in self.archive.names}
        return {one: found.get(f"/{one}".lower()) or found.get(end.lower(), "") for one, end in endings.items()}


def read_drawing(data: bytes) -> TextDocument:
    """A part whose text is that of drawings."""
    return Drawing(data).document()


def read_pptx(data: bytes) -> ArchiveDocument:
    """A presentation."""
    package = Package(data, "PPTX", ("presentationml.presentation.main+xml", "presentationml.slideshow.main+xml"))
    return package.document(dict.fromkeys(("ml.slide+xml", "ml.notesSlide+xml"), read_drawing))
