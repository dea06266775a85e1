"""XLSX made by openpyxl and XlsxWriter, with all that they offer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import date
from io import BytesIO
from typing import Any

import openpyxl
import xlsxwriter
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.drawing.image import Image
from openpyxl.styles import Alignment, Font, PatternFill
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.table import Table

from tests.documents.made.docx_files import picture, sentence


def values(sheet: Any, draw: random.Random) -> None:
    """Cells of every kind."""
    sheet.append([sentence(draw, 3), 1, 2.5, True, date(2020, 2, 3), None, "=B1*2", '=IF(A1="x","yes","no")'])
    sheet.append(
        ["with\nlines", " blanks around ", "a & <b> \"c\" 'd'", "tab\there", "_x000D_ literal", "7", "ÄÖÜ 東京"]
    )
    sheet.append(["the same text"] * 3)


def formats(sheet: Any, draw: random.Random) -> None:
    """Formats of cells, and merged ones."""
    for number in range(1, 6):
        cell = sheet.cell(number, 1, sentence(draw))
        cell.font, cell.fill = Font(bold=number % 2 == 0, size=9 + number), PatternFill("solid", fgColor="FFEE88")
        cell.alignment = Alignment(wrap_text=True)
    sheet.merge_cells("B1:D3")
    sheet["B1"] = "Merged cells"
    sheet.column_dimensions["A"].width = 40


def rich(sheet: Any, draw: random.Random) -> None:
    """Runs of several formats in a cell."""
    for row in range(1, 4):
        bold, red = InlineFont(b=True), InlineFont(color="FFCC0000", i=True, sz=14)
        blocks = [
            f"{sentence(draw, 3)} ",
            TextBlock(bold, f"{sentence(draw, 2)} "),
            TextBlock(red, "red"),
            " and plain",
        ]
        sheet.cell(row, 1).value = CellRichText(*blocks)


def comments(sheet: Any, draw: random.Random) -> None:
    """Comments and validated cells."""
    sheet["A1"] = "A remark"
    sheet["A1"].comment = Comment(sentence(draw), "Author")
    sheet["B2"] = "Yes"
    validation = DataValidation("list", formula1='"Yes,No"')
    sheet.add_data_validation(validation)
    validation.add("B2")
    sheet.oddHeader.center.text = "Header of a page"


def tables(sheet: Any, draw: random.Random) -> None:
    """A table whose columns a formula names, a chart, a picture."""
    for row in (["Region", "Amount", "Remark"], ["North", 3, sentence(draw, 3)], ["South", 4, sentence(draw, 3)]):
        sheet.append(row)
    sheet.add_table(Table(displayName=f"Table{sheet.title}", ref="A1:C3"))
    sheet["E1"] = f"=SUM(Table{sheet.title}[Amount])"
    chart = BarChart()
    chart.title = "Amounts by region"
    chart.add_data(Reference(sheet, min_col=2, min_row=1, max_row=3), titles_from_data=True)
    chart.set_categories(Reference(sheet, min_col=1, min_row=2, max_row=3))
    sheet.add_chart(chart, "A6")
    sheet.add_image(Image(picture()), "H1")


FEATURES = (values, formats, rich, comments, tables)


def make(features: tuple[Callable[[Any, random.Random], None], ...], seed: int) -> bytes:
    """A workbook with a sheet for each of them."""
    book, draw = openpyxl.Workbook(), random.Random(seed)
    book.remove(book.active)
    for number, feature in enumerate(features):
        feature(book.create_sheet(f"{feature.__name__}{number}"), draw)
    book.properties.title = sentence(draw, 3)
    stream = BytesIO()
    book.save(stream)
    return stream.getvalue()


def written(seed: int, inline: bool) -> bytes:
    """A workbook of XlsxWriter; with inline strings where it is written row by row."""
    stream, draw = BytesIO(), random.Random(seed)
    with xlsxwriter.Workbook(stream, {"constant_memory": inline, "in_memory": not inline}) as book:
        sheet, bold = book.add_worksheet("One"), book.add_format({"bold": True})
        for row in range(20):
            sheet.write_string(row, 0, sentence(draw))
            sheet.write_rich_string(row, 1, "Some ", bold, sentence(draw, 2), " and more ")
            sheet.write_number(row, 2, row)
            sheet.write_formula(row, 3, f'=A{row + 1}&" together"', value="cached")
        sheet.insert_textbox("F2", "Text in a box & more", {"width": 200, "height": 80})
        sheet.write_comment("A1", sentence(draw))
    return stream.getvalue()


def all_files() -> Iterator[tuple[str, bytes]]:
    """Ten workbooks."""
    for number, feature in enumerate(FEATURES):
        yield f"{feature.__name__}.xlsx", make((feature,), number)
    yield "rich_all.xlsx", make(FEATURES, 8)
    yield "many.xlsx", make(FEATURES * 4, 9)
    yield "writer.xlsx", written(10, inline=False)
    yield "inline.xlsx", written(11, inline=True)
    yield "two.xlsx", make((rich, comments), 12)
