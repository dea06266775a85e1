from regard.documents.segment import Segment, SegmentTranslation, Tag, TextDocument, inner

RAW = "<p>one<i><p>two<i><p>three</p></i></p></i> four</p><p>five</p>"


def document() -> TextDocument:
    """Paragraphs within the tags of others."""
    two, three = RAW.index("two"), RAW.index("three")
    last = RAW.index("</p></i> four")
    tags = (
        Tag(3, 3, f"<i>{inner(RAW.index('<p>two'), last + 4)}</i>"),
        Tag(3, 3, f"<i>{inner(three - 3, three + 9)}</i>"),
    )
    outer = Segment(3, RAW.index("</p><p>five"), "one four", tags[:1])
    segments = [outer, Segment(two, last, "two", tags[1:]), Segment(three, three + 5, "three"), Segment(54, 58, "five")]
    return TextDocument(RAW, segments)


def test_segments_within_tags_of_others_are_written_with_or_without_them() -> None:
    made = [SegmentTranslation("ONE FOUR", ((3, 3),)), SegmentTranslation("TWO", ((3, 3),))]
    made += [SegmentTranslation("THREE"), SegmentTranslation("FIVE")]
    for chosen in range(16):
        expected = RAW
        for number in (some := [n for n in range(4) if chosen >> n & 1]):
            for word in (["one", "four"], ["two"], ["three"], ["five"])[number]:
                expected = expected.replace(word, word.upper())
        assert document().write({n: made[n] for n in some}).decode() == expected


def test_text_that_looks_like_such_a_place_goes_no_further() -> None:
    for text, written in (("\0" + "0:5\0", "abcde"), ("\0" + "0:6\0", "\0" + "0:6\0")):
        made = TextDocument("abcdef", [Segment(0, 5, text)])
        assert made.write({0: SegmentTranslation(text)}).decode() == written + "f"
