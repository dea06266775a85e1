from regard.documents.blocks import BlockSegments, Inline
from regard.documents.segment import Segment

RAW = "a [b {c] d} e"


def split(inlines: list[Inline], trim: bool = True) -> list[Segment]:
    return list(BlockSegments(RAW, str, trim).split(inlines))


def text(begin: int, end: int) -> Inline:
    return Inline("text", begin, end, RAW[begin:end])


def test_pairs_that_cross_end_segments_and_no_tag_is_moved() -> None:
    found = split(
        [
            text(0, 2), Inline("open", 2, 3, name="x"), text(3, 5), Inline("open", 5, 6, name="y"), text(6, 7),
            Inline("close", 7, 8, name="x"), text(8, 10), Inline("close", 10, 11, name="y"), text(11, 13),
        ]
    )  # fmt: skip
    assert [(one.text, one.begin, one.end, one.tags) for one in found] == [
        ("a", 0, 1, ()), ("b", 3, 4, ()), ("c", 6, 7, ()), ("d", 9, 10, ()), ("e", 12, 13, ()),
    ]  # fmt: skip


def test_a_pair_without_text_is_one_element_and_deep_ones_end_segments() -> None:
    found = split(
        [text(0, 2), Inline("open", 2, 3), Inline("empty", 3, 5), Inline("close", 5, 6), text(6, 7)], trim=False
    )
    assert [(one.text, [tag.before for tag in one.tags]) for one in found] == [("a c", ["[b {"])]
    deep = [Inline("open", 2, 3)] * 150 + [text(3, 4)] + [Inline("close", 7, 8)] * 150
    assert [one.text for one in split([text(0, 1), *deep, text(12, 13)])] == ["a", "b", "e"]


def test_what_encloses_all_and_what_stands_at_the_ends_is_left_out_on_request() -> None:
    inlines = [Inline("empty", 0, 2), Inline("open", 2, 3), text(3, 4), Inline("close", 4, 5), Inline("empty", 5, 6)]
    assert [(one.begin, one.end, one.tags) for one in split(inlines)] == [(3, 4, ())]
    assert [(one.begin, one.end, len(one.tags)) for one in split(inlines, trim=False)] == [(0, 6, 3)]
