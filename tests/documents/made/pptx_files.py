"""PPTX made by python-pptx, with all that it offers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.dml.color import RGBColor
from pptx.enum.chart import XL_CHART_TYPE
from pptx.enum.shapes import MSO_SHAPE
from pptx.oxml import parse_xml
from pptx.oxml.ns import nsdecls
from pptx.util import Cm, Pt

from tests.documents.made.docx_files import picture, sentence


def slide(presentation: Any, layout: int, title: str) -> Any:
    """A further slide with a title."""
    made = presentation.slides.add_slide(presentation.slide_layouts[layout])
    made.shapes.title.text = title
    return made


def bullets(presentation: Any, draw: random.Random) -> None:
    """Levels, line breaks, tabs and signs of XML."""
    frame = slide(presentation, 1, "A title\vin two lines").placeholders[1].text_frame
    frame.text = sentence(draw)
    for level in range(4):
        paragraph = frame.add_paragraph()
        paragraph.text, paragraph.level = f"{sentence(draw, 4)}\vBehind\ta tab & <more>", level


def runs(presentation: Any, draw: random.Random) -> None:
    """Formats and links; runs that differ in their language alone."""
    frame = slide(presentation, 5, "Runs").shapes.add_textbox(Cm(2), Cm(5), Cm(20), Cm(5)).text_frame
    paragraph = frame.paragraphs[0]
    for number in range(7):
        run = paragraph.add_run()
        run.text = f"{sentence(draw, 3)} "
        run.font.bold, run.font.italic, run.font.size = number % 2 == 0, number % 3 == 0, Pt(12 + number)
        if number == 4:
            run.font.color.rgb = RGBColor(200, 0, 0)
        if number in (2, 3):
            run.hyperlink.address = "https://example.org/?a=1&b=2"
    text = '<a:r><a:rPr lang="{}" dirty="0"/><a:t>{}</a:t></a:r>'
    pieces = text.format("en-US", "Split wor") + text.format("de-DE", "ds of one ") + "<a:r><a:t>format</a:t></a:r>"
    field = (
        '<a:fld id="{B6F15528-21DE-4FAA-801E-634DDDAF4B2B}" type="slidenum"><a:rPr lang="en-US"/><a:t>3</a:t></a:fld>'
    )
    xml = f"<a:p {nsdecls('a')}><a:pPr algn='r'/>{pieces}<a:r><a:t> on page </a:t></a:r>{field}<a:r><a:t>.</a:t></a:r>"
    frame._txBody.append(parse_xml(f"{xml}<a:endParaRPr lang='en-US'/></a:p>"))


def tables(presentation: Any, draw: random.Random) -> None:
    """A table with merged cells."""
    shape = slide(presentation, 5, "A table").shapes.add_table(3, 3, Cm(2), Cm(5), Cm(20), Cm(6))
    for row in shape.table.rows:
        for cell in row.cells:
            cell.text = sentence(draw, 3)
    shape.table.cell(0, 0).merge(shape.table.cell(1, 1))
    shape.table.cell(2, 2).text = "42"


def charts(presentation: Any, draw: random.Random) -> None:
    """A chart with titles."""
    data = CategoryChartData()
    data.categories = ["East", "West"]
    data.add_series("First", (1.5, 2.5))
    place = Cm(2), Cm(4), Cm(15), Cm(9)
    made = slide(presentation, 5, "A chart").shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *place, data).chart
    made.has_title = made.value_axis.has_title = True
    made.chart_title.text_frame.text = "The title of the chart"
    made.value_axis.axis_title.text_frame.text = "Metres per second"


def shapes(presentation: Any, draw: random.Random) -> None:
    """Shapes in groups, a picture, a connector."""
    made = slide(presentation, 5, "Shapes").shapes
    made.add_picture(picture(), Cm(1), Cm(5))
    group = made.add_group_shape()
    for number, kind in enumerate((MSO_SHAPE.RECTANGLE, MSO_SHAPE.OVAL, MSO_SHAPE.RIGHT_ARROW)):
        group.shapes.add_shape(kind, Cm(2 + 7 * number), Cm(8), Cm(6), Cm(4)).text_frame.text = sentence(draw, 3)


def notes(presentation: Any, draw: random.Random) -> None:
    """Notes of a slide."""
    made = slide(presentation, 0, sentence(draw, 3))
    made.placeholders[1].text = sentence(draw, 4)
    made.notes_slide.notes_text_frame.text = f"{sentence(draw)}\n{sentence(draw)}"


FEATURES = (bullets, runs, tables, charts, shapes, notes)


def make(features: tuple[Callable[[Any, random.Random], None], ...], seed: int) -> bytes:
    """A presentation with some of them."""
    presentation, draw = Presentation(), random.Random(seed)
    for feature in features:
        feature(presentation, draw)
    presentation.core_properties.title = sentence(draw, 3)
    stream = BytesIO()
    presentation.save(stream)
    return stream.getvalue()


def all_files() -> Iterator[tuple[str, bytes]]:
    """Eight presentations."""
    for number, feature in enumerate(FEATURES):
        yield f"{feature.__name__}.pptx", make((feature,), number)
    yield "rich.pptx", make(FEATURES, 8)
    yield "many.pptx", make(FEATURES * 5, 9)
