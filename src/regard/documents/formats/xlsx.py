"""XLSX: a segment for each string of the cells and for each comment.

Formulas, names of sheets, headers and footers of pages stay as they are, and so do the names of the columns of tables
and pivot tables, to which formulas refer; a formula that compares with another string finds it no longer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from regard.documents.archive import ArchiveDocument
from regard.documents.elements import Element, child, elements, raw_name, text_of, values
from regard.documents.formats.office import Package
from regard.documents.pieces import Part, Piece, escape_xml

PARTS = "ml.sharedStrings+xml", "ml.worksheet+xml", "ml.comments+xml"
_COLUMNS = {"ml.table+xml": "x:tableColumn", "pivotCacheDefinition+xml": "x:cacheField"}
_CHARACTER = re.compile("_x((?![dD][89a-fA-F])[0-9A-Fa-f]{4})_")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
_NO_FORMAT = re.compile(r"<((?:\w+:)?rPr)></\1>|<(?:\w+:)?rPr\s*/>")


def read(data: bytes) -> ArchiveDocument:
    """A workbook."""
    package = Package(data, "XLSX", ("spreadsheetml.sheet.main+xml",))
    columns = {
        _unescape(values(raw, one).get("name", ""))
        for ending, name in _COLUMNS.items()
        for raw in package.raw(ending)
        for one in elements(raw, (name,))
    }
    for name, one in package.types.items():
        if one.endswith("ml.worksheet+xml") and not package.archive.contains(name, b"inlineStr"):
            package.types[name] = ""
    return package.document(dict.fromkeys(PARTS, lambda part: Strings(part, columns).document()))


class Strings(Part):
    """A part that has strings.

    Args:
        data: of the part.
        columns: strings that stay as they are.
    """

    paragraphs = frozenset(("x:si", "x:is", "x:text"))

    def __init__(self, data: bytes, columns: set[str]) -> None:
        super().__init__(data)
        self._columns = columns

    def read(self, paragraph: Element) -> Sequence[Element]:
        """A text, or runs of text; what tells how to read them aloud goes with them."""
        pieces = list[Piece]()
        for one in paragraph.children:
            text = child(one, "x:t") if one.name == "x:r" else one if one.name == "x:t" else None
            if text and text.inside < text.end:
                t = raw_name(self.raw, text)
                before = f'{self.raw[one.begin : text.begin]}<{t} xml:space="preserve">'
                wrap = before, self.raw[text.outside : one.end]
                words = _unescape(text_of(self.raw, text))
                pieces.append(Piece(one.begin, one.end, words, wrap, _NO_FORMAT.sub("", before)))
            elif pieces and one.name == "x:rPh":
                pieces[-1].end = one.end
        if "".join(piece.text for piece in pieces) not in self._columns:
            self.add(pieces, _escape)
        return ()


def _unescape(text: str) -> str:
    """Text in which ``_x000D_`` is a character."""
    return _CHARACTER.sub(lambda found: chr(int(found[1], 16)), text)


def _escape(text: str) -> str:
    return escape_xml(_CONTROL.sub(lambda found: f"_x{ord(found[0]):04X}_", text))
