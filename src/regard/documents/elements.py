"""Elements of XML at their places in the text, without recursion; named by their namespace, whatever the prefix."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape

from regard.documents.encoding import decode
from regard.documents.markup import Token, attributes, refuse_bad_xml, tokens

SPACES = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
    "http://schemas.openxmlformats.org/drawingml/2006/main": "a",
    "http://purl.oclc.org/ooxml/drawingml/main": "a",
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main": "x",
    "http://purl.oclc.org/ooxml/spreadsheetml/main": "x",
    "http://purl.org/dc/elements/1.1/": "dc",
}
_OPENDOCUMENT = re.compile(r"urn:oasis:names:tc:opendocument:xmlns:(\w+):1\.0")
_ENCODING = re.compile(rb"""<\?xml[^>]{1,100}?encoding\s*=\s*["']([\w.:-]{1,40})""")
_NAME = re.compile(r"<([^\s/>]+)")
_LINE = re.compile(r"\r\n?")


@dataclass(slots=True)
class Element:
    """An element, or text between elements.

    Args:
        name: with the usual prefix of its namespace, ``w:p``; text is ``#text``, a comment ``#other``.
        begin, end: its characters.
        inside, outside: what is between its tags.
        children: all that is in it.
    """

    name: str
    begin: int
    inside: int
    outside: int
    end: int
    children: list[Element] = field(default_factory=list)


def xml_text(data: bytes) -> tuple[str, str]:
    """A member's text, well-formed and without entities of its own, and its encoding."""
    refuse_bad_xml(data)
    found = _ENCODING.match(data.removeprefix(b"\xef\xbb\xbf"))
    return decode(data, found[1].decode() if found else None)


def elements(raw: str, names: Container[str]) -> Iterator[Element]:
    """The outermost elements of some names, with all that is in them."""
    scopes, stack = [dict[str, str]()], list[Element]()
    for token in tokens(raw):
        if token.kind in ("open", "empty"):
            scope = _scope(raw, token, scopes[-1])
            prefix, _, local = token.name.rpartition(":")
            one = Element(f"{scope.get(prefix, '?')}:{local}", token.begin, token.end, token.end, token.end)
            if stack:
                stack[-1].children.append(one)
            if token.kind == "open":
                scopes.append(scope)
                if stack or one.name in names:
                    stack.append(one)
            elif not stack and one.name in names:
                yield one
        elif token.kind == "close":
            scopes.pop()
            if stack:
                one = stack.pop()
                one.outside, one.end = token.begin, token.end
                if not stack:
                    yield one
        elif stack:
            text = token.kind == "text" or raw.startswith("<![CDATA[", token.begin)
            span = token.begin, token.begin, token.end, token.end
            stack[-1].children.append(Element("#text" if text else "#other", *span))


def outermost(given: Sequence[Element], names: Container[str]) -> list[Element]:
    """The outermost elements of some names among some and all that is in them, in their order."""
    found, waiting = list[Element](), list(reversed(given))
    while waiting:
        one = waiting.pop()
        if one.name in names:
            found.append(one)
        else:
            waiting += reversed(one.children)
    return found


def child(element: Element | None, name: str) -> Element | None:
    """The first child of a name."""
    return next((one for one in element.children if one.name == name), None) if element else None


def text_of(raw: str, element: Element) -> str:
    """The text of an element, without what other elements in it have."""
    if element.name == "#text":
        text = _LINE.sub("\n", raw[element.begin : element.end])
        return text[9:-3] if text.startswith("<![CDATA[") else unescape(text)
    return "".join(text_of(raw, one) for one in element.children if one.name == "#text")


def raw_name(raw: str, element: Element) -> str:
    """The name of an element as it is written."""
    found = _NAME.match(raw, element.begin)
    return found[1] if found else ""


def values(raw: str, element: Element) -> dict[str, str]:
    """The attributes of an element, by their names without prefix; the first of a name."""
    token = Token("open", element.begin, element.inside, raw_name(raw, element))
    found = dict[str, str]()
    for one in attributes(raw, token):
        found.setdefault(one.name.rpartition(":")[2], one.value)
    return found


def _scope(raw: str, token: Token, around: dict[str, str]) -> dict[str, str]:
    """What the prefixes within an element stand for."""
    if raw.find("xmlns", token.begin, token.end) < 0:
        return around
    found = dict(around)
    for one in attributes(raw, token):
        space, _, prefix = one.name.partition(":")
        if space == "xmlns":
            known = _OPENDOCUMENT.fullmatch(one.value)
            found[prefix] = known[1] if known else SPACES.get(one.value, "?")
    return found
