import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from regard.documents.formats.text import read
from regard.documents.segment import SegmentTranslation


@given(st.text(alphabet="ab \t\n\r."))
def test_paragraphs_come_out_as_they_went_in(text: str) -> None:
    data = text.encode()
    document = read(data)
    assert document.write({}) == data
    shouted = {number: SegmentTranslation(one.text.upper()) for number, one in enumerate(document.segments)}
    assert document.write(shouted).upper().split() == data.upper().split()


def test_lines_of_a_paragraph_are_one_text() -> None:
    document = read(b"\xef\xbb\xbfOne\r\ntwo  three.\n\n \nFour.\n")
    assert [(one.text, one.where) for one in document.segments] == [("One two three.", "line 1"), ("Four.", "line 5")]
    assert document.write({1: SegmentTranslation("Vier.")}) == b"\xef\xbb\xbfOne\r\ntwo  three.\n\n \nVier.\n"


def test_a_long_paragraph_takes_little_memory() -> None:
    data = b"one two\n" * 20_000
    tracemalloc.start()
    try:
        document = read(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(document.segments) == 1
    assert peak < 50 * len(data)
