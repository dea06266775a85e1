"""A document's texts beside their translations, for a person to correct: XLIFF 1.2 or TMX 1.4, without tags.

Every editor of translators reads these two. What a person has corrected, ``regard train --pairs`` learns from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from regard.documents.markup import escape_text, escape_value
from regard.documents.memories.memory import CloseMatch
from regard.documents.segment import Segment
from regard.documents.translate import SegmentAnswer

Close = Callable[[str], CloseMatch | None]
"""From a text to that of a memory which is most like it, if one is."""
BY_MODEL = 'state="needs-review-translation" state-qualifier="leveraged-mt"'
"""A translation that a person must read; as a corpus it counts as translated, so that what is corrected is learned."""
BY_MEMORY = 'state="translated" state-qualifier="exact-match"'
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def write_xliff(
    segments: Sequence[Segment],
    answers: Sequence[SegmentAnswer],
    direction: tuple[str, str],
    close: Close | None = None,
) -> bytes:
    """A unit for each segment that was translated, with its place and the guard's warnings as notes.

    What a memory has of a text that is nearly the same stands beside it as a suggestion (``alt-trans``).
    """
    source, target = map(escape_value, direction)
    file = f'original="document" source-language="{source}" target-language="{target}" datatype="plaintext"'
    found = [f'<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n<file {file}>\n<body>\n']
    for number, segment, answer, text in _translated(segments, answers):
        notes = "".join(f'<note priority="1">{_xml(note)}</note>\n' for note in answer.notes)
        found.append(
            f'<trans-unit id="{number}" xml:space="preserve">\n<source>{_xml(segment.text)}</source>\n'
            f"<target {BY_MEMORY if answer.remembered else BY_MODEL}>{_xml(text)}</target>\n"
            f"<note>{_xml(segment.where)}</note>\n{notes}"
            f"{_suggestion(None if answer.remembered or close is None else close(segment.text))}</trans-unit>\n"
        )
    return _file([*found, "</body>\n</file>\n</xliff>\n"])


def write_tmx(
    segments: Sequence[Segment],
    answers: Sequence[SegmentAnswer],
    direction: tuple[str, str],
    close: Close | None = None,
) -> bytes:
    """The same as a translation memory, without suggestions."""
    source, target = map(escape_value, direction)
    header = f'srclang="{source}" adminlang="en" datatype="plaintext" segtype="paragraph" o-tmf="regard"'
    found = [f'<tmx version="1.4">\n<header {header} creationtool="regard" creationtoolversion="1"/>\n<body>\n']
    for number, segment, answer, text in _translated(segments, answers):
        notes = "".join(f"<note>{_xml(note)}</note>\n" for note in (segment.where, *answer.notes))
        found.append(
            f'<tu tuid="{number}">\n{notes}<tuv xml:lang="{source}"><seg>{_xml(segment.text)}</seg></tuv>\n'
            f'<tuv xml:lang="{target}"><seg>{_xml(text)}</seg></tuv>\n</tu>\n'
        )
    return _file([*found, "</body>\n</tmx>\n"])


WRITERS = {"xliff": write_xliff, "tmx": write_tmx}
"""What writes each kind."""


def _suggestion(match: CloseMatch | None) -> str:
    if match is None:
        return ""
    both = f"<source>{_xml(match.source)}</source><target>{_xml(match.target)}</target>"
    return f'<alt-trans match-quality="{match.score:.0%}">{both}</alt-trans>\n'


def _translated(
    segments: Sequence[Segment], answers: Sequence[SegmentAnswer]
) -> Iterator[tuple[int, Segment, SegmentAnswer, str]]:
    """Segments that have a translation, counted from 1 with those that have none."""
    for number, (segment, answer) in enumerate(zip(segments, answers, strict=True), 1):
        if answer.output:
            yield number, segment, answer, answer.output.text


def _xml(text: str) -> str:
    return escape_text(_NO_XML.sub(" ", text)).replace("\r", "&#13;")


def _file(parts: Sequence[str]) -> bytes:
    return "".join(['<?xml version="1.0" encoding="UTF-8"?>\n', *parts]).encode()
