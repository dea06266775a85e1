"""XLIFF 1 and 2: what has no target gets one, in the state that says a person must read it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import unescape

from regard.documents.elements import xml_text
from regard.documents.inline import Piece, read_marks, segment_of
from regard.documents.markup import Token, attributes, escape_text, tokens
from regard.documents.segment import LineNumbers, Segment, TextDocument
from regard.system.errors import RegardError

UNITS = {"trans-unit": "1", "segment": "2"}
"""The element of a source and its target, by version."""
PARTS = {"source", "seg-source", "target"}
INHERIT = {"file", "body", "group", "unit", "trans-unit", "segment", "source", "seg-source"}
"""Elements whose ``translate`` and ``xml:space`` count for what is inside."""
CODES = {"bpt", "ept", "it", "ph", "ut"}
"""Inline elements that hold what is no text."""
BEGINS = {"bpt": ("rid", "id"), "bx": ("rid", "id"), "sc": ("id",), "sm": ("id",)}
ENDS = {"ept": ("rid", "id"), "ex": ("rid", "id"), "ec": ("startRef",), "em": ("startRef",)}
"""Elements that begin and end what has no element, with the attributes that name it."""
BY_MODEL = {"state": "needs-review-translation", "state-qualifier": "leveraged-mt"}
"""Attributes of a target that a model wrote; in 2 its segment has the state, ``translated``: nobody reviewed it."""
OPEN_STATES = {"new", "needs-translation", "initial"}
"""States of a copy of the source in the target's place."""


@dataclass
class _Unit:
    """What was found of a unit: its tag, whether it is translated, the last source and the target, with their tags."""

    tag: Token
    wanted: bool
    keep_space: bool = False
    source: list[Token] = field(default_factory=list)
    target: list[Token] = field(default_factory=list)

    @property
    def version(self) -> str:
        """Of XLIFF."""
        return UNITS[_name(self.tag)]


@dataclass(frozen=True)
class _Frame:
    """An element that is open, with what it inherits and hands on."""

    name: str = ""
    translate: bool = True
    keep_space: bool = False

    def within(self, raw: str, token: Token) -> _Frame:
        """That of an element inside."""
        name = _name(token)
        if name not in INHERIT:
            return replace(self, name=name)
        known = _attributes(raw, token)
        translate = known["translate"] != "no" if "translate" in known else self.translate
        space = known["xml:space"] == "preserve" if "xml:space" in known else self.keep_space
        return _Frame(name, translate and known.get("approved") != "yes", space)


def read(data: bytes) -> TextDocument:
    """A file's sources that have no target, or a copy of the source that is said to be untranslated.

    Left as they are: ``translate="no"``, ``approved="yes"``, suggestions, notes, and text inside of codes (``sub``).

    Raises:
        RegardError: it is no XML, or no XLIFF.
    """
    raw, encoding = xml_text(data)
    numbers, found = LineNumbers(raw), list[Segment]()
    for unit in _units(raw):
        if unit.wanted and unit.source and (one := _segment(raw, unit, numbers)):
            found.append(one)
    return TextDocument(raw, found, encoding)


def _units(raw: str) -> Iterator[_Unit]:
    path, unit, part, depth = [_Frame()], None, list[Token](), 0  # depth of the part that is open, or 0
    for token in tokens(raw):
        if token.kind in ("open", "empty"):
            frame, parent = path[-1].within(raw, token), path[-1].name
            if len(path) == 1 and frame.name != "xliff":
                raise RegardError(f"begins with <{frame.name[:30]}>; it is no XLIFF")
            if frame.name in UNITS:
                unit = _Unit(token, frame.translate)
            elif unit and not depth and parent in UNITS and frame.name in PARTS:
                part, depth = (unit.target if frame.name == "target" else unit.source), len(path)
                part.clear()
                unit.keep_space |= frame.name != "target" and frame.keep_space
            path += [frame] if token.kind == "open" else []
        elif token.kind == "close":
            path.pop()
        if depth:
            part.append(token)
            depth = depth if len(path) > depth else 0
        elif token.kind == "close" and unit and _name(token) in UNITS:
            yield unit
            unit = None


def _segment(raw: str, unit: _Unit, numbers: LineNumbers) -> Segment | None:
    source, target = unit.source, unit.target
    inner, stated = _inner(raw, source), _inner(raw, target)
    state = _attributes(raw, target[0] if unit.version == "1" and target else unit.tag).get("state", "")
    pieces = [*_pieces(raw, source[1:-1])]
    if any(piece.name == "not translated" for piece in pieces) or not any(piece.text.strip() for piece in pieces):
        return None
    if stated.strip() and not (stated == inner and state in OPEN_STATES):
        return None
    begin = unit.tag.begin if unit.version == "2" else target[0].begin if target else source[-1].end
    end, where = target[-1].end if target else source[-1].end, numbers.of(source[0].begin)
    return segment_of(pieces, (begin, end), where, escape_text, partial(_put, raw, unit), unit.keep_space)


def _put(raw: str, unit: _Unit, text: str) -> str:
    """The raw text of a unit from its beginning (2), or from its target (1), to the end of its target."""
    source, target, inner = unit.source, unit.target, _inner(raw, unit.source)
    values = {key: value for key, value in _attributes(raw, source[0]).items() if key == "xml:space"}
    values |= BY_MODEL if unit.version == "1" else {}
    name = target[0].name if target else source[0].name.removesuffix("source").removesuffix("seg-") + "target"
    tag = _with(raw[target[0].begin : target[0].end] if target else f"<{name}>", values)
    before, after = (inner[: len(inner) - len(inner.lstrip())], inner[len(inner.rstrip()) :])
    done = f"{tag.removesuffix('>').removesuffix('/').rstrip()}>{before}{text.strip()}{after}</{name}>"
    above = raw[max(0, source[0].begin - 200) : source[0].begin]
    gap = raw[source[-1].end : target[0].begin] if target else above[len(above.rstrip()) :]
    if unit.version == "1":
        return done if target else gap + done
    begin = _with(raw[unit.tag.begin : unit.tag.end], {"state": "translated"})
    return begin + raw[unit.tag.end : source[-1].end] + gap + done


def _inner(raw: str, part: Sequence[Token]) -> str:
    return raw[part[0].end : part[-1].begin] if len(part) > 1 else ""


def _with(tag: str, values: dict[str, str]) -> str:
    """A tag with some attributes set."""
    for name, value in values.items():
        written = f' {name}="{value}"'
        changed, count = re.subn(rf"""\s{name}\s*=\s*(?:"[^"]*"|'[^']*')""", written, tag, count=1)
        tag = changed if count else re.sub(r"\s*(/?>)\Z", rf"{written}\1", tag)
    return tag


def _pieces(raw: str, inside: Sequence[Token]) -> Iterator[Piece]:
    held, depth = None, 0
    for token in inside:
        name, written = _name(token), raw[token.begin : token.end]
        if held:  # inside of an element that is written as it is
            depth += (token.kind == "open") - (token.kind == "close")
            if not depth:
                yield _held(raw, held, token)
                held = None
        elif token.kind == "text":
            for piece in read_marks(unescape(written)):  # tags of HTML may stand as text
                yield replace(piece, raw=escape_text(piece.raw))
        elif token.kind == "other":
            if written.startswith("<![CDATA["):
                yield Piece("text", text=written[9:-3])
        elif token.kind == "close":
            yield Piece("close", written, name="pair")
        elif token.kind == "open" and (name in CODES or _is_kept(raw, token)):
            held, depth = token, 1
        elif token.kind == "open":
            yield Piece("open", written, name="pair")
        else:
            yield _code(raw, token, written)


def _held(raw: str, first: Token, last: Token) -> Piece:
    """An element that is written as it is: a code, or what is not translated."""
    written = raw[first.begin : last.end]
    if _name(first) in CODES:
        return _code(raw, first, written)
    return Piece("keep", written, unescape(re.sub(r"<[^>]*>", "", written)))


def _code(raw: str, token: Token, written: str) -> Piece:
    name, known = _name(token), _attributes(raw, token)
    if name == "sm" and "translate" in known:
        return Piece("empty", written, name="not translated")
    for kind, names in (("open", BEGINS.get(name)), ("close", ENDS.get(name))):
        if names:
            key = next((known[one] for one in names if one in known), "")
            return Piece("open" if kind == "open" else "close", written, name=f"code {key}")
    return Piece("empty", written)


def _is_kept(raw: str, token: Token) -> bool:
    known = _attributes(raw, token)
    return known.get("translate") == "no" or known.get("mtype") == "protected"


def _attributes(raw: str, token: Token) -> dict[str, str]:
    return {one.name: one.value for one in attributes(raw, token)}


def _name(token: Token) -> str:
    return token.name.rpartition(":")[2]
