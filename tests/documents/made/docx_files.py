"""DOCX made by python-docx, with all that it offers, and what Word writes besides."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import docx
from docx.enum.style import WD_STYLE_TYPE
from docx.enum.text import WD_BREAK, WD_COLOR_INDEX
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from docx.shared import Cm, Pt, RGBColor
from PIL import Image

WORDS = "the old house stands near a quiet river and every evening people walk along its green banks to talk".split()
NAMESPACES = nsdecls("w", "r", "wp", "a") + (
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" xmlns:v="urn:schemas-microsoft-com:vml"'
    ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
)

STRONG = '<w:rStyle w:val="Strong"/>'


def sentence(draw: random.Random, size: int = 9) -> str:
    """Words with a capital and a full stop."""
    words = " ".join(draw.choice(WORDS) for _ in range(size))
    return f"{words[0].upper()}{words[1:]}."


def picture() -> BytesIO:
    """A small image."""
    stream = BytesIO()
    Image.new("RGB", (40, 20), (200, 60, 30)).save(stream, "PNG")
    stream.seek(0)
    return stream


def add_xml(paragraph: Any, xml: str) -> None:
    """Add what python-docx does not make to a paragraph."""
    for element in parse_xml(f"<w:p {NAMESPACES}>{xml}</w:p>"):
        paragraph._p.append(element)


def run(text: str, properties: str = "") -> str:
    """A run as Word writes it."""
    return f'<w:r w:rsidR="00AB12CD"><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def formats(document: Any, draw: random.Random) -> None:
    """Runs of many formats, and nothing but language or session between some."""
    paragraph = document.add_paragraph()
    for number in range(8):
        one = paragraph.add_run(f"{sentence(draw, 3)} ")
        one.bold, one.italic, one.underline = number % 2 == 0, number % 3 == 0, number % 4 == 0 or None
        one.font.size, one.font.color.rgb = Pt(9 + number), RGBColor(30 * number, 0, 90)
        one.font.highlight_color = WD_COLOR_INDEX.YELLOW if number == 5 else None
        one.font.superscript = number == 6
    add_xml(
        document.add_paragraph("Split "),
        run("wor")
        + '<w:proofErr w:type="spellStart"/>'
        + run("ds of ")
        + run("one", '<w:lang w:val="de-DE"/>')
        + '<w:r><w:lastRenderedPageBreak/><w:t xml:space="preserve"> format</w:t></w:r>'
        + '<w:proofErr w:type="spellEnd"/>'
        + run(" and ")
        + run("another", "<w:b/>")
        + run(" one.", '<w:b w:val="0"/>'),
    )


def styles(document: Any, draw: random.Random) -> None:
    """Headings, lists, quotations, styles of code."""
    for level in range(4):
        document.add_heading(sentence(draw, 4), level)
    for style in ("List Bullet", "List Number", "Quote", "Intense Quote", "Caption", "Title", "Subtitle"):
        document.add_paragraph(sentence(draw), style=style)
    if "Source Code" not in document.styles:
        document.styles.add_style("Source Code", WD_STYLE_TYPE.PARAGRAPH)
        document.styles.add_style("HTML Code", WD_STYLE_TYPE.CHARACTER)
    document.add_paragraph("print(value)  # stays", style="Source Code")
    paragraph = document.add_paragraph("Call ")
    paragraph.add_run("do_it()", style="HTML Code")
    paragraph.add_run(" before ")
    one = paragraph.add_run("stop")
    one.font.no_proof = True
    paragraph.add_run(" is called")
    paragraph.add_run(" secretly").font.hidden = True
    paragraph.add_run(".")


def tables(document: Any, draw: random.Random) -> None:
    """A table with merged cells and another within."""
    table = document.add_table(4, 3, style="Light Grid Accent 1")
    for row in table.rows:
        for cell in row.cells:
            cell.text = sentence(draw, 3)
    table.cell(0, 0).merge(table.cell(0, 2)).paragraphs[0].add_run(" Merged.").bold = True
    table.cell(1, 1).merge(table.cell(2, 2))
    inner = table.cell(3, 0).add_table(2, 2)
    inner.cell(0, 0).text = "Within a cell"
    inner.cell(1, 1).text = "3.14"


def breaks(document: Any, draw: random.Random) -> None:
    """Line, column and page breaks, tabs, hyphens that do not break, signs of XML."""
    paragraph = document.add_paragraph("First line\nsecond line\tafter a tab ")
    paragraph.add_run('third & <fourth> "quoted" it\'s').add_break(WD_BREAK.LINE)
    paragraph.add_run("before the page").add_break(WD_BREAK.PAGE)
    paragraph.add_run("behind it").add_break(WD_BREAK.LINE_CLEAR_ALL)
    add_xml(paragraph, "<w:r><w:t>well</w:t><w:noBreakHyphen/><w:t>known</w:t><w:softHyphen/><w:t>words</w:t></w:r>")
    document.add_page_break()
    add_xml(document.add_paragraph(), "<w:r><w:t>  no blanks around  </w:t></w:r><w:r><w:t/></w:r>")


def links(document: Any, draw: random.Random) -> None:
    """Links, bookmarks, comments, fields."""
    relation = document.part.relate_to("https://example.org/?a=1&b=2", RELATIONSHIP_TYPE.HYPERLINK, True)
    field = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
    paragraph = document.add_paragraph("See ")
    add_xml(
        paragraph,
        f'<w:hyperlink r:id="{relation}" w:history="1">'
        + run("the ", STRONG)
        + run("page", "<w:b/>")
        + "</w:hyperlink>"
        '<w:bookmarkStart w:id="7" w:name="here"/>'
        + run(" or ")
        + run("this", "<w:i/>")
        + '<w:bookmarkStart w:id="8" w:name="there"/>'
        + run(" place")
        + '<w:bookmarkEnd w:id="7"/>'
        + run(" and")
        + '<w:bookmarkEnd w:id="8"/>'
        + run(" that; on page ")
        + field.format("begin")
        + '<w:r><w:instrText xml:space="preserve"> PAGEREF here \\h </w:instrText></w:r>'
        + field.format("separate")
        + run("one", "<w:noProof/>")
        + field.format("end")
        + run(" of ")
        + field.format("begin")
        + "<w:r><w:instrText> IF </w:instrText></w:r>"
        + field.format("begin")
        + "<w:r><w:instrText> PAGE </w:instrText></w:r>"
        + field.format("separate")
        + run("2")
        + field.format("end")
        + "<w:r><w:instrText> = 2 yes no </w:instrText></w:r>"
        + field.format("separate")
        + run("nested results")
        + field.format("end")
        + run(".")
        + field.format("begin")
        + "<w:r><w:instrText>XE here</w:instrText></w:r>"
        + field.format("end"),
    )
    add_xml(
        document.add_paragraph(),
        '<w:r><w:fldChar w:fldCharType="begin"/><w:instrText>DATE</w:instrText><w:fldChar w:fldCharType="separate"/>'
        '<w:t>all in one run</w:t><w:fldChar w:fldCharType="end"/><w:t xml:space="preserve"> and behind</w:t></w:r>'
        '<w:fldSimple w:instr=" AUTHOR "><w:r><w:t xml:space="preserve"> somebody</w:t></w:r></w:fldSimple>',
    )
    first = document.add_paragraph("A remark on ")
    some = [first.add_run("these "), first.add_run("words")]
    first.add_run(" here.")
    document.add_comment(some, text=sentence(draw), author="A. Author", initials="AA")


def changes(document: Any, draw: random.Random) -> None:
    """Tracked changes, content controls, smart tags."""
    who = 'w:id="{}" w:author="A" w:date="2020-01-01T00:00:00Z"'
    add_xml(
        document.add_paragraph("It was "),
        f"<w:ins {who.format(1)}>{run('newly ')}{run('written', '<w:b/>')}</w:ins><w:del {who.format(2)}><w:r>"
        f'<w:delText>old</w:delText></w:r></w:del>{run(" and ")}<w:moveFromRangeStart {who.format(3)} w:name="m"/>'
        f'<w:moveFrom {who.format(4)}>{run("moved")}</w:moveFrom><w:moveFromRangeEnd w:id="3"/>'
        f"<w:moveTo {who.format(5)}>{run('moved here')}</w:moveTo>{run('.')}",
    )
    add_xml(
        document.add_paragraph("Dear "),
        '<w:sdt><w:sdtPr><w:alias w:val="Name"/></w:sdtPr><w:sdtContent>'
        + run("reader", "<w:i/>")
        + '</w:sdtContent></w:sdt><w:smartTag w:uri="u" w:element="place"><w:smartTagPr><w:attr w:name="x" w:val="y"/>'
        + "</w:smartTagPr>"
        + run(" of the city")
        + "</w:smartTag>"
        + run(", good day."),
    )


def boxes(document: Any, draw: random.Random) -> None:
    """Pictures, and text boxes in both of the ways that Word writes."""
    paragraph = document.add_paragraph("A picture ")
    paragraph.add_run().add_picture(picture(), width=Cm(2))
    paragraph.add_run(" within text.")
    box = f"<w:txbxContent><w:p>{run('In the ')}{run('box', '<w:b/>')}</w:p><w:p>{run('another')}</w:p></w:txbxContent>"
    add_xml(
        document.add_paragraph("Around "),
        '<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:inline>'
        '<wp:extent cx="1800000" cy="720000"/><wp:docPr id="9" name="Box 9"/><a:graphic><a:graphicData'
        ' uri="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"><wps:wsp><wps:cNvSpPr txBox="1"/>'
        '<wps:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="1800000" cy="720000"/></a:xfrm>'
        f'<a:prstGeom prst="rect"><a:avLst/></a:prstGeom></wps:spPr><wps:txbx>{box}</wps:txbx><wps:bodyPr/></wps:wsp>'
        "</a:graphicData></a:graphic></wp:inline></w:drawing></mc:Choice><mc:Fallback><w:pict><v:shape"
        f' style="width:140pt;height:56pt"><v:textbox>{box}</v:textbox></v:shape></w:pict></mc:Fallback>'
        "</mc:AlternateContent></w:r>" + run(" the box."),
    )


def notes(document: Any, draw: random.Random) -> None:
    """Footnotes and endnotes, which python-docx does not make."""
    for kind in ("footnote", "endnote"):
        document.add_paragraph("A word")
        add_xml(
            document.paragraphs[-1],
            f'<w:r><w:rPr><w:position w:val="6"/></w:rPr><w:{kind}Reference w:id="2"/></w:r>' + run(" with a note."),
        )
        name = PackURI(f"/word/{kind}s.xml")
        if any(part.partname == name for part in document.part.package.iter_parts()):
            continue
        separators = "".join(
            f'<w:{kind} w:type="{what}" w:id="{number}"><w:p><w:r><w:{what}/></w:r></w:p></w:{kind}>'
            for number, what in enumerate(("separator", "continuationSeparator"))
        )
        text = f"<w:p><w:r><w:{kind}Ref/></w:r>{run(' The note ')}{run('itself', '<w:i/>')}</w:p>"
        note = f'<w:{kind} w:id="2">{text}</w:{kind}>'
        blob = f"<w:{kind}s {NAMESPACES}>{separators}{note}</w:{kind}s>".encode()
        kinds = f"application/vnd.openxmlformats-officedocument.wordprocessingml.{kind}s+xml"
        part = Part(name, kinds, blob, document.part.package)
        document.part.relate_to(part, getattr(RELATIONSHIP_TYPE, f"{kind}s".upper()))


def headers(document: Any, draw: random.Random) -> None:
    """Headers and footers of several sections, properties."""
    document.sections[0].header.paragraphs[0].text = "Left\tMiddle\tRight"
    document.sections[0].footer.paragraphs[0].add_run(sentence(draw, 3)).italic = True
    section = document.add_section()
    section.different_first_page_header_footer = True
    section.first_page_header.paragraphs[0].text = "Of the first page"
    section.footer.is_linked_to_previous = False
    section.footer.add_table(1, 2, Cm(10)).cell(0, 1).text = "In a footer"
    document.core_properties.title, document.core_properties.subject = "A title & more", "A subject"


FEATURES = (formats, styles, tables, breaks, links, changes, boxes, notes, headers)


def make(features: tuple[Callable[[Any, random.Random], None], ...], seed: int) -> bytes:
    """A document with some of them."""
    document, draw = docx.Document(), random.Random(seed)
    document.add_heading(sentence(draw, 4), 0)
    for feature in features:
        document.add_paragraph(f"{sentence(draw)} {sentence(draw)}")
        feature(document, draw)
    stream = BytesIO()
    document.save(stream)
    return stream.getvalue()


def all_files() -> Iterator[tuple[str, bytes]]:
    """Twelve documents."""
    for number, feature in enumerate(FEATURES):
        yield f"{feature.__name__}.docx", make((feature,), number)
    yield "rich.docx", make(FEATURES, 8)
    yield "twice.docx", make(FEATURES[::-1] * 2, 9)
    yield "many.docx", make((formats, breaks) * 30, 11)
