"""What a person corrects is read again as pairs."""

from pathlib import Path

import pytest
from lxml import etree

from regard.data.corpora.memories import MEMORIES
from regard.documents.memories.bilingual import WRITERS
from regard.documents.segment import Segment, SegmentTranslation
from regard.documents.translate import SegmentAnswer
from regard.text.lines import InvalidLines

SEGMENTS = [
    Segment(0, 1, text, where=f"line {number}") for number, text in enumerate(["a <b>\n&", "17", "c\x0bd", "e"])
]
ANSWERS = [
    SegmentAnswer(SegmentTranslation("A > B & C")),
    SegmentAnswer(),
    SegmentAnswer(SegmentTranslation('"D"'), notes=("the model is <unsure>",)),
    SegmentAnswer(SegmentTranslation("E"), remembered=True),
]


@pytest.mark.parametrize(("kind", "ending"), [("xliff", ".xlf"), ("tmx", ".tmx")])
def test_what_is_written_is_read_as_pairs(kind: str, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{ending}"
    path.write_bytes(WRITERS[kind](SEGMENTS, ANSWERS, ("en", "pt-BR")))
    corpus = MEMORIES[ending](path)
    pairs = [pair.sides() for _, pair in corpus.records(InvalidLines())]
    assert pairs == [("a <b> &", "A > B & C"), ("c d", '"D"'), ("e", "E")]
    assert corpus.found == ("en", "pt-br")
    notes = [one.text for one in etree.parse(str(path)).iter("{*}note")]
    assert notes == ["line 0", "line 2", "the model is <unsure>", "line 3"]


def test_nothing_translated_is_still_a_file() -> None:
    for write in WRITERS.values():
        assert len(etree.fromstring(write(SEGMENTS, [SegmentAnswer()] * 4, ("en", "und"))))
