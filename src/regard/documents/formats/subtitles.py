"""Subtitles: SRT, WebVTT and ASS; a sentence is one text, and its translation is broken where the lines were.

The lines of a cue are joined up to the end of a sentence. A sentence that runs on in the next cues is translated as a
whole too, and shared out between them as it was, so that each is shown when its part is spoken. Lines are broken again
into as many, as long in proportion, rather behind a comma: as people read them, and not where attention would have it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import unescape
from itertools import pairwise, zip_longest

from regard.documents.encoding import decode
from regard.documents.inline import Piece, find_partners, segment_of
from regard.documents.markup import escape_text
from regard.documents.segment import LineNumbers, Place, Segment, TextDocument
from regard.system.errors import RegardError

MOST = 4
"""Cues of one sentence."""
NEAR = 8
"""Blanks before and behind the best place that are looked at for a better one."""
_TIMES = re.compile(r"^[ \t]*\d[\d:.,]*[ \t]*-->[ \t]*\d[^\r\n]*", re.MULTILINE)
_NUMBER = re.compile(r"[ \t]*\d+[ \t]*\r?\n\Z")
_NEW_LINE = re.compile(r"[\r\n]+")
_FEED = re.compile(r"\\[Nn]")
_EVENT = re.compile(r"^(\[[^\]\r\n]*\]|(?:Format|Dialogue):)[^\r\n]*", re.MULTILINE)
_LEFT = re.compile(r"\\p[1-9]|\\[kK][fo]?\d")
"""What makes a line of ASS a drawing, or a song timed by its syllables."""
_MARK = re.compile(r"<(/?)([A-Za-z]\w*)[^<>\r\n]*>|<\d[\d:.]*>|\{\\([ibus])([01])\}|\{[^{}\r\n]*\}")
_DASH = re.compile(r"\s*[-–—‐♪]+\s*(?=[^\s\d])")
_SENTENCE_END = re.compile(r"[.!?…:。！？]['\"”’»)\]]*\Z")
_RUNS_ON = re.compile(r"(?:[^\W_]|,)\Z")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_COMMA = 0.3
"""What a break behind a sign is worth: the share of a line by which it may be longer or shorter for that."""


@dataclass(frozen=True)
class _Line:
    """A line of a cue: its place, its pieces with theirs, what is seen of it, and whether it is the cue's first."""

    place: Place
    pieces: Sequence[tuple[Piece, Place]]
    seen: str
    first: bool = False


def read_srt(data: bytes) -> TextDocument:
    """The texts of SubRip's cues."""
    return _read_cues(*decode(data, usual="cp1252"), str)


def read_vtt(data: bytes) -> TextDocument:
    """The texts of WebVTT's cues."""
    return _read_cues(*decode(data), unescape)


def read_ass(data: bytes) -> TextDocument:
    """The texts of the dialogue of (Advanced) SubStation Alpha.

    Raises:
        RegardError: there are no events.
    """
    raw, encoding = decode(data, usual="cp1252")
    section, fields, numbers, found = "", 10, LineNumbers(raw), list[Segment]()
    if "[events]" not in raw.lower():
        raise RegardError("has no [Events]; it is no SSA or ASS")
    for event in _EVENT.finditer(raw):
        if event[1].startswith("["):
            section = event[1].lower()
        elif section == "[events]" and event[1] == "Format:":
            fields = event[0].count(",") + 1
        elif section == "[events]" and (text := _last_field(event[0], fields)) and not _LEFT.search(text):
            lines = _lines(raw, event.end() - len(text), event.end(), _FEED, _unhard)
            found += _segments(raw, lines, numbers, _hard)
    return TextDocument(raw, found, encoding)


def _read_cues(raw: str, encoding: str, read: Callable[[str], str]) -> TextDocument:
    times, lines = list(_TIMES.finditer(raw)), list[_Line]()
    if not times and raw.strip("\ufeff \r\n") and not raw.startswith(("WEBVTT", "\ufeffWEBVTT")):
        raise RegardError("has no line of times such as 00:00:01,000 --> 00:00:02,000; it has no subtitles")
    for cue, following in zip_longest(times, times[1:]):
        end = following.start() if following else len(raw)
        if read is unescape:  # a block of WebVTT ends with an empty line
            blank = re.compile(r"\r?\n[ \t]*(?=\r?\n|\Z)").search(raw, cue.end(), end)
            end = blank.start() if blank else end
        elif number := _NUMBER.search(raw, max(cue.end(), end - 20), end):
            end = number.start()
        some = _lines(raw, cue.end(), end, _NEW_LINE, read)
        lines += [replace(line, first=not number) for number, line in enumerate(some)]
    escape = escape_text if read is unescape else str
    return TextDocument(raw, list(_segments(raw, lines, LineNumbers(raw), escape)), encoding)


def _last_field(event: str, fields: int) -> str:
    parts = event.split(",", fields - 1)
    return parts[-1] if len(parts) == fields else ""


def _unhard(text: str) -> str:
    return text.replace("\\h", "\u00a0")


def _hard(text: str) -> str:
    return re.sub(r"\{(?=[^{}]*\})", "(", text).replace("\u00a0", "\\h")


def _lines(raw: str, begin: int, end: int, feed: re.Pattern[str], read: Callable[[str], str]) -> Iterator[_Line]:
    """The lines between two places in which something is seen."""
    for found in (*feed.finditer(raw, begin, end), None):
        line = _line(raw, (begin, found.start() if found else end), read)
        if line.seen:
            yield line
        begin = found.end() if found else end


def _line(raw: str, place: Place, read: Callable[[str], str]) -> _Line:
    text = raw[place[0] : place[1]]
    place = (place[1] - len(text.lstrip()), place[0] + len(text.rstrip()))
    pieces, at, seen = list[tuple[Piece, Place]](), place[0], False
    for mark in (*_MARK.finditer(raw, *place), None):
        end = mark.start() if mark else place[1]
        if dash := None if seen else _DASH.match(raw, at, end):
            pieces.append((Piece("empty", dash[0], name="-"), dash.span()))
            at = dash.end()
        stop = at + len(raw[at:end].rstrip(" ♪")) if not mark else end
        pieces += [(Piece("text", text=read(raw[at:stop])), (at, stop))] if at < stop else []
        seen |= at < stop
        pieces += [(_piece(mark), mark.span())] if mark else []
        at = mark.end() if mark else end
    return _Line(place, pieces, "".join(piece.text for piece, _ in pieces).strip())


def _piece(mark: re.Match[str]) -> Piece:
    if mark[2]:
        return Piece("close" if mark[1] else "open", mark[0], name=mark[2].lower())
    if mark[3]:
        return Piece("open" if mark[4] == "1" else "close", mark[0], name=mark[3])
    return Piece("empty", mark[0])


def _segments(
    raw: str, lines: Iterable[_Line], numbers: LineNumbers, escape: Callable[[str], str]
) -> Iterator[Segment]:
    group = list[_Line]()
    for line in lines:
        if group and not _runs_on(group, line):
            yield from _segment(raw, group, numbers, escape)
            group = []
        group.append(line)
    if group:
        yield from _segment(raw, group, numbers, escape)


def _runs_on(group: Sequence[_Line], line: _Line) -> bool:
    """Whether a sentence runs on in the next line; in one of another cue only where both lack marks."""
    before, small = group[-1].seen, line.seen[:1].islower()
    if any(piece.name == "-" for piece, _ in line.pieces) or (_SENTENCE_END.search(before) and not small):
        return False
    if not line.first:
        return True
    plain = all(piece.kind == "text" for one in (*group, line) for piece, _ in one.pieces)
    fits = sum(one.first for one in group) < MOST and bool(_RUNS_ON.search(before))
    return plain and fits and (small or before[-1] == ",")


def _segment(raw: str, lines: Sequence[_Line], numbers: LineNumbers, escape: Callable[[str], str]) -> Iterator[Segment]:
    """The segment of some lines, without the marks around all of it."""
    placed = [one for line in lines for one in (*line.pieces, (Piece("text", text=" "), (0, 0)))][:-1]
    partners = find_partners([piece for piece, _ in placed])
    low, high = 0, len(placed)
    while low < high and (low not in partners or partners[low] == high - 1):
        if low in partners:
            high -= 1
        elif placed[low][0].kind == "text" and placed[low][0].text.strip():
            break
        low += 1
    while low < high and high - 1 not in partners and not placed[high - 1][0].text.strip():
        high -= 1
    if low < high:
        begin, end = placed[low][1][0], placed[high - 1][1][1]
        between = [raw[one.place[1] : other.place[0]] for one, other in pairwise(lines)]
        quote = partial(_break, between, [len(line.seen) for line in lines])
        pieces = (piece for piece, _ in placed[low:high])
        yield segment_of(pieces, (begin, end), numbers.of(begin), escape, quote, blanks=False)


def _break(between: Sequence[str], sizes: Sequence[int], text: str) -> str:
    """A translation in as many lines as there were, with what stood between them.

    Args:
        between: the lines.
        sizes: characters of each line, as they were.
    """
    (gaps, width), total = _gaps(text, len(between)), sum(sizes)
    better = {sign: _COMMA * width / len(sizes) for sign in ",;:.!?…"}
    found, at, first, done = list[str](), 0, 0, 0
    for number, size in enumerate(sizes[:-1]):
        done += size
        if first < len(gaps):
            wanted, most = width * done / total, max(first, len(gaps) - len(between) + number)
            middle = bisect_left(gaps, (wanted, 0, 0), first, most)
            some = gaps[max(first, middle - NEAR) : min(most, middle + NEAR) + 1]
            best = min(some, key=lambda gap: abs(gap[0] - wanted) - better.get(text[gap[1] - 1], 0))
            found.append(text[at : best[1]])
            at, first = best[2], bisect_left(gaps, best) + 1
    parts = [*found, text[at:], *[""] * (len(between) - len(found))]
    rest = [gap + part for gap, part in zip(between, parts[1:], strict=True) if part or "-->" in gap]
    return "".join([parts[0], *rest])


def _gaps(text: str, wanted: int) -> tuple[list[tuple[float, int, int]], int]:
    """Where a text can be broken: what is seen before, first character and end of the blank; and how much is seen."""
    width, at = 0, 0
    found: dict[bool, list[tuple[float, int, int]]] = {True: [], False: []}
    for mark in (*_MARK.finditer(text), None):
        end = mark.start() if mark else len(text)
        for place in range(max(at, 1), end):
            blank = text[place] == " "
            found[blank].append((width + place - at, place, place + blank))
        width, at = width + end - at, mark.end() if mark else end
    blanks = found[True]
    if len(blanks) < wanted and _UNSPACED.search(text):
        return sorted((*blanks, *found[False])), width
    return blanks, width
