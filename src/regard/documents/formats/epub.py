"""EPUB: its pages as HTML, the names of its chapters, and the title and description of the book."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import unescape
from posixpath import dirname, join, normpath
from urllib.parse import unquote

from regard.documents.archive import Archive, ArchiveDocument
from regard.documents.formats.html import decode_html
from regard.documents.formats.html import read as read_html
from regard.documents.markup import attributes, escape_text, refuse_bad_xml, tokens
from regard.documents.segment import LineNumbers, Segment, SegmentBuilder, TextDocument
from regard.system.errors import RegardError

CONTAINER, ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
PAGES = frozenset(("application/xhtml+xml", "text/html", "application/x-dtbook+xml"))
CHAPTERS = "application/x-dtbncx+xml"


def read(data: bytes) -> ArchiveDocument:
    """A book's package, its pages in the order of reading, and its tables of contents.

    Raises:
        RegardError: it is no EPUB, is damaged, or its pages are encrypted.
    """
    archive = Archive(data)
    names = frozenset(archive.names)
    package = next((found.get("full-path", "") for found in _elements(archive, CONTAINER, "rootfile")), "")
    items = {found["id"]: found for found in _elements(archive, package, "item") if {"id", "href"} <= found.keys()}
    order = [found.get("idref", "") for found in _elements(archive, package, "itemref")]
    readers: dict[str, Callable[[bytes], TextDocument]] = {
        package: lambda some: _values(some, ("title", "description"))
    }
    for identity in dict.fromkeys((*order, *items)):
        if found := items.get(identity):
            name = normpath(join(dirname(package), unquote(found["href"])))
            if name in names and found.get("media-type") in PAGES:
                readers[name] = read_html
            elif name in names and found.get("media-type") == CHAPTERS:
                readers[name] = lambda some: _values(some, ("text",))
    if ENCRYPTION in names:
        hidden = {unquote(found.get("URI", "")) for found in _elements(archive, ENCRYPTION, "CipherReference")}
        if hidden & readers.keys():
            raise RegardError("its pages are encrypted; only its seller's programs read them")
    return archive.document(readers)


def _elements(archive: Archive, name: str, wanted: str) -> Iterator[dict[str, str]]:
    """The attributes of the elements of one name."""
    data = archive.read(name)
    refuse_bad_xml(data)
    raw, _ = decode_html(data)
    for token in tokens(raw):
        if token.kind in ("open", "empty") and token.name.rpartition(":")[2] == wanted:
            yield {one.name: one.value for one in attributes(raw, token)}


def _values(data: bytes, names: tuple[str, ...]) -> TextDocument:
    """The texts of the elements of some names, where it is no HTML in disguise."""
    refuse_bad_xml(data)
    raw, encoding = decode_html(data)
    found, lines, inside = list[Segment](), LineNumbers(raw), ""
    for token in tokens(raw):
        text = unescape(raw[token.begin : token.end]) if token.kind == "text" and inside in names else ""
        if text.strip() and "<" not in text:
            one = SegmentBuilder(token.begin)
            one.add(text.strip())
            found.append(one.segment(token.end, lines.of(token.begin), escape_text))
        inside = token.name.rpartition(":")[2] if token.kind == "open" else ""
    return TextDocument(raw, found, encoding, "xmlcharrefreplace")
