"""Plain text: paragraphs between empty lines; the lines of one are joined to one text."""

from __future__ import annotations

import re

from regard.documents.encoding import decode
from regard.documents.segment import LineNumbers, SegmentBuilder, TextDocument

_PARAGRAPH = re.compile(r"[^\s](?:[^\n]++|\n(?![ \t\r]*(?:\n|\Z)))*+")


def read(data: bytes) -> TextDocument:
    """A text's paragraphs."""
    raw, encoding = decode(data)
    segments, lines = [], LineNumbers(raw)
    for found in _PARAGRAPH.finditer(raw, raw.startswith("\ufeff")):
        one = SegmentBuilder(found.start())
        one.add(text := found[0].rstrip())
        segments.append(one.segment(found.start() + len(text), lines.of(found.start())))
    return TextDocument(raw, segments, encoding)
