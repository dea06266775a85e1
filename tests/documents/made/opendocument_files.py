"""ODT, ODS and ODP made by odfpy, and what LibreOffice writes besides."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

from odf import dc, draw, office, opendocument, presentation, style, table, text
from odf.namespaces import TEXTNS, XMLNS

from tests.documents.made.docx_files import picture, sentence


def span_style(document: Any, name: str, **properties: str) -> str:
    """An automatic style of a span."""
    made = style.Style(name=name, family="text")
    made.addElement(style.TextProperties(**properties))
    document.automaticstyles.addElement(made)
    return name


def paragraph(*parts: Any, stylename: str | None = None, kind: Any = text.P) -> Any:
    """Text and elements."""
    made = kind(stylename=stylename) if stylename else kind()
    for part in parts:
        made.addText(part) if isinstance(part, str) else made.addElement(part)
    return made


def spans(document: Any, body: Any, rng: random.Random) -> None:
    """Formats, spans within spans, spans that differ in their language alone, links."""
    names = [span_style(document, "B", fontweight="bold"), span_style(document, "I", fontstyle="italic")]
    names += [span_style(document, "L1", language="en", country="US"), span_style(document, "L2", language="de")]
    bold, italic, english, german = names
    nested = text.Span(stylename=bold, text="bold ")
    nested.addElement(text.Span(stylename=italic, text="and italic"))
    link = text.A(href="https://example.org/?a=1&b=2", type="simple")
    link.addText("a ")
    link.addElement(text.Span(stylename=bold, text="link"))
    body.addElement(paragraph("Text with ", nested, " words & ", link, " in it."))
    halves = [text.Span(stylename=name, text=half) for name, half in ((english, "Split wo"), (german, "rds of one"))]
    body.addElement(paragraph(*halves, text.Span(stylename=bold, text=" fo"), text.Span(stylename=bold, text="rmat.")))


def headings(document: Any, body: Any, rng: random.Random) -> None:
    """Headings, lists, sections, code."""
    code = style.Style(name="Preformatted_20_Text", displayname="Preformatted Text", family="paragraph")
    source = style.Style(name="Source_20_Text", displayname="Source Text", family="text")
    for one in (code, source):
        if one.getAttribute("name") not in [s.getAttribute("name") for s in document.styles.childNodes]:
            document.styles.addElement(one)
    for level in (1, 2, 3):
        heading = text.H(outlinelevel=level)
        heading.addText(sentence(rng, 4))
        body.addElement(heading)
    listed = text.List()
    for _ in range(3):
        item = text.ListItem()
        item.addElement(paragraph(sentence(rng)))
        listed.addElement(item)
    body.addElement(listed)
    body.addElement(paragraph("print(value)  # stays", stylename="Preformatted_20_Text"))
    body.addElement(paragraph("Call ", text.Span(stylename="Source_20_Text", text="do_it()"), " now."))


def blanks(document: Any, body: Any, rng: random.Random) -> None:
    """Blanks, tabs, line breaks, white space that counts once, fields."""
    body.addElement(
        paragraph("Three", text.S(c=3), "blanks,", text.Tab(), "a tab,", text.LineBreak(), "a line  of\n text.")
    )
    body.addElement(
        paragraph(text.S(), "One before, page ", text.PageNumber(text="1"), " of ", text.PageCount(text="9"), ".")
    )


def notes(document: Any, body: Any, rng: random.Random) -> None:
    """Notes, bookmarks, remarks."""
    note = text.Note(noteclass="footnote", id="ftn1")
    note.addElement(text.NoteCitation(text="1"))
    inside = text.NoteBody()
    inside.addElement(paragraph(sentence(rng)))
    note.addElement(inside)
    remark = office.Annotation()
    remark.addElement(dc.Creator(text="Somebody"))
    remark.addElement(paragraph(sentence(rng)))
    marks = text.BookmarkStart(name="here"), text.BookmarkEnd(name="here")
    body.addElement(paragraph("A word", note, " with ", marks[0], "a note", marks[1], " and", remark, " a remark."))


def changes(document: Any, body: Any, rng: random.Random) -> None:
    """Deleted and inserted text."""
    if not body.getElementsByType(text.TrackedChanges):
        tracked, region, gone = (
            text.TrackedChanges(),
            text.ChangedRegion(qattributes={(TEXTNS, "id"): "c1", (XMLNS, "id"): "c1"}),
            text.Deletion(),
        )
        gone.addElement(paragraph("This is gone."))
        region.addElement(gone)
        tracked.addElement(region)
        body.addElement(tracked)
    marks = text.ChangeStart(changeid="c2"), text.ChangeEnd(changeid="c2")
    body.addElement(paragraph("It was ", marks[0], "newly", marks[1], " written", text.Change(changeid="c1"), "."))


def tables(document: Any, body: Any, rng: random.Random) -> None:
    """Cells of every kind."""
    made = table.Table(name=f"T{rng.randrange(10**6)}")
    made.addElement(table.TableColumn(numbercolumnsrepeated=4))
    for _ in range(3):
        row = table.TableRow()
        for kind, value, shown in (
            ("string", None, sentence(rng, 3)),
            ("float", "3.5", "3.5 metres"),
            ("date", "2020-01-02", "2 Jan"),
        ):
            cell = table.TableCell(valuetype=kind, **({"value": value} if kind == "float" else {}))
            if kind == "date":
                cell.setAttribute("datevalue", value)
            cell.addElement(paragraph(shown))
            row.addElement(cell)
        formula = table.TableCell(valuetype="string", formula='of:=IF([.B1]>1;"yes";"no")', stringvalue="yes")
        formula.addElement(paragraph("yes"))
        row.addElement(formula)
        made.addElement(row)
    body.addElement(made)


def boxes(document: Any, body: Any, rng: random.Random) -> None:
    """A text box and a picture within a paragraph."""
    frame = draw.Frame(width="6cm", height="2cm", anchortype="as-char")
    box = draw.TextBox()
    box.addElement(paragraph("In the box"))
    frame.addElement(box)
    image = draw.Frame(width="2cm", height="1cm", anchortype="as-char")
    image.addElement(draw.Image(href=document.addPictureFromString(picture().getvalue(), "image/png"), type="simple"))
    body.addElement(paragraph("Around ", frame, " the box and ", image, " a picture."))


FEATURES = (spans, headings, blanks, notes, changes, tables, boxes)


def finish(document: Any, rng: random.Random) -> bytes:
    """Title, header, and the file."""
    document.meta.addElement(dc.Title(text=sentence(rng, 3)))
    layout = style.PageLayout(name="Layout")
    document.automaticstyles.addElement(layout)
    master = style.MasterPage(name="Standard", pagelayoutname="Layout")
    header = style.Header()
    header.addElement(paragraph("In the header"))
    master.addElement(header)
    document.masterstyles.addElement(master)
    stream = BytesIO()
    document.write(stream)
    return stream.getvalue()


def make(features: tuple[Callable[[Any, Any, random.Random], None], ...], seed: int) -> bytes:
    """A text with some of them."""
    document, rng = opendocument.OpenDocumentText(), random.Random(seed)
    for feature in features:
        document.text.addElement(paragraph(f"{sentence(rng)} {sentence(rng)}"))
        feature(document, document.text, rng)
    return finish(document, rng)


def sheets(seed: int) -> bytes:
    """A spreadsheet."""
    document, rng = opendocument.OpenDocumentSpreadsheet(), random.Random(seed)
    for _ in range(2):
        tables(document, document.spreadsheet, rng)
    return finish(document, rng)


def slides(seed: int) -> bytes:
    """A presentation with notes."""
    document, rng = opendocument.OpenDocumentPresentation(), random.Random(seed)
    layout = style.PageLayout(name="Slide")
    layout.addElement(style.PageLayoutProperties(pagewidth="28cm", pageheight="21cm"))
    document.automaticstyles.addElement(layout)
    document.masterstyles.addElement(style.MasterPage(name="Slides", pagelayoutname=layout))
    for number in range(3):
        page = draw.Page(name=f"Slide {number}", masterpagename="Slides")
        frame = draw.Frame(width="20cm", height="5cm", x="2cm", y="2cm")
        box = draw.TextBox()
        spans(document, box, rng) if number == 0 else box.addElement(paragraph(sentence(rng)))
        frame.addElement(box)
        page.addElement(frame)
        below, frame, box = presentation.Notes(), draw.Frame(width="20cm", height="5cm"), draw.TextBox()
        box.addElement(paragraph(sentence(rng)))
        frame.addElement(box)
        below.addElement(frame)
        page.addElement(below)
        document.presentation.addElement(page)
    return finish(document, rng)


def all_files() -> Iterator[tuple[str, bytes]]:
    """Twelve documents."""
    for number, feature in enumerate(FEATURES):
        yield f"{feature.__name__}.odt", make((feature,), number)
    yield "rich.odt", make(FEATURES, 8)
    yield "many.odt", make((*FEATURES, spans, blanks, notes, boxes), 9)
    yield "sheets.ods", sheets(10)
    yield "slides.odp", slides(11)
