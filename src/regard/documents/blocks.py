"""The text and the tags between two block boundaries as segments, each with well-formed tags."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from regard.documents.segment import LineNumbers, Segment, SegmentBuilder

DEEPEST_PAIRS = 100
"""Pairs within one another in a segment."""
LINKS = frozenset(("a", "button"))
"""Where nothing else has letters, each of them is a segment: the entries of a menu are no sentence."""
BLANKS = " \t\r\n\f"


class Inline(NamedTuple):
    """A piece of text or one tag.

    Args:
        kind: ``break`` is a line break: within a sentence, if a small letter follows; ``cut`` belongs to no segment.
        begin, end: its characters in the raw document.
        text: without escapes.
        name: of a tag.
        kept: the text, or what the tag encloses, is not translated.
        written: how a translated segment writes a tag, if not as it stands.
    """

    kind: Literal["text", "open", "close", "empty", "break", "cut"]
    begin: int
    end: int
    text: str = ""
    name: str = ""
    kept: bool = False
    written: str = ""


def keep(begin: int, end: int, text: str) -> tuple[Inline, ...]:
    """A text that is not translated, in a pair without characters of its own."""
    return (
        Inline("open", begin, begin, name="kept", kept=True),
        Inline("text", begin, end, text, kept=True),
        Inline("close", end, end, name="kept", kept=True),
    )


class BlockSegments:
    """Makes segments of one document.

    Args:
        raw: the document.
        escape: writes text as the document does.
        trim: leaves tags at the beginning and at the end of a segment out of it, as well as what encloses all of it.
        blanks: keeps white space within a segment as it is; else any of it is one space.

    Attributes:
        where: the line of a character, for messages.
    """

    def __init__(self, raw: str, escape: Callable[[str], str], trim: bool, blanks: bool = False) -> None:
        self._raw, self._escape, self._trims, self._blanks = raw, escape, trim, blanks
        self.where = LineNumbers(raw).of
        self._doubled, self._near = (" ", 1) if blanks else (BLANKS, 20)

    def split(self, inlines: Sequence[Inline]) -> Iterator[Segment]:
        """The segments of what stands between two block boundaries; tags that have no partner there end them."""
        if any(one.kind == "text" and not one.kept and _letters(one.text) for one in inlines):
            run = _Run(_without_breaks(inlines))
            begin = 0
            for cut in (*(n for n, partner in enumerate(run.partners) if partner < 0), len(run.inlines)):
                yield from self._between(run, begin, cut)
                begin = cut + 1

    def _between(self, run: _Run, begin: int, end: int) -> Iterator[Segment]:
        if self._trims:
            begin, end = run.trimmed(begin, end)
        if not run.letters(begin, end):
            return
        links = run.links(begin, end) if self._trims else []
        for first, last in links or [(begin, end)]:
            if links:
                first, last = run.trimmed(first, last)
            if run.letters(first, last):
                yield self._build(run, first, last)

    def _build(self, run: _Run, begin: int, end: int) -> Segment:
        first, last = run.inlines[begin], run.inlines[end - 1]
        start, stop = first.begin, last.end
        if first.kind == "text":
            start = first.end - len(self._raw[start : first.end].lstrip(BLANKS))
        if last.kind == "text":
            stop = max(start, last.begin + len(self._raw[last.begin : last.end].rstrip(BLANKS)))
        builder, at, blank, swallows = SegmentBuilder(start, self._blanks), begin, not self._blanks, False
        while at < end:
            one, beyond = run.inlines[at], run.beyond(at)
            raw, text = "".join(map(self._written, run.inlines[at:beyond])), run.text(at, beyond)
            if one.kind == "text":
                text = text.lstrip(BLANKS) if at == begin else text[swallows:]
                swallows = False
                builder.add(text.rstrip(BLANKS) if at == end - 1 else text)
            elif one.kind == "close":
                builder.close(raw)
            elif beyond > at + 1 and (text.strip(BLANKS) or (text and self._blanks)):
                builder.keep(raw, text.strip(BLANKS) or text)
            elif one.kind == "empty" or beyond > at + 1:
                follows = blank and run.blank_follows(beyond, min(end, beyond + self._near), self._doubled)
                builder.empty(raw + " " * follows)
                builder.add(text)
                swallows = self._blanks and follows
            else:
                builder.open(raw)
            at, blank = beyond, text[-1:] in BLANKS if text else blank
        return builder.segment(stop, self.where(start), self._escape)

    def _written(self, one: Inline) -> str:
        return one.written or self._raw[one.begin : one.end]


class _Run:
    """The pieces between two block boundaries.

    Attributes:
        partners: for each its own number, of a tag of a pair that of the other; -1: it belongs to no segment.
    """

    def __init__(self, inlines: list[Inline]) -> None:
        self.inlines, self.partners = inlines, _partners(inlines)
        words = (one.kind == "text" and _letters(one.text) and not one.kept for one in inlines)
        self._letters = list(accumulate(words, initial=0))
        self._filled = list(accumulate((one.kind == "text" and bool(one.text) for one in inlines), initial=0))

    def letters(self, begin: int, end: int) -> bool:
        """Whether there are letters to translate."""
        return begin < end and self._letters[end] > self._letters[begin]

    def text(self, begin: int, end: int) -> str:
        """The text of some pieces."""
        return "".join(one.text for one in self.inlines[begin:end])

    def blank_follows(self, at: int, end: int, blanks: str) -> bool:
        """Whether the next text begins with a blank, which one before the element would swallow."""
        near = (self.inlines[n].text for n in range(at, end))
        return next((text[0] in blanks for text in near if text), False)

    def beyond(self, at: int) -> int:
        """What follows a piece, or the pair that it opens where that is one: kept, or without text."""
        one, partner = self.inlines[at], self.partners[at]
        whole = one.kind == "open" and (one.kept or self._filled[partner] == self._filled[at])
        return partner + 1 if whole else at + 1

    def trimmed(self, begin: int, end: int) -> tuple[int, int]:
        """Without blanks and tags at either side, and without pairs that enclose all."""
        while begin < end:
            first, last = self.partners[begin], self.partners[end - 1]
            if not self._worth(begin, first):
                begin = max(first, begin) + 1
            elif not self._worth(end - 1, last):
                end = min(last, end - 1)
            elif first == end - 1 > begin and not self.inlines[begin].kept:
                begin, end = begin + 1, end - 1
            else:
                break
        return begin, end

    def _worth(self, at: int, partner: int) -> bool:
        return any(self.inlines[n].text.strip(BLANKS) for n in range(min(at, partner), max(at, partner) + 1))

    def links(self, begin: int, end: int) -> list[tuple[int, int]]:
        """The links and buttons, if no letter stands outside of them and there are two at least."""
        found = []
        while begin < end:
            one, beyond = self.inlines[begin], max(self.partners[begin], begin) + 1
            if self.letters(begin, beyond):
                if one.name not in LINKS or one.kept:
                    return []
                found.append((begin, beyond))
            begin = beyond
        return found if len(found) > 1 else []


def _partners(inlines: Sequence[Inline]) -> list[int]:
    found, opened, kept = list(range(len(inlines))), list[int](), 0

    def cut(*numbers: int) -> int:
        for number in (*opened, *numbers):
            found[number] = -1
        opened.clear()
        return 0

    for number, one in enumerate(inlines):
        if one.kind == "open" and len(opened) < DEEPEST_PAIRS:
            opened.append(number)
            kept += one.kept
        elif one.kind == "close" and opened and inlines[opened[-1]].name == one.name:
            found[number] = opened.pop()
            found[found[number]] = number
            kept -= inlines[found[number]].kept
        elif one.kind in ("open", "close", "cut") or (one.kept and one.text and not kept):
            kept = cut(number)
    cut()
    return found


def _without_breaks(inlines: Sequence[Inline]) -> list[Inline]:
    """Line breaks as elements without text where a small letter follows, else as boundaries."""
    found, following = list[Inline](), ""
    for one in reversed(inlines):
        if one.kind == "break":
            one = one._replace(kind="empty", text=" ") if following.islower() else one._replace(kind="cut")
            following = ""
        elif one.kind == "text":
            following = one.text.lstrip(BLANKS)[:1] or following
        found.append(one)
    return found[::-1]


def _letters(text: str) -> bool:
    return any(map(str.isalpha, text))
