"""A translation that is easy to check: every word in capitals, tags where they were, placeholders kept."""

from __future__ import annotations

from regard.documents.segment import Document, Segment, SegmentTranslation, unchanged
from regard.text.terms import PROTECTED


def in_capitals(document: Document) -> bytes:
    """A document with all its segments in capitals."""
    return document.write({number: shouted(one) for number, one in enumerate(document.segments)})


def shouted(segment: Segment) -> SegmentTranslation:
    """A segment in capitals, but not what is protected or kept."""
    spans = [found.span() for found in PROTECTED.finditer(segment.text)]
    spans += [(tag.begin, tag.end) for tag in segment.tags if tag.kept]
    kept = {at for begin, end in spans for at in range(begin, end)}
    letters = [
        one if number in kept or len(one.upper()) > 1 else one.upper() for number, one in enumerate(segment.text)
    ]
    return SegmentTranslation("".join(letters), unchanged(segment).places)
