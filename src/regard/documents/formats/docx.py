"""DOCX: a segment for each paragraph of the text, of headers, footers, notes, comments and text boxes.

Runs of equal formats are one, inserted text is text, and deleted text stays as it is. What stands between the beginning
of a field and its result is an element without text; its result is text. Styles of code, and what is not to be
proofread, are kept; hidden text is not read. A line break and a tab are characters of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from regard.documents.archive import ArchiveDocument
from regard.documents.elements import Element, child, elements, raw_name, text_of, values
from regard.documents.formats.office import Package
from regard.documents.pieces import DEEPEST, Part, Piece, escape_xml, find_pairs, join_kept, pair

PARTS = "document.main+xml", "header+xml", "footer+xml", "footnotes+xml", "endnotes+xml", "comments+xml"
HOLDERS = frozenset("w:hyperlink w:ins w:moveTo w:smartTag w:sdt w:fldSimple w:customXml w:dir w:bdo".split())
"""What has runs of its own."""
DROPPED = frozenset("#text w:rPr w:proofErr w:lastRenderedPageBreak".split())
CHARACTERS = {"w:cr": "\n", "w:br": "\n", "w:tab": "\t", "w:noBreakHyphen": "\u2011"}
ELEMENTS = {character: name for name, character in CHARACTERS.items()}
BREAKS = frozenset(("w:br", "w:ptab"))
"""What parts words, if it is no character."""
CODE = re.compile(
    r"\bcode\b|source text|verbatim|preformatted|teletype|^macro|^html (?:keyboard|sample|typewriter|variable)",
    re.IGNORECASE,
)
"""Names of styles whose text is not translated."""
CONTENTS = re.compile(r"^(?:toc \d|table of)", re.IGNORECASE)
"""Names of styles of entries of tables of contents, which Word marks as not to be proofread."""
_MILESTONE = re.compile(r"(w:\w+?)(Start|End)")
_REVISION = re.compile(r"""\s(?:\w+:)?rsid\w*=(?:"[^"]*"|'[^']*')""")
_LANGUAGE = re.compile(r"<(?:\w+:)?(?:lang|noProof)\b[^>]*/>")
_NO_FORMAT = re.compile(r"<((?:\w+:)?rPr)>\s*</\1>|<(?:\w+:)?rPr\s*/>")
_CHARACTERS = re.compile(f"[{''.join(ELEMENTS)}]")
_OFF = frozenset(("0", "false", "off"))


def read(data: bytes) -> ArchiveDocument:
    """A text document of Word."""
    package = Package(data, "DOCX", PARTS[:1])
    names = {style: name for raw in package.raw("wordprocessingml.styles+xml") for style, name in _style_names(raw)}
    return package.document(dict.fromkeys(PARTS, lambda part: Word(part, names).document()))


class Word(Part):
    """A part of a text document.

    Args:
        data: of the part.
        names: of styles, by their identifiers.
    """

    paragraphs = frozenset(("w:p",))

    def __init__(self, data: bytes, names: Mapping[str, str]) -> None:
        super().__init__(data)
        self._names = names

    def read(self, paragraph: Element) -> Sequence[Element]:
        """A segment."""
        self._prefix = "".join(raw_name(self.raw, paragraph).rpartition(":")[:2])
        self._fields, self._nested, self._instruction, self._last = 0, 0, list[Piece](), ""
        style = self._style(child(child(paragraph, "w:pPr"), "w:pStyle"))
        self._contents = bool(CONTENTS.search(style))
        if not CODE.search(style):
            self.add(self._pieces(paragraph.children, 0), partial(_escape, self._prefix))
        return paragraph.children

    def _pieces(self, given: Sequence[Element], depth: int) -> list[Piece]:
        found = list[Piece]()
        for one in given:
            if one.name in DROPPED:
                continue
            if one.name == "w:r":
                found += self._run(one)
            elif self._instruction:
                self._instruction.append(Piece(one.begin, one.end, raw=self.raw_of(one)))
            elif one.name in HOLDERS and depth < DEEPEST:
                found.append(self._holder(one, depth))
            else:
                found.append(self._element(one))
        found += self._end_instruction()
        return find_pairs(join_kept(found), depth)

    def _holder(self, holder: Element, depth: int) -> Piece:
        """A pair around what it has; its properties belong to its beginning."""
        content = child(holder, "w:sdtContent") or holder
        start = content.inside
        for one in content.children:
            if one.name.endswith("Pr"):
                start = one.end
        before, after = self.raw[holder.begin : start], self.raw[content.outside : holder.end]
        inside = self._pieces([one for one in content.children if one.begin >= start], depth + 1)
        return pair(holder.begin, holder.end, before, inside, after)

    def _element(self, element: Element) -> Piece:
        """An element without text; or one of two marks that belong together, as those of a bookmark."""
        piece = Piece(element.begin, element.end, raw=self.raw_of(element))
        if found := _MILESTONE.fullmatch(element.name):
            mark = f"{found[1]} {values(self.raw, element).get('id')}"
            piece.starts, piece.stops = (mark, "") if found[2] == "Start" else ("", mark)
        return piece

    def _run(self, run: Element) -> Iterator[Piece]:
        """Its text and elements, each as a run of the same format."""
        properties = child(run, "w:rPr")
        opening, after = _REVISION.sub("", self.raw[run.begin : run.inside]), self.raw[run.outside : run.end]
        before = opening + (self.raw[properties.begin : properties.end] if properties else "")
        t = f"{self._prefix}t"
        wrap = f'{before}<{t} xml:space="preserve">', f"</{t}>{after}"
        make = partial(Piece, run.begin, run.end, wrap=wrap, key=_NO_FORMAT.sub("", _LANGUAGE.sub("", before)))
        hidden, code = self._is_on(properties, "w:vanish"), self._is_code(properties)
        for one in run.children:
            text, raw = self._text(one), f"{before}{self.raw_of(one)}{after}"
            if one.name in DROPPED:
                continue
            if one.name == "w:fldChar" or self._instruction:
                yield from self._field(one, make(raw=raw))
            elif text is None or hidden:
                parts = one.name in BREAKS and bool(self._last.strip())
                yield make(text=" " if parts else "", raw=raw, kept=parts)
            else:
                self._last = text[-1:]
                yield make(text=text, raw=raw if code else "", kept=code)

    def _text(self, element: Element) -> str | None:
        """Of a child of a run; ``None`` of an element without text."""
        if element.name == "w:t":
            text = text_of(self.raw, element).replace("\n", " ")
            return text if "preserve" in self.raw[element.begin : element.inside] else text.strip()
        plain = self.raw.find("=", element.begin, element.inside) < 0
        return CHARACTERS.get(element.name) if plain else None

    def _field(self, element: Element, piece: Piece) -> Iterator[Piece]:
        """What a field is until its result is one element, which with its end is a pair around the result."""
        kind = values(self.raw, element).get("fldCharType") if element.name == "w:fldChar" else ""
        if self._instruction or kind == "begin":
            self._instruction.append(piece)
            self._nested += (kind == "begin") - (kind == "end")
            if kind == "separate" and self._nested == 1:
                self._fields += 1
                yield from self._end_instruction(f"field {self._fields}")
            elif not self._nested:
                yield from self._end_instruction()
            return
        if kind == "end" and self._fields:
            piece.stops = f"field {self._fields}"
            self._fields -= 1
        yield piece

    def _end_instruction(self, starts: str = "") -> Iterator[Piece]:
        if some := self._instruction:
            self._instruction, self._nested = [], 0
            yield Piece(some[0].begin, some[-1].end, raw="".join(one.raw for one in some), starts=starts)

    def _style(self, element: Element | None) -> str:
        """The name of a style that an element asks for."""
        asked = values(self.raw, element).get("val", "") if element else ""
        return self._names.get(asked, asked)

    def _is_on(self, properties: Element | None, name: str) -> bool:
        one = child(properties, name)
        return one is not None and values(self.raw, one).get("val") not in _OFF

    def _is_code(self, properties: Element | None) -> bool:
        no_proof = self._is_on(properties, "w:noProof") and not self._contents
        return no_proof or bool(CODE.search(self._style(child(properties, "w:rStyle"))))


def _style_names(raw: str) -> Iterator[tuple[str, str]]:
    """The identifiers of styles with their names."""
    for style in elements(raw, ("w:style",)):
        if name := child(style, "w:name"):
            yield values(raw, style).get("styleId", ""), values(raw, name).get("val", "")


def _escape(prefix: str, text: str) -> str:
    """Text of a run; some characters are elements between texts."""

    def element(found: re.Match[str]) -> str:
        name = ELEMENTS[found[0]].replace("w:", prefix)
        return f'</{prefix}t><{name}/><{prefix}t xml:space="preserve">'

    return _CHARACTERS.sub(element, escape_xml(text))
