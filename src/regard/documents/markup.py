"""Tokens of HTML and XML at their places in the text: linear, and nothing of the text is lost or changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Literal, NoReturn
from xml.parsers import expat

from regard.system.errors import RegardError

Kind = Literal["text", "raw", "open", "close", "empty", "other"]
DEEPEST = 1000
"""Elements within one another."""
MOST = 2_000_000
"""Elements of a document."""
RAW = frozenset("script style xmp iframe noembed noframes plaintext textarea title".split())
"""Elements of HTML in which a ``<`` is text."""
ESCAPED = frozenset(("textarea", "title"))
"""Those of them whose text has entities."""
VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
"""Elements of HTML without an end."""
_TAG = re.compile(r"""<(/?)([A-Za-z_:][^\s/>]*+)(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+)*+>""")
_OTHER = re.compile(
    r"""<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<!(?!--|\[CDATA\[)
    (?:[^<>"'\[]++|"[^"]*+"|'[^']*+'|\[(?:[^\]"'<]++|"[^"]*+"|'[^']*+'|<!--.*?-->|<)*+\])*+>""",
    re.DOTALL | re.VERBOSE,
)
_HTML_OTHER = re.compile(r"<!--(?:-?>|.*?--!?>)|<!\[CDATA\[.*?\]\]>|<[!?](?!--|\[CDATA\[)[^>]*>", re.DOTALL)
_XML_TAG = re.compile(_TAG.pattern.replace("[A-Za-z_:]", r"[^\s/>!?]"))
_OPENING = re.compile(r"<(?=[A-Za-z_:!?]|/[A-Za-z_:])")
_XML_OPENING = re.compile("<")
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?""")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of markup.

    Args:
        kind: ``text`` has entities, ``raw`` none; ``empty`` is an element that ends at once; ``other`` a comment, a
            declaration, an instruction, or a part of characters (``CDATA``).
        begin, end: its characters.
        name: of an element, in HTML in small letters.
    """

    kind: Kind
    begin: int
    end: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a tag: its name, the characters of its value, between the quotes, and the value itself."""

    name: str
    begin: int
    end: int
    value: str


def tokens(text: str, html: bool = False) -> Iterator[Token]:
    """The whole text, token by token; what never ends in HTML ends with it, as in a browser.

    Raises:
        RegardError: a tag, a comment or a part of XML never ends; with its line.
    """
    at, openings = 0, _OPENING if html else _XML_OPENING
    while at < len(text):
        opening = openings.search(text, at)
        begin = opening.start() if opening else len(text)
        if begin > at:
            yield Token("text", at, begin)
        if not opening:
            return
        token = (_html_token if html else _xml_token)(text, begin)
        yield token
        at = token.end
        if html and token.kind == "open" and token.name in RAW:
            closing = re.compile(rf"</{token.name}(?=[\s/>])", re.IGNORECASE).search(text, at)
            stop = closing.start() if closing else len(text)
            if stop > at:
                yield Token("text" if token.name in ESCAPED else "raw", at, stop)
            at = stop


def attributes(text: str, tag: Token) -> Iterator[Attribute]:
    """The attributes of a tag that have a value."""
    for found in _ATTRIBUTE.finditer(text, tag.begin + 1 + len(tag.name), tag.end - 1):
        if (group := next((n for n in (2, 3, 4) if found[n] is not None), 0)) > 0:
            yield Attribute(found[1], *found.span(group), unescape(found[group]))


def refuse_bad_xml(data: bytes) -> None:
    """Refuse what is no well-formed XML, declares entities (they may be bombs, or other files), or is very deep.

    Raises:
        RegardError: it is; with the line.
    """
    parser, depth, count = expat.ParserCreate(), 0, 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, count
        depth, count = depth + 1, count + 1
        if count > MOST:
            raise RegardError(f"line {parser.CurrentLineNumber}: has more than {MOST:,} elements")
        if depth > DEEPEST:
            raise RegardError(f"line {parser.CurrentLineNumber}: elements are nested more than {DEEPEST} deep")

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse(name: str, *rest: object) -> NoReturn:
        raise RegardError(f"line {parser.CurrentLineNumber}: declares the entity {name[:30]!r}, which is not read")

    parser.StartElementHandler, parser.EndElementHandler, parser.EntityDeclHandler = start, end, refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise RegardError(f"line {error.lineno}: is not XML, or is cut off: {expat.ErrorString(error.code)}") from None
    except (LookupError, ValueError):
        raise RegardError("its encoding is not known, or its text is not in it") from None


def escape_text(text: str) -> str:
    """Text between tags."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_value(text: str) -> str:
    """Text between the quotes of an attribute."""
    return escape_text(text).replace('"', "&quot;").replace("'", "&#39;")


def _xml_token(text: str, begin: int) -> Token:
    other = text[begin + 1 : begin + 2] in ("!", "?")
    found = (_OTHER if other else _XML_TAG).match(text, begin)
    if found is None:
        line = text.count("\n", 0, begin) + 1
        raise RegardError(f"line {line}: what begins with {text[begin : begin + 20]!r} never ends")
    if other:
        return Token("other", begin, found.end())
    kind: Kind = "close" if found[1] else "empty" if text[found.end() - 2] == "/" else "open"
    return Token(kind, begin, found.end(), found[2])


def _html_token(text: str, begin: int) -> Token:
    found = (_HTML_OTHER if text[begin + 1] in "!?" else _TAG).match(text, begin)
    if found is None or text[begin + 1] in "!?":
        return Token("other", begin, found.end() if found else len(text))
    name = found[2].lower()
    kind: Kind = "close" if found[1] else "empty" if text[found.end() - 2] == "/" or name in VOID else "open"
    return Token(kind, begin, found.end(), name)
