"""Catalogues of gettext: entries without a translation get one, marked as ``fuzzy`` until a person has read it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from regard.documents.encoding import decode
from regard.documents.inline import keep_matches, read_marks, segment_of
from regard.documents.segment import LineNumbers, Place, Segment, SegmentTranslation, TextDocument, unchanged
from regard.system.errors import RegardError

_LINE = re.compile(
    r'[ \t]*+(?:(#.*+)|(?:(domain|msgctxt|msgid_plural|msgid|msgstr(?:\[\d+])?)[ \t]*+)?"((?:[^"\\\n]|\\.)*+)"[ \t]*+|)'
    r"(\r?\n|\Z)"
)
_CHARSET = re.compile(rb'"Content-Type:[^"\n]*charset=([\w.:-]+)', re.IGNORECASE)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)")
_ESCAPES = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', **{character: f"\\{name}" for name, character in _ESCAPES.items()}})
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_FORMAT = re.compile(r"[,\s](?:c|objc|python|php|perl|lua|awk|tcl)-format\b")
"""Flags of texts in which a per cent sign begins a placeholder, or is doubled."""
_DIRECTIVE = re.compile(r"%(?:\(\w+\)|\d+\$)?[-#0+ ]*[\d*]*(?:\.[\d*]+)?[hlLqjzt]{0,2}[a-zA-Z%]|%", re.ASCII)
_GLUED = re.compile(r"(?<!\w)\w+(?:%[-#0+]*\d*(?:\.\d+)?[a-zA-Z])\w*|%[-#0+]*\d*(?:\.\d+)?[a-zA-Z]\w+", re.ASCII)
"""Placeholders that are a part of a word."""
_ONE_FIRST = re.compile(r"plural=\(?\s*n\s*==\s*1\s*\?\s*0")
"""Rules of plurals whose first form is of one alone."""


@dataclass
class _Entry:
    """Of each keyword the place of its quoted strings and their texts; where the flag is put, and what."""

    slots: dict[str, Place] = field(default_factory=dict)
    parts: dict[str, list[str]] = field(default_factory=dict)
    flag: tuple[int, str] = (-1, "")
    fuzzy: bool = False
    formatted: bool = False


@dataclass
class PoDocument(TextDocument):
    """A catalogue; ``partners``: of a segment the one of the same entry, which is written with it."""

    partners: Mapping[int, int] = field(default_factory=dict)

    def splice(self, translations: Mapping[int, SegmentTranslation]) -> str:
        """The text with translations; one of an entry's two texts that has none stays as it is."""
        missing = {self.partners[number] for number in translations if number in self.partners} - translations.keys()
        return super().splice({number: unchanged(self.segments[number]) for number in missing} | {**translations})


def read(data: bytes) -> TextDocument:
    """A catalogue's entries that are neither translated, nor fuzzy, nor obsolete.

    A ``msgid_plural`` is a text of its own, for all forms but the first. Where the first form is of more numbers than
    one and the ``msgid`` has no number to print, the plural is for all.
    """
    charset = _CHARSET.search(data)
    declared = charset[1].decode() if charset and charset[1] != b"CHARSET" else None
    raw, encoding = decode(data, declared)
    found, partners, numbers, rule = list[Segment](), dict[int, int](), LineNumbers(raw), ""
    for entry in _entries(raw, numbers):
        texts = {keyword: "".join(parts) for keyword, parts in entry.parts.items()}
        slots = [keyword for keyword in texts if keyword.startswith("msgstr")]
        if "msgctxt" not in texts and not texts.get("msgid"):
            rule = texts.get("msgstr", rule)
        elif slots and not entry.fuzzy and not any(texts[slot] for slot in slots):
            some = _segments(raw, entry, texts, [entry.slots[slot] for slot in slots], numbers, rule)
            found += some
            if len(some) > 1:
                partners |= {len(found) - 2: len(found) - 1, len(found) - 1: len(found) - 2}
    return PoDocument(raw, found, encoding, partners=partners)


def _entries(raw: str, numbers: LineNumbers) -> Iterator[_Entry]:
    entry, last, at = _Entry(), "", int(raw.startswith("\ufeff"))
    while at < len(raw):
        line = _LINE.match(raw, at)
        if not line:
            raise RegardError("is no line of a PO file; is a quote missing?", numbers.of(at))
        comment, keyword, text = line[1], line[2], line[3]
        if last and (comment or keyword in ("domain", "msgctxt") or (keyword == "msgid" and last != "msgctxt")):
            yield entry
            entry, last = _Entry(), ""
        if comment:
            _note(entry, line)
        elif text is not None:
            last = keyword or last
            if not last or keyword in entry.slots:
                raise RegardError("does not belong to an entry", numbers.of(at))
            if not entry.slots and entry.flag[0] < 0:
                entry.flag = (at, f"#, fuzzy{line[4] or chr(10)}")
            begin, _ = entry.slots.get(last, (line.start(3) - 1, 0))
            entry.slots[last] = (begin, line.end(3) + 1)
            entry.parts.setdefault(last, []).append(_ESCAPE.sub(_plain, text))
        at = line.end()
    yield entry


def _note(entry: _Entry, line: re.Match[str]) -> None:
    comment = line[1]
    if comment.startswith("#,"):
        entry.formatted |= bool(_FORMAT.search(comment))
        entry.fuzzy |= "fuzzy" in re.split(r"[#,\s]+", comment)
        entry.flag = (line.start(1) + 2, " fuzzy,")
    elif comment.startswith("#|") and entry.flag[0] < 0:
        entry.flag = (line.start(), f"#, fuzzy{line[4]}")


def _plain(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPES.get(code, code)


def _segments(
    raw: str, entry: _Entry, texts: dict[str, str], slots: list[Place], numbers: LineNumbers, rule: str
) -> list[Segment]:
    singular, plural = texts.get("msgid", ""), texts.get("msgid_plural", "")
    all_numbers = len(slots) > 2 and not _ONE_FIRST.search(rule) and singular.count("%") < plural.count("%")
    split = 0 if plural and (len(slots) == 1 or all_numbers) else 1
    found, flag = [], entry.flag
    for keyword, some in (("msgid", slots[:split]), ("msgid_plural", slots[split:])):
        if texts.get(keyword) and some:
            pieces = read_marks(texts[keyword])
            pieces = keep_matches(pieces, _GLUED) if entry.formatted else pieces
            quote = partial(_put, raw, flag, some, _DIRECTIVE.findall(texts[keyword]) if entry.formatted else None)
            where = numbers.of(entry.slots[keyword][0])
            found.append(segment_of(pieces, (flag[0], some[-1][1]), where, quote=quote))
            flag = (some[-1][1], "")
    return found


def _put(raw: str, flag: tuple[int, str], slots: Sequence[Place], directives: Sequence[str] | None, text: str) -> str:
    """What stands from the flag to the last slot, with the flag and the text in every slot."""
    text = _without_others(text, directives)
    found, at = [flag[1]], flag[0]
    feed = "\r\n" if "\r\n" in raw[flag[0] : slots[-1][1] + 2] else "\n"
    lines = _LINES.findall(text)
    quoted = feed.join(f'"{line.translate(_ESCAPED)}"' for line in (["", *lines] if len(lines) > 1 else [text]))
    for begin, end in slots:
        found += [raw[at:begin], quoted]
        at = end
    return "".join(found)


def _without_others(text: str, directives: Sequence[str] | None) -> str:
    """A translation without placeholders that its text has not: a program would stop at them."""
    if directives is None:
        return text
    left = Counter(directives)

    def keep(found: re.Match[str]) -> str:
        left[found[0]] -= 1
        return found[0] if left[found[0]] >= 0 else ""

    return re.sub("|".join([*map(re.escape, sorted(left, key=len, reverse=True)), "%"]), keep, text)
