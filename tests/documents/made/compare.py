"""What a document has, read by lxml: every character with its format, every element; to compare two versions."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO

from lxml import etree

from regard.documents.segment import Document, Segment, SegmentTranslation

Event = tuple[object, ...]
RUNS = frozenset(("{w}r", "{a}r", "{x}r"))
TEXTS = frozenset(("{w}t", "{a}t", "{x}t"))
FORMATS = frozenset(("{w}rPr", "{a}rPr", "{x}rPr"))
LEFT_OUT = frozenset(("{w}proofErr", "{w}lastRenderedPageBreak", "{text}soft-page-break"))
CHARACTERS = {"{w}br": "\n", "{w}cr": "\n", "{w}tab": "\t", "{w}noBreakHyphen": "\u2011"}
CHARACTERS |= {"{text}line-break": "\n", "{text}tab": "\t"}
SPACES = {"wordprocessingml/2006/main": "w", "drawingml/2006/main": "a", "spreadsheetml/2006/main": "x"}


def capital(text: str) -> str:
    """Text in capitals, of the same length."""
    return "".join(one.upper() if len(one.upper()) == 1 else one for one in text)


def capitals(segments: Sequence[Segment]) -> dict[int, SegmentTranslation]:
    """Translations in capitals, all tags where they were."""
    return {
        number: SegmentTranslation(capital(one.text), tuple((tag.begin, tag.end) for tag in one.tags))
        for number, one in enumerate(segments)
    }


def members(data: bytes) -> dict[str, tuple[Event, bytes]]:
    """The members of an archive, with all but their bytes."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        assert archive.testzip() is None
        kept = "date_time compress_type external_attr internal_attr comment create_system".split()
        ones = archive.infolist()
        return {one.filename: (tuple(getattr(one, name) for name in kept), archive.read(one)) for one in ones}


def assert_only_text_differs(read: Callable[[bytes], Document], data: bytes) -> bytes:
    """A document in capitals: the same members, elements and formats; and with nothing translated the same bytes."""
    document = read(data)
    assert document.write({}) is data
    made = document.write(capitals(document.segments))
    before, after = members(data), members(made)
    assert list(before) == list(after)
    touched = {one.where.split(",")[0] for one in document.segments}
    for name, (what, content) in before.items():
        assert what == after[name][0]
        if name not in touched:
            assert content == after[name][1]
            continue
        old, new = (list(events(etree.fromstring(one))) for one in (content, after[name][1]))
        assert old != new
        assert [shouted(one) for one in old] == [shouted(one) for one in new]
    assert [one.text for one in read(made).segments] == list(map(expected, document.segments))
    return made


def expected(segment: Segment) -> str:
    """The text of a segment in capitals, but for what is kept."""
    text = capital(segment.text)
    for tag in segment.tags:
        if tag.kept:
            text = f"{text[: tag.begin]}{segment.text[tag.begin : tag.end]}{text[tag.end :]}"
    return text


def shouted(event: Event) -> Event:
    """An event with its character in capitals."""
    return (event[0], capital(str(event[1])), *event[2:]) if event[0] in ("character", "title") else event


def name_of(element: etree._Element) -> str:
    """A tag with a short name of its namespace."""
    space, _, local = str(element.tag).rpartition("}")
    short = next((short for end, short in SPACES.items() if space.endswith(end)), space)
    found = re.fullmatch(r"\{urn:oasis:names:tc:opendocument:xmlns:(\w+):1\.0", space)
    return f"{{{found[1] if found else short.removeprefix('{')}}}{local}"


def events(element: etree._Element, around: Event = ()) -> Iterator[Event]:
    """Elements and characters; runs are not told apart, but by their formats."""
    last = [" "]
    yield from _events(element, around, last)


def _events(element: etree._Element, around: Event, last: list[str]) -> Iterator[Event]:
    if not isinstance(element.tag, str):
        return
    name = name_of(element)
    if name in ("{text}p", "{text}h"):
        last[0] = " "
    if name in LEFT_OUT or name in FORMATS:
        return
    if name in TEXTS:
        keeps = "preserve" in str(element.attrib) or name != "{w}t"
        text = element.text or ""
        yield from (("character", one, around) for one in (text if keeps else text.strip()))
    elif name in CHARACTERS and not element.attrib:
        last[0] = ""
        yield "character", CHARACTERS[name], around
    elif name == "{text}s":
        count = int(next((value for key, value in element.attrib.items() if str(key).endswith("}c")), "1"))
        last[0] = ""
        yield from [("character", " ", around)] * count
    elif name in RUNS:
        formats = [_format(one) for one in element if isinstance(one.tag, str) and name_of(one) in FORMATS]
        for one in element:
            yield from _events(one, tuple(filter(None, formats)), last)
    elif name == "{text}span":
        style = str(next(iter(element.attrib.values()), ""))
        yield from _mixed(element, around if re.fullmatch(r"M*L\d", style) else (*around, style), last)
    else:
        attributes = sorted((str(k), str(v)) for k, v in element.attrib.items() if "rsid" not in str(k))
        yield "begin", name, tuple(attributes), around if name.startswith("{w}") else ()
        inside = name.startswith("{text}")
        yield from (
            _mixed(element, around, last)
            if inside
            else (event for one in element for event in _events(one, around, last))
        )
        if not name.endswith(("-start", "-end", "}p", "}h", "}a")):
            last[0] = ""
        if not len(element) and not inside and element.text:
            yield "title" if "dc/elements" in name else "text", element.text
        yield "end", name


def _mixed(element: etree._Element, around: Event, last: list[str]) -> Iterator[Event]:
    yield from _text(element.text, around, last)
    for one in element:
        yield from _events(one, around, last)
        yield from _text(one.tail, around, last)


def _text(text: str | None, around: Event, last: list[str]) -> Iterator[Event]:
    for one in re.sub(r"[ \t\r\n]+", " ", text or ""):
        if one != " " or last[0] != " ":
            yield "character", one, around
        last[0] = one


def _format(element: etree._Element) -> str:
    """A format without what makes none."""
    text = etree.tostring(element, method="c14n", exclusive=True).decode()
    text = re.sub(
        r'<w:(?:lang|noProof)[^>]*></w:(?:lang|noProof)>| (?:lang|dirty)="[^"]*"| xmlns:\w+="[^"]*"', "", text
    )
    return "" if re.fullmatch(r"<(?:\w+:)?rPr(?: xmlns=\"[^\"]*\")?></(?:\w+:)?rPr>", text) else text
