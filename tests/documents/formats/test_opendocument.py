import zipfile
from io import BytesIO

import pytest
from odf import opendocument, teletype, text

from regard.documents.formats.opendocument import read
from regard.documents.segment import SegmentTranslation
from regard.system.errors import RegardError
from tests.documents.made.compare import assert_only_text_differs, capital, capitals
from tests.documents.made.opendocument_files import all_files

FILES = dict(all_files())
SPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table", "style")
)
STAYS = ("print(value)  # stays", "This is gone.", "do_it()", "3.5 metres", "2 Jan", "yes", "1", "9", "Somebody")


def package(body: str, styles: str = "", manifest: str = "<a/>") -> bytes:
    """A text of these paragraphs."""
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        styles = f"<office:automatic-styles>{styles}</office:automatic-styles>"
        body = f"<office:body><office:text>{body}</office:text></office:body>"
        archive.writestr("content.xml", f"<office:document-content {SPACES}>{styles}{body}</office:document-content>")
        archive.writestr("META-INF/manifest.xml", manifest)
    return stream.getvalue()


def written(body: str, styles: str = "", translations: dict[int, SegmentTranslation] | None = None) -> str:
    """The body in capitals, or with other translations."""
    document = read(package(body, styles))
    made = document.write(translations or capitals(document.segments))
    with zipfile.ZipFile(BytesIO(made)) as archive:
        content = archive.read("content.xml").decode()
    return content.partition("<office:text>")[2].partition("</office:text>")[0]


@pytest.mark.parametrize("name", FILES)
def test_only_text_changes(name: str) -> None:
    data = FILES[name]
    made = assert_only_text_differs(read, data)
    before, after = (opendocument.load(BytesIO(one)) for one in (data, made))
    for kind in (text.P, text.H):
        for old, new in zip(before.getElementsByType(kind), after.getElementsByType(kind), strict=True):
            shown, expected = teletype.extractText(new), teletype.extractText(old)
            assert " ".join(capital(shown).split()) == " ".join(capital(expected).split())
            left = shown
            for one in STAYS:
                left = left.replace(one, "")
            assert left == capital(left)


def test_blanks_tabs_and_line_breaks_are_text() -> None:
    body = '<text:p>One <text:s text:c="2"/>two<text:tab/>three<text:line-break/>\n  four<text:tab a="b"/>five</text:p>'
    assert [one.text for one in read(package(body)).segments] == ["One   two\tthree\n four five"]
    made = '<text:p>ONE <text:s text:c="2"/>TWO<text:tab/>THREE<text:line-break/> FOUR<text:tab a="b"/>FIVE</text:p>'
    assert written(body) == made


def test_the_text_of_fields_is_kept() -> None:
    body = "<text:p>Page <text:page-number>one</text:page-number> of <text:page-count>two</text:page-count>.</text:p>"
    (segment,) = read(package(body)).segments
    assert (segment.text, [tag.kept for tag in segment.tags]) == ("Page one of two.", [True, True])
    assert written(body) == body.replace("Page", "PAGE").replace(" of ", " OF ")


def test_spans_of_one_session_are_one() -> None:
    style = '<style:style style:name="T{}" style:family="text"><style:text-properties {}/></style:style>'
    styles = style.format(1, 'officeooo:rsid="1"') + style.format(2, 'style:x="y" officeooo:rsid="2"')
    styles = styles.replace("<style:text", "<style:text").replace("officeooo", "text") + style.format(3, 'style:x="y"')
    span = '<text:span text:style-name="T{}">{}</text:span>'
    body = f"<text:p>{span.format(1, 'One ')}two {span.format(2, 'thr')}{span.format(3, 'ee')}</text:p>"
    assert written(body, styles) == f"<text:p>ONE TWO {span.format(2, 'THREE')}</text:p>"


def test_cells_with_values_and_deleted_text_stay() -> None:
    cell = '<table:table-cell office:value-type="{}"><text:p>{}</text:p></table:table-cell>'
    body = f"<text:tracked-changes><text:p>gone</text:p></text:tracked-changes>{cell.format('float', '1 m')}"
    assert written(f"{body}{cell.format('string', 'text')}") == f"{body}{cell.format('string', 'TEXT')}"


def test_code_by_a_style_from_which_another_is_derived_stays() -> None:
    parent = 'style:parent-style-name="Preformatted_20_Text"'
    styles = f'<style:style style:name="P1" style:family="paragraph" {parent}/>'
    body = '<text:p text:style-name="P1">code</text:p>'
    assert written(f"{body}<text:p>text</text:p>", styles) == f"{body}<text:p>TEXT</text:p>"


def test_hidden_text_is_not_read() -> None:
    hidden = '<style:text-properties text:display="none"/>'
    styles = f'<style:style style:name="T1" style:family="text">{hidden}</style:style>'
    body = '<text:p>One<text:span text:style-name="T1"> secret</text:span> two</text:p>'
    assert [one.text for one in read(package(body, styles)).segments] == ["One two"]
    assert "secret" in written(body, styles)


def test_what_cannot_be_read_is_refused() -> None:
    for data, message in (
        (package("", manifest="<a><encryption-data/></a>"), "encrypted"),
        (package("<text:p>"), "not XML"),
        (package("<text:p>" * 2000 + "</text:p>" * 2000), "nested"),
    ):
        with pytest.raises(RegardError, match=message):
            read(data)
    with pytest.raises(RegardError, match="no OpenDocument"):
        read(package("").replace(b"content.xml", b"content.xmx"))
