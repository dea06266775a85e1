from io import BytesIO
from typing import Any

import openpyxl
import pytest

from regard.documents.formats.xlsx import read
from regard.documents.segment import SegmentTranslation
from tests.documents.made.compare import assert_only_text_differs, capital, capitals
from tests.documents.made.xlsx_files import all_files

FILES = dict(all_files())
COLUMNS = ("Region", "Amount", "Remark")


def cells(data: bytes) -> list[tuple[str, str, Any, str]]:
    """What openpyxl reads of a workbook."""
    book = openpyxl.load_workbook(BytesIO(data), rich_text=True)
    return [
        (sheet.title, cell.coordinate, cell.value, cell.comment.text if cell.comment else "")
        for sheet in book
        for row in sheet
        for cell in row
        if type(cell).__name__ != "MergedCell"
    ]


def shouted(value: Any) -> Any:
    """A value as it is in capitals; formulas and names of columns are not."""
    if isinstance(value, str | list) and not str(value).startswith("="):
        return capital(str(value)).replace("_X000D_", "_x000D_")  # openpyxl leaves such a character as it is written
    return value


@pytest.mark.parametrize("name", FILES)
def test_only_text_changes(name: str) -> None:
    made = assert_only_text_differs(read, FILES[name])
    for (*where, old, remark), (*there, new, shown) in zip(cells(FILES[name]), cells(made), strict=True):
        assert (where, capital(remark)) == (there, capital(shown))
        assert new == old if old in COLUMNS else str(new) == str(shouted(old))


def test_names_of_columns_stay_for_formulas() -> None:
    texts = [one.text for one in read(FILES["tables.xlsx"]).segments]
    assert "North" in texts
    assert not set(COLUMNS) & set(texts)


def test_characters_that_xml_lacks_are_written_as_numbers() -> None:
    document = read(FILES["values.xlsx"])
    number = next(n for n, one in enumerate(document.segments) if one.text.startswith("\r"))
    book = openpyxl.load_workbook(BytesIO(document.write({number: SegmentTranslation("\r_x0041_\x01 & literal\n")})))
    assert "_x000D__x005F_x0041__x0001_ & literal\n" in [cell.value for row in book.worksheets[0] for cell in row]


def test_how_a_text_is_read_aloud_goes_with_it() -> None:
    from regard.documents.formats.xlsx import Strings

    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    aloud = '<rPh sb="0" eb="2"><t>トウキョウ</t></rPh><phoneticPr fontId="1"/>'
    document = Strings(
        f'<sst xmlns="{space}"><si><t>東京</t>{aloud}</si><si><t/></si></sst>'.encode(), set()
    ).document()
    assert [one.text for one in document.segments] == ["東京"]
    made = document.write({0: SegmentTranslation("Tokyo")}).decode()
    assert '<si><t xml:space="preserve">Tokyo</t><phoneticPr fontId="1"/></si>' in made


def test_a_string_of_many_cells_is_one_segment() -> None:
    document = read(FILES["writer.xlsx"])
    texts = [one.text for one in document.segments if "sharedStrings" in one.where]
    assert len(texts) == len(set(texts))
    assert capitals(document.segments)
