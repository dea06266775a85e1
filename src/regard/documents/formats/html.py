"""HTML as found, also fragments and XHTML: a block's text is a segment, inline elements are its tags."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from html import unescape

from regard.documents.blocks import BlockSegments, Inline
from regard.documents.encoding import decode
from regard.documents.markup import Attribute, Token, attributes, escape_text, escape_value, tokens
from regard.documents.segment import BARE, Segment, TextDocument, inner

BLOCKS = frozenset(
    """html head body title base meta link address article aside audio blockquote canvas caption center col colgroup
    datalist dd details dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6
    header hgroup hr legend li main map menu nav noscript object ol optgroup option p pre search section select source
    summary table tbody td template tfoot th thead tr track ul video""".split()
)
"""Elements that end a segment; all others are inline, also those that no standard has."""
NEVER = frozenset("code kbd samp var pre math svg textarea rt rp script style xmp plaintext progress meter".split())
"""Elements whose text is not translated."""
SILENT = frozenset("svg textarea rt rp script style progress meter".split())
"""Those of them whose text is no part of a sentence."""
IMPLIED = {
    "p": BLOCKS,
    "svg": BLOCKS - {"title"},
    "li": frozenset(("li",)),
    "dt": frozenset(("dt", "dd")),
    "dd": frozenset(("dt", "dd")),
    "option": frozenset(("option", "optgroup")),
    "td": frozenset(("td", "th", "tr", "tbody", "tfoot")),
    "th": frozenset(("td", "th", "tr", "tbody", "tfoot")),
    "tr": frozenset(("tr", "tbody", "tfoot")),
}
"""Elements without a required end: what begins where they end."""
VALUES: dict[str, frozenset[str] | None] = {
    **dict.fromkeys(("title", "placeholder", "aria-label", "aria-description", "aria-placeholder"), None),
    **dict.fromkeys(("aria-roledescription", "aria-valuetext"), None),
    "alt": frozenset(("img", "area", "input")),
    "label": frozenset(("option", "optgroup", "track")),
    "content": frozenset(("meta",)),
    "value": frozenset(("input",)),
}
"""Attributes that are read by people, and of which elements; ``None``: of any."""
META = frozenset("description keywords og:title og:description twitter:title twitter:description".split())
BUTTONS = frozenset(("submit", "button", "reset"))
DEFAULT = "cp1252"
"""What browsers take for text that names no encoding and is not UTF-8, and for Latin-1."""
ENCODINGS = {
    **dict.fromkeys(("iso-8859-1", "latin1", "latin-1", "us-ascii", "ascii"), DEFAULT),
    **dict.fromkeys(("utf-16", "utf-16le", "utf-16be"), "utf-8"),
    "gb2312": "gb18030",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
}
"""What browsers take for an encoding that a document names."""
_NAMED = re.compile(
    rb"""<meta\b[^>]*?\bcharset\s*=\s*["']?\s*([\w:.-]+)|<\?xml\b[^>]*?\bencoding\s*=\s*["']([\w:.-]+)""", re.IGNORECASE
)
_WORTH = re.compile(rf"translate|{'|'.join(VALUES)}", re.IGNORECASE)


def read(data: bytes) -> TextDocument:
    """A page's blocks, and those values of attributes that people read."""
    raw, encoding = decode_html(data)
    return TextDocument(raw, HTMLReader(raw).segments(), encoding, "xmlcharrefreplace")


def decode_html(data: bytes) -> tuple[str, str]:
    """A page's text and its encoding."""
    named = _NAMED.search(data[:4096])
    declared = (named[1] or named[2]).decode("ascii", "replace").lower() if named else None
    return decode(data, declared and ENCODINGS.get(declared, declared), DEFAULT)


class HTMLReader:
    """Reads a page token by token.

    Args:
        raw: the document.
        blocks: elements that end a segment.
        never: elements whose text is not translated.

    Attributes:
        run: what stands since the last block boundary.
        zone: the open elements from one on that is not translated, each with whether it is.
    """

    def __init__(self, raw: str, blocks: frozenset[str] = BLOCKS, never: frozenset[str] = NEVER) -> None:
        self._raw, self._inline = raw, BlockSegments(raw, escape_text, trim=True)
        self._blocks, self._never = blocks, never
        self._run, self._zone, self._within = list[Inline](), list[tuple[str, bool]](), Counter[str]()

    def segments(self, begin: int = 0, end: int | None = None) -> list[Segment]:
        """Those of the document, or of a part of it that is a page of its own, by their beginning."""
        self._zone.clear()
        self._within.clear()
        found = list[Segment]()
        for token in tokens(self._raw[begin:end], html=True):
            found += self._token(replace(token, begin=token.begin + begin, end=token.end + begin) if begin else token)
        return sorted([*found, *self._flush()], key=lambda one: one.begin)

    def _token(self, token: Token) -> Iterator[Segment]:
        if token.kind == "text":
            self._text(token)
            return
        if self._is_block(token):
            yield from self._flush()
        if token.kind in ("open", "empty"):
            yield from self._open(token)
        elif token.kind == "close":
            self._put("close", token)
            self._leave(token.name)
        elif token.kind in ("other", "raw"):
            self._put("empty", token)

    @property
    def _kept(self) -> bool:
        return bool(self._zone) and not self._zone[-1][1]

    def _is_block(self, token: Token) -> bool:
        return token.name in self._blocks and not (token.name == "title" and self._within["svg"])

    def _flush(self) -> Iterator[Segment]:
        yield from self._inline.split(self._run)
        self._run.clear()

    def _put(self, kind: str, token: Token, written: str = "") -> None:
        if not self._is_block(token):
            one = Inline(kind, token.begin, token.end, "", token.name, self._kept, written)  # type: ignore[arg-type]
            self._run.append(one)

    def _text(self, token: Token) -> None:
        if self._zone and any(self._within[name] for name in SILENT):
            self._put("empty", token)
        else:
            text = unescape(self._raw[token.begin : token.end])
            self._run.append(Inline("text", token.begin, token.end, text, kept=self._kept))

    def _open(self, token: Token) -> Iterator[Segment]:
        found = list(attributes(self._raw, token)) if _WORTH.search(self._raw, token.begin, token.end) else []
        while self._zone and token.name in IMPLIED.get(self._zone[-1][0], ()):
            self._pop()
        if token.kind == "open":
            self._enter(token.name, found)
        values = list(self._values(token, found)) if found and not self._kept else []
        self._put("break" if token.name == "br" else token.kind, token, inner(token.begin, token.end) if values else "")
        yield from values

    def _enter(self, name: str, found: list[Attribute]) -> None:
        wanted = name not in self._never and not self._kept
        for one in found:
            if one.name.lower() == "translate":
                wanted = {"no": False, "yes": True, "": True}.get(one.value.lower(), wanted)
            elif one.name.lower() == "class" and "notranslate" in one.value.split():
                wanted = False
        if self._zone or not wanted:
            self._zone.append((name, wanted))
            self._within[name] += 1

    def _leave(self, name: str) -> None:
        if self._within[name]:
            while self._pop() != name:
                pass
        elif self._zone and name in self._blocks:
            self._zone.clear()
            self._within.clear()

    def _pop(self) -> str:
        name = self._zone.pop()[0]
        self._within[name] -= 1
        return name

    def _values(self, token: Token, found: list[Attribute]) -> Iterator[Segment]:
        """Those values of attributes that people read."""
        by_name = {one.name.lower(): one.value.lower() for one in found}
        for one in found:
            name = one.name.lower()
            if name not in VALUES or not any(map(str.isalpha, one.value)):
                continue
            if token.name not in (VALUES[name] or (token.name,)):
                continue
            if name == "content" and not META & {by_name.get("name", ""), by_name.get("property", "")}:
                continue
            if name == "value" and by_name.get("type", "") not in BUTTONS:
                continue
            wrap = BARE if self._raw[one.begin - 1] in "\"'" else ('"', '"')
            yield Segment(
                one.begin, one.end, one.value, where=self._inline.where(one.begin), escape=escape_value, wrap=wrap
            )
