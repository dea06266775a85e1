"""Subtitles, read by pysubs2 as well."""

import re
from pathlib import Path

import pysubs2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.documents.formats.subtitles import read_ass, read_srt, read_vtt
from regard.documents.segment import Document, SegmentTranslation, unchanged
from regard.system.errors import RegardError
from tests.documents.capitals import in_capitals

READ = {"srt": read_srt, "vtt": read_vtt, "ass": read_ass}
TIMES = "00:00:0{}.000 --> 00:00:0{}.900"
EVENTS = "[Script Info]\n\n[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"


def srt(*cues: str) -> bytes:
    times = [TIMES.format(n, n).replace(".", ",") for n in range(1, len(cues) + 1)]
    return "\n".join(f"{n}\n{one}\n{cue}\n" for n, (one, cue) in enumerate(zip(times, cues, strict=True), 1)).encode()


def ass(*texts: str) -> bytes:
    return (EVENTS + "".join(f"Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,{one}\n" for one in texts)).encode()


def texts(document: Document) -> list[str]:
    return [one.text for one in document.segments]


def cues(data: bytes, kind: str) -> list[str]:
    """The texts of a file's cues, as another reader finds them."""
    found = pysubs2.SSAFile.from_string(data.decode("utf-8-sig").replace("\r\n", "\n"), format_=kind)
    return [" ".join(event.plaintext.split()) for event in found]


def write(document: Document, *translations: str) -> list[str]:
    """The cues of an SRT with translations."""
    given = {number: SegmentTranslation(text) for number, text in enumerate(translations)}
    return re.findall(r"-->[^\n]*\n(.*?)\n(?=\n|\Z)", document.write(given).decode(), re.DOTALL)


def test_files_come_out_as_they_went_in_and_cues_stay(data_folder: Path) -> None:
    for path in sorted((data_folder / "formats" / "srt").iterdir()):
        data, kind = path.read_bytes(), path.suffix[1:]
        document = READ[kind](data)
        assert document.segments
        assert document.write({}) == data
        before, after = cues(data, kind), cues(in_capitals(document), kind)
        assert len(before) == len(after)
        if "tester" not in path.name:  # it shows escapes, which are in capitals no escapes
            assert " ".join(after).upper() == " ".join(before).upper()
        if path.name == "sintel_en.srt":
            assert [one.upper() for one in before] == after


def test_lines_of_a_sentence_are_one_text_and_break_where_they_were() -> None:
    document = read_srt(srt("You're a fool for traveling alone,\nso completely unprepared."))
    assert texts(document) == ["You're a fool for traveling alone, so completely unprepared."]
    for translation, lines in (
        ("Du bist eine Närrin, allein zu reisen, so völlig unvorbereitet.", "allein zu reisen,\nso völlig"),
        ("Allein und so völlig unvorbereitet zu reisen ist töricht.", "unvorbereitet\nzu reisen"),
        ("Unvorbereitet", "Unvorbereitet"),
        ("一人で旅をするなんて馬鹿だ", "する\nなんて"),
    ):
        (cue,) = write(document, translation)
        assert lines in cue
        assert cue.replace("\n", " " if " " in translation else "") == translation


def test_speakers_and_sentences_of_a_cue_are_texts_of_their_own() -> None:
    document = read_srt(srt("- Yes.\n-No,\nnot now!", "I see.\nYou don't.", "<i>- A... b\n– C</i>", "-5 degrees"))
    assert texts(document) == ["Yes.", "No, not now!", "I see.", "You don't.", "A... b", "C", "-5 degrees"]
    assert write(document, "Ja.", "Nein, nicht jetzt!", "Aha.", "Du nicht.", "X", "Y")[:3] == [
        "- Ja.\n-Nein,\nnicht jetzt!",
        "Aha.\nDu nicht.",
        "<i>- X\n– Y</i>",
    ]


def test_a_sentence_over_several_cues_is_one_text_and_shared_out() -> None:
    document = read_srt(
        srt("I have never thought\nthat he would", "come back so soon.", "And you?", "Eh, then", "<i>no</i>")
    )
    assert texts(document) == ["I have never thought that he would come back so soon.", "And you?", "Eh, then", "no"]
    assert write(document, "Ich hätte nie gedacht, dass er so bald wiederkommen würde.")[:2] == [
        "Ich hätte nie gedacht,\ndass er so bald",
        "wiederkommen würde.",
    ]
    assert write(document, "Nie")[:2] == ["Nie", ""]
    many = read_srt(srt(*(["and so on"] * 9)))
    assert [len(one.split()) for one in texts(many)] == [12, 12, 3]


def test_marks_are_tags_but_not_those_around_all_of_a_text() -> None:
    document = read_srt(srt("{\\an8}<i>One <b>two</b>\nthree</i>", "a <u>b\nc"))
    assert [[(tag.before, tag.after) for tag in one.tags] for one in document.segments] == [
        [("<b>", "</b>")],
        [("<u>", "")],
    ]
    first = SegmentTranslation("Eins zwei drei", ((5, 9),))
    assert b"{\\an8}<i>Eins <b>zwei</b>\ndrei</i>\n" in document.write({0: first})


def test_vtt_keeps_notes_styles_settings_and_entities() -> None:
    head = "\ufeffWEBVTT - a title\r\n\r\nSTYLE\r\n::cue { color: red }\r\n\r\nNOTE\r\nleft as it is\r\n\r\n"
    cue = "id one\r\n00:01.000 --> 00:02.000 align:start line:0%\r\n<v Ann>Tom &amp; <c.loud>Tim</c>,\r\nyes &gt;</v>"
    raw = f"{head}{cue}\r\n\r\nNOTE the end\r\n\r\n00:02.000 --> 00:03.000\r\n<v Bob>One <00:02.500>two"
    document = read_vtt(raw.encode())
    assert texts(document) == ["Tom & Tim, yes >", "One two"]
    shouted = raw
    for word in ("Tom", "Tim", "yes", "One", "two"):
        shouted = shouted.replace(word, word.upper())
    assert in_capitals(document).decode() == shouted


def test_ass_leaves_styles_drawings_and_songs() -> None:
    left = ("{\\p1}m 0 0 l 9 0{\\p0}", "{\\k20}ka{\\k30}ra")
    data = ass("{\\an8}Hi, {\\i1}dear{\\i0} {you}all\\Nand\\hme", "- Yes.\\n- No.", *left)
    data += b"Comment: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,left\n"
    document = read_ass(data)
    assert texts(document) == ["Hi, dear all and\u00a0me", "Yes.", "No."]
    written = in_capitals(document)
    assert written == data.replace(
        b"Hi, {\\i1}dear{\\i0} {you}all\\Nand\\hme", b"HI, {\\i1}DEAR{\\i0} {you}ALL\\NAND\\hME"
    ).replace(b"- Yes.\\n- No.", b"- YES.\\n- NO.")
    assert [event.text for event in pysubs2.SSAFile.from_string(written.decode(), format_="ass")][2:4] == list(left)


@given(
    st.lists(st.text(" ab.,-<i>{\\}/Néж日", max_size=40), min_size=1, max_size=5),
    st.sampled_from(["srt", "vtt", "ass"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_any_text(lines: list[str], kind: str, feed: str, mark: bool) -> None:
    data = ass(*lines) if kind == "ass" else (b"WEBVTT\n\n" if kind == "vtt" else b"") + srt(*lines)
    data = b"\xef\xbb\xbf" * mark + data.replace(b"\n", feed.encode())
    document = READ[kind](data)
    assert document.write({}) == data
    again = document.write({number: unchanged(one) for number, one in enumerate(document.segments)})
    if kind != "vtt":  # its escapes may be written in another way
        letters = [sorted(one.replace(b"\\h", b"\xc2\xa0").replace(b" ", b"")) for one in (again, data)]
        assert letters[0] == letters[1] or "{" in str(lines)  # several blanks become one
    times = re.compile(rb"\d --> \d")
    assert len(times.findall(again)) == len(times.findall(data))


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        ("srt", b"only text\n", "has no line of times"),
        ("ass", b"[Script Info]\n", r"has no \[Events\]"),
        ("vtt", b"WEBVTT\n\n\xff\n", "is not UTF-8 from line 3"),
    ],
)
def test_what_is_no_subtitle_is_refused(kind: str, data: bytes, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        READ[kind](data)


@pytest.mark.one_of(5)
@pytest.mark.parametrize("piece", ["a ", "a\n", "<i>", "<i>a</i>", "{\\i1}", "- a\n", "-", "♪ ", "<", "{", ".' ", "日"])
def test_a_long_cue_takes_no_more_than_its_size(piece: str) -> None:
    text = piece * (20_000 // len(piece))
    for document in (
        read_srt(srt(text, "b")),
        read_vtt(b"WEBVTT\n\n" + srt(text)),
        read_ass(ass(text.replace("\n", "\\N"))),
    ):
        assert len(in_capitals(document)) > 10_000
