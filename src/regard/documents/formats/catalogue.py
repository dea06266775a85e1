"""Catalogues of strings in JSON and YAML: values are translated, keys and all else stay.

Left are values that people do not read (addresses, paths, colours, identifiers), what describes a message
(``description`` and the like beside a ``message``, keys that begin with ``@``), and messages of ICU in which a plural
or a choice is a part of the sentence; where it is all of it, each of its texts is translated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import yaml

from regard.documents.encoding import decode
from regard.documents.inline import keep_matches, read_marks, segment_of
from regard.documents.segment import Place, Segment, TextDocument
from regard.system.errors import RegardError

DEEPEST = 100
"""Objects and lists within one another."""
MESSAGES = {"message", "defaultMessage", "string"}
"""Keys of a message that others describe."""
DESCRIPTIONS = {"description", "placeholders", "comment", "context", "example", "note", "notes"}
LONGEST_WORD = 200
"""Characters of a value that tell whether it is one word, and whether people read it."""
_STRING = re.compile(r'"((?:[^"\\]++|\\.)*+)"(\s*:)?')
_CODE = re.compile(
    r"^[./#$~\\]|[_\\@=]|://|[A-Za-z0-9]\.[A-Za-z]|[a-z][A-Z]|[A-Za-z]\d|\d[A-Za-z]|/[^/]*/|;base64|^\w+(?:-\w+){2,}$"
)
"""What shows that a word is none for people: a name of a program, a path, an address, a colour, a code."""
_COLOUR = re.compile(r"(?:rgb|hsl)a?\([\d\s,.%/a-z]*\)|var\([\w-]+\)")
_ARGUMENT = re.compile(r"\{\{[^{}]*\}\}|%?\{[^{}]*\}|\$t\([^()]*\)|%\w+%|@:[\w.]+")
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)+")
"""Anchor and tag before a scalar."""
_CHOICE = re.compile(r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal)\s*,\s*(?:offset:\d+\s*)?")
_CASE = re.compile(r"\s*(?:=\d+|\w+)\s*\{")
_NUMBER = re.compile("#")
_PLAIN = re.compile(
    r"[^\s\-?:,\[\]{}#&*!|>'\"%@`.\0-\x1f\x7f-\x9f](?:[^\0-\x1f\x7f-\x9f\u2028\u2029\ufeff:#]|:(?!\s|\Z)|(?<!\s)#)*"
)
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def read_json(data: bytes) -> TextDocument:
    """The values of objects and lists that people read.

    Raises:
        RegardError: it is no JSON.
    """
    raw, encoding = decode(data)
    values = list[tuple[str, str, bool]]()
    try:
        _collect(json.loads(raw.removeprefix("\ufeff"), object_pairs_hook=_Object), "", True, values)
    except json.JSONDecodeError as error:
        raise RegardError(f"line {error.lineno}: is not JSON: {error.msg}") from None
    except (ValueError, RecursionError):
        raise RegardError(f"holds a number with too many digits, or is nested more than {DEEPEST} deep") from None
    places = (found for found in _STRING.finditer(raw) if not found[2])
    found = list[Segment]()
    for (value, where, wanted), place in zip(values, places, strict=True):
        if wanted:
            found += _segments(raw, value, place.span(1), where, _json)
    return TextDocument(raw, found, encoding)


class _Object(list[tuple[str, object]]):
    """An object's keys with their values, as they stand in the file."""


def _collect(value: object, path: str, wanted: bool, found: list[tuple[str, str, bool]], depth: int = 0) -> None:
    """Every string in the order of the file, with its path and whether it is for people."""
    if depth > DEEPEST:
        raise RecursionError
    if isinstance(value, str):
        found.append((value, path, wanted))
    elif isinstance(value, _Object):
        described = not MESSAGES.isdisjoint(name for name, _ in value)
        for name, inner in value:
            own = wanted and not name.startswith("@") and not (described and name in DESCRIPTIONS)
            _collect(inner, f"{path}.{name}".strip(".")[-100:], own, found, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _collect(inner, path, wanted, found, depth + 1)


def read_yaml(data: bytes) -> TextDocument:
    """The values of mappings and lists that are strings, and for people.

    Raises:
        RegardError: it is no YAML.
    """
    raw, encoding = decode(data)
    found, levels = list[Segment](), list[_Level]()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    first = int(not raw.startswith("\ufeff"))  # the mark is no character to the parser, but a line feed is
    try:
        for event in yaml.parse(raw if first else f"\n{raw[1:]}", Loader=loader):
            found += _next(raw, event, levels)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", "")
        raise RegardError(f"line {mark.line + first if mark else 1}: is not YAML: {problem}") from None
    return TextDocument(raw, found, encoding)


@dataclass
class _Level:
    """A mapping or a list that is open; of a mapping the key whose value comes next."""

    mapping: bool
    flow: bool
    wanted: bool
    key: str | None = None


def _next(raw: str, event: yaml.Event, levels: list[_Level]) -> Iterator[Segment]:
    level = levels[-1] if levels else _Level(False, False, True)
    wanted = level.wanted and not (level.mapping and level.key is None)
    if isinstance(event, yaml.CollectionStartEvent):
        if len(levels) >= DEEPEST:
            raise RegardError(f"line {event.start_mark.line + 1}: is nested more than {DEEPEST} deep")
        levels.append(_Level(isinstance(event, yaml.MappingStartEvent), bool(event.flow_style), wanted))
        return
    if isinstance(event, yaml.CollectionEndEvent):
        levels.pop()
    elif isinstance(event, yaml.ScalarEvent):
        if wanted and _is_string(event):
            where = ".".join(one.key for one in levels if one.key)[-100:]
            yield from _scalar(raw, event, where, any(one.flow for one in levels))
    elif not isinstance(event, yaml.AliasEvent):
        return
    if levels and levels[-1].mapping:  # a key or a value has ended
        levels[-1].key = getattr(event, "value", "?") if levels[-1].key is None else None


def _is_string(event: yaml.ScalarEvent) -> bool:
    if event.tag not in (None, "!", "tag:yaml.org,2002:str"):
        return False
    return bool(event.style) or bool(event.tag) or _is_plain(event.value)


def _is_plain(value: str) -> bool:
    """Whether a scalar without quotes is a string."""
    known = yaml.SafeLoader.yaml_implicit_resolvers
    return not any(pattern.match(value) for _, pattern in (*known.get(value[:1], ()), *known.get(None, ())))


def _scalar(raw: str, event: yaml.ScalarEvent, where: str, flow: bool) -> Iterator[Segment]:
    end, value, style = event.end_mark.index, event.value, event.style
    found = _PROPERTIES.match(raw, event.start_mark.index)
    begin = found.end() if found else event.start_mark.index
    if style in ("|", ">"):
        yield from _block(raw, (begin, end), value, style, where)
    elif style:
        escape = _json if style == '"' else _single
        if _CHOICE.search(value):
            yield from _segments(raw, value, (begin + 1, end - 1), where, escape)
        else:
            yield from _segments(raw, value, (begin, end), where, partial(_quoted, style))
    else:
        yield from _segments(raw, value, (begin, end), where, partial(_unquoted, flow))


def _block(raw: str, place: Place, value: str, style: str, where: str) -> Iterator[Segment]:
    """The lines of a block scalar; a folded one with lines that are not folded is left."""
    head = raw.find("\n", *place) + 1
    lines = re.compile(r"[ \t]*(?=\S)").search(raw, head, place[1])
    text = value.rstrip("\n")
    if (
        not head
        or not lines
        or _CONTROL.search(text.replace("\n", ""))
        or text.startswith(("\n", " ", "\t"))
        or (style == ">" and re.search(r"\n[ \t]", text))
    ):
        return
    begin, indent = lines.start(), lines[0]
    end = begin + len(raw[begin : place[1]].rstrip())
    feed = "\r\n" if raw[head - 2 : head] == "\r\n" else "\n"
    if not _CHOICE.search(value):
        quote = partial(_lines, feed, indent, int(style == ">"))
        yield from _segments(raw, text, (begin + len(indent), end), where, quote)


def _segments(raw: str, value: str, place: Place, where: str, quote: Callable[[str], str]) -> Iterator[Segment]:
    """The segment of a value, or those of the cases of a message that is a choice."""
    if _CHOICE.search(value):
        cases = _cases(value, (0, len(value))) if raw[slice(*place)] == value else ()
        for begin, end in cases:
            pieces = keep_matches(keep_matches(read_marks(value[begin:end]), _ARGUMENT), _NUMBER)
            yield segment_of(pieces, (place[0] + begin, place[0] + end), where, quote=partial(_case, quote))
    elif _is_read(value):
        yield segment_of(keep_matches(read_marks(value), _ARGUMENT), place, where, quote=quote)


def _is_read(value: str) -> bool:
    """Whether people read it."""
    words = _ARGUMENT.sub("", value[:LONGEST_WORD])
    if any(one.isspace() for one in words) or "<" in words or not words.isascii():
        return not _COLOUR.fullmatch(words)
    return not _CODE.search(words)


def _cases(text: str, place: Place, depth: int = 0) -> Sequence[Place]:
    """The texts of a message that is one choice; none where it is more, or quotes its braces."""
    choice = _CHOICE.match(text, *place)
    if not choice or "'{" in text or "'}" in text or depth > DEEPEST:
        return []
    found, at = list[Place](), choice.end()
    while case := _CASE.match(text, at, place[1]):
        end = _closing(text, case.end(), place[1])
        if _CHOICE.search(text, case.end(), end):
            found += _cases(text, (case.end(), end), depth + 1)
        elif case.end() < end:
            found.append((case.end(), end))
        at = end + 1
    return found if text[at : place[1]].strip() == "}" else []


def _closing(text: str, at: int, end: int) -> int:
    depth = 1
    for found in re.compile("[{}]").finditer(text, at, end):
        depth += 1 if found[0] == "{" else -1
        if not depth:
            return found.start()
    return end


def _case(quote: Callable[[str], str], text: str) -> str:
    """A text of a choice: an apostrophe before a brace would quote it."""
    return quote(re.sub("'(?=[{}#|])", "''", text))


def _json(text: str) -> str:
    written = json.dumps(text, ensure_ascii=False)[1:-1]
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def _single(text: str) -> str:
    return text.replace("'", "''")


def _quoted(style: str, text: str) -> str:
    return f"'{_single(text)}'" if style == "'" and not _CONTROL.search(text) else f'"{_json(text)}"'


def _unquoted(flow: bool, text: str) -> str:
    """Text without quotes, where it is still the same string."""
    plain = _PLAIN.fullmatch(text) and text == text.strip() and not (flow and re.search(r"[,\[\]{}]", text))
    return text if plain and _is_plain(text) else _quoted('"', text)


def _lines(feed: str, indent: str, more: int, text: str) -> str:
    """Lines of a block; a folded one has a line feed more."""
    text = re.sub(rf"(?!\n){_CONTROL.pattern}", " ", text)
    return re.sub(r"\n+", lambda found: feed * (len(found[0]) + more) + indent, text)
