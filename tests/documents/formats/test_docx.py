import random
import zipfile
from io import BytesIO
from typing import Any

import docx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from regard.documents.formats.docx import read
from regard.documents.segment import Segment, SegmentTranslation
from regard.system.errors import RegardError
from tests.documents.made.compare import assert_only_text_differs, capital, capitals, events
from tests.documents.made.docx_files import NAMESPACES, all_files, run

FILES = dict(all_files())
OFFICE = "application/vnd.openxmlformats-officedocument"
TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    f'<Override PartName="/word/document.xml" ContentType="{OFFICE}.wordprocessingml.document.main+xml"/></Types>'
)
LANGUAGE = '<w:lang w:val="de"/>'


def package(body: str, types: str = TYPES) -> bytes:
    """A document of these paragraphs."""
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", types)
        archive.writestr("word/document.xml", f"<w:document {NAMESPACES}><w:body>{body}</w:body></w:document>")
    return stream.getvalue()


def body_of(data: bytes) -> str:
    """What stands in the body."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        return archive.read("word/document.xml").decode().partition("<w:body>")[2].partition("</w:body>")[0]


@pytest.mark.one_of(5)
@pytest.mark.parametrize("name", FILES)
def test_only_text_changes(name: str) -> None:
    data = FILES[name]
    before, after = docx.Document(BytesIO(data)), docx.Document(BytesIO(assert_only_text_differs(read, data)))
    assert len(before.tables) == len(after.tables)
    for old, new in zip(before.paragraphs, after.paragraphs, strict=True):
        assert (capital(old.text).strip(), old.style.name) == (capital(new.text).strip(), new.style.name)


def test_what_stays_in_small_letters_was_to_stay() -> None:
    made = docx.Document(BytesIO(assert_only_text_differs(read, FILES["rich.docx"])))
    texts = [one.text for one in made.element.body.iter("{*}t") if any(c.islower() for c in one.text or "")]
    assert texts == ["do_it()", "stop", " secretly", "one", "moved"] or texts == [
        "print(value)  # stays",
        *("do_it()", "stop", " secretly", "one", "moved"),
    ]


def test_runs_that_differ_in_nothing_are_one() -> None:
    (segment,) = read(package(f"<w:p>{run('One ')}{run('wo')}{run('rd', LANGUAGE)}</w:p>")).segments
    assert (segment.text, segment.tags) == ("One word", ())


def test_a_field_is_a_pair_around_its_result() -> None:
    (segment,) = (one for one in read(FILES["links.docx"]).segments if one.text.startswith("See"))
    fields = [segment.text[tag.begin : tag.end] for tag in segment.tags if "<w:fldChar" in tag.before]
    assert fields == ["one", "nested results"]
    assert all(tag.after.count("<w:fldChar") == 1 for tag in segment.tags if "<w:fldChar" in tag.before)


PIECES = (
    *(run(text, format) for text in ("one ", "two", " three") for format in ("", "<w:b/>", "<w:i/>", "<w:noProof/>")),
    *(f'<w:bookmark{side} w:id="{number}"/>' for number in (1, 2) for side in ("Start", "End")),
    *(f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")),
    f'<w:hyperlink w:anchor="a">{run("link")}<w:bookmarkEnd w:id="1"/>{run("ed", "<w:b/>")}</w:hyperlink>',
    f'<w:ins w:id="3"><w:hyperlink w:anchor="b">{run("in")}</w:hyperlink></w:ins>',
    f"<w:r><w:pict><w:txbxContent><w:p>{run('box')}</w:p></w:txbxContent></w:pict></w:r>",
    "<w:r><w:t>a</w:t><w:br/><w:tab/><w:br w:type='page'/><w:t>b</w:t></w:r>",
    "<w:r><w:footnoteReference w:id='4'/></w:r>",
    "<w:proofErr w:type='spellStart'/>",
)


def placed(segment: Segment, draw: random.Random) -> SegmentTranslation:
    """Other words, with tags anywhere, one within another as they were."""
    text, places = " ".join("WORD" for _ in range(draw.randrange(1, 6))), list[tuple[int, int]]()
    free = {-1: [0, len(text)]}
    for number, tag in enumerate(segment.tags):
        begin, end = free[tag.parent]
        first, last = sorted(draw.randint(begin, end) for _ in range(2))
        if tag.begin == tag.end:
            last = first
        free[tag.parent], free[number] = [last, end], [first, last]
        places.append((first, last))
    return SegmentTranslation(text, tuple(places))


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.integers(0, 99))
def test_elements_come_out_once_wherever_tags_go(pieces: list[str], seed: int) -> None:
    data = package(f"<w:p><w:pPr><w:keepNext/></w:pPr>{''.join(pieces)}</w:p>")
    document = read(data)
    draw = random.Random(seed)
    made = body_of(document.write({number: placed(one, draw) for number, one in enumerate(document.segments)}))

    def found(body: str) -> list[Any]:
        root = etree.fromstring(f"<w:body {NAMESPACES}>{body}</w:body>")
        left = ("{w}br", "{w}tab")
        some = (one[:3] for one in events(root) if one[0] == "begin")
        return sorted(repr(one) for one in some if one[1] not in left or one[2])

    assert found(body_of(data)) == found(made)


def test_marks_of_a_field_stay_in_their_order() -> None:
    body = package(
        f"<w:p>{''.join(PIECES[-9:-6])}{run('result')}</w:p><w:p>{run('text ')}{PIECES[18]}{run('more')}</w:p>"
    )
    assert read(body).write({}) == body


def test_what_is_no_docx_is_refused() -> None:
    for data, message in (
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "encrypted"),
        (package("", TYPES.replace("document.main", "x")), "no DOCX"),
        (package("", TYPES.replace("openxmlformats-officedocument", "ms-word.macroEnabled")), "macros"),
        (package("<w:p>"), "not XML"),
        (package('<!DOCTYPE a [<!ENTITY b "c">]>'), "not XML"),
        (package("<w:p>" * 2000 + "</w:p>" * 2000), "nested"),
        (package("", "<Types/>"), "no DOCX"),
    ):
        with pytest.raises(RegardError, match=message):
            read(data)


def test_other_prefixes_and_strict_documents_are_read() -> None:
    space = "http://purl.oclc.org/ooxml/wordprocessingml/main"
    plain = (
        f'<document xmlns="{space}"><body><p><r><t>one </t></r><r><rPr><b/></rPr><t>two</t></r></p></body></document>'
    )
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("[Content_Types].xml", TYPES)
        archive.writestr("word/document.xml", plain)
    document = read(stream.getvalue())
    made = body = document.write(capitals(document.segments))
    with zipfile.ZipFile(BytesIO(made)) as archive:
        body = archive.read("word/document.xml")
    assert b'<r><t xml:space="preserve">ONE' in body
    assert b'<r><rPr><b/></rPr><t xml:space="preserve">TWO</t></r>' in body


def test_thousands_of_runs_fields_and_marks_are_no_trap() -> None:
    field = "".join(PIECES[16:18])
    for inside in (
        (run("a ") + run("b ", "<w:b/>")) * 1000,
        run("kept", "<w:noProof/>") * 1000,
        field * 1000 + run("a") + PIECES[18] * 1000,
        "".join(f'<w:bookmarkStart w:id="{n}"/>' for n in range(1000)) + run("a") + PIECES[15] * 1000,
        f'<w:hyperlink w:anchor="a">{run("a")}' * 200 + "</w:hyperlink>" * 200,
        (run("a") + "<w:r><w:pict><w:txbxContent><w:p>") * 200 + "</w:p></w:txbxContent></w:pict></w:r>" * 200,
    ):
        document = read(package(f"<w:p>{inside}{run('end')}</w:p>"))
        made = document.write(capitals(document.segments))
        assert body_of(made).count("fldChar") == inside.count("fldChar")
        assert body_of(made).count("Start") == inside.count("Start")
