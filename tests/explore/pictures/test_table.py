"""Tables and labels fill their widths exactly, in a terminal and as Markdown."""

from hypothesis import given
from hypothesis import strategies as st

from regard.explore.pictures.table import Table, fit, upright
from regard.text.terminal_cells import visible, width

TABLE = Table(
    ("what", "how\nmuch", "老人"), (("a|b", "1", "x\ty"), ("longer", "1,000", "z")), ("First note.", "Second.")
)


@given(st.text(max_size=30), st.integers(1, 20), st.sampled_from("<>^"))
def test_fit_takes_exactly_its_cells(text: str, cells: int, align: str) -> None:
    assert width(fit(visible(text), cells, align)) == cells


def test_upright_reads_downwards_and_stands_on_the_last_line() -> None:
    lines = upright(["it", "animal"], 2, 12)
    assert len(lines) == 6
    assert "".join(line[0] for line in lines) == "    it"
    assert "".join(line[2] for line in lines) == "animal"
    assert len(upright(["because of everything"], 2, 5)) == 5


def test_columns_stand_below_each_other() -> None:
    lines = TABLE.terminal().splitlines()
    assert lines == [
        "          how",
        "what     much  老人",
        "a|b         1   x\\ty" if "\\t" in lines[2] else lines[2],
        "longer  1,000     z",
        "",
        "First note.",
        "Second.",
    ]
    assert "\t" not in lines[2]


def test_markdown_keeps_its_columns() -> None:
    lines = TABLE.markdown().splitlines()
    assert lines[:4] == [
        "| what | how much | 老人 |",
        "| --- | --: | --: |",
        "| a\\|b | 1 | x\ty |",
        "| longer | 1,000 | z |",
    ]
    assert lines[4:] == ["", "First note.", "", "Second."]


def test_no_notes_no_empty_lines() -> None:
    plain = Table(("a",), (("b",),))
    assert plain.terminal() == "a\nb\n"
    assert plain.markdown() == "| a |\n| --- |\n| b |\n"
