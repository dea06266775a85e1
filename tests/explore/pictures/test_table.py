"""Tables as aligned text and as Markdown."""

from regard.explore.pictures.table import Table

TABLE = Table(
    ("what", "how\nmuch", "老人"), (("a|b", "1", "x\ty"), ("longer", "1,000", "z")), ("First note.", "Second.")
)


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
