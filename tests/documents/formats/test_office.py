from io import BytesIO

import pytest
from pptx import Presentation

from regard.documents.formats.office import read_drawing, read_pptx
from regard.documents.segment import SegmentTranslation
from regard.system.errors import RegardError
from tests.documents.formats.test_docx import package
from tests.documents.made.compare import assert_only_text_differs, capital
from tests.documents.made.pptx_files import all_files

FILES = dict(all_files())


def texts(data: bytes) -> list[tuple[str, str]]:
    """What python-pptx reads in the shapes and notes of a presentation."""
    found = list[tuple[str, str]]()
    for number, slide in enumerate(Presentation(BytesIO(data)).slides):
        found += [(f"{number}", shape.text_frame.text) for shape in slide.shapes if shape.has_text_frame]
        found += [
            (f"{number} cell", cell.text)
            for shape in slide.shapes
            if shape.has_table
            for row in shape.table.rows
            for cell in row.cells
        ]
        found += [(f"{number} notes", slide.notes_slide.notes_text_frame.text)] if slide.has_notes_slide else []
    return found


@pytest.mark.parametrize("name", FILES)
def test_only_text_changes(name: str) -> None:
    data = FILES[name]
    made = assert_only_text_differs(read_pptx, data)
    assert texts(made) == [(where, capital(text)) for where, text in texts(data)]


def test_links_are_pairs_and_runs_of_one_format_are_one() -> None:
    links, split = (one for one in read_pptx(FILES["runs.pptx"]).segments if len(one.text) > 20 and one.tags)
    assert sum("hlinkClick" in tag.before for tag in links.tags) == 2
    assert (split.text, len(split.tags)) == ("Split words of one format on page 3.", 1)
    assert split.tags[0].before.startswith("<a:fld")


def test_text_outside_of_a_link_that_was_all_of_a_line_is_a_run() -> None:
    run = '<a:r><a:rPr b="1"><a:hlinkClick r:id="x"/></a:rPr><a:t>all of it</a:t></a:r>'
    space = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="r"'
    document = read_drawing(f"<a:x {space}><a:p>{run}</a:p></a:x>".encode())
    made = document.write({0: SegmentTranslation("one two", ((0, 3),))}).decode()
    assert made.count("<a:r>") == 2
    assert '<a:r><a:rPr b="1"></a:rPr><a:t> two</a:t></a:r></a:p>' in made


def test_what_is_no_pptx_is_refused() -> None:
    with pytest.raises(RegardError, match="no PPTX"):
        read_pptx(package("<w:p/>"))
