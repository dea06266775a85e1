"""Text takes exactly the cells it is given, and no token can steer a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from regard.text.terminal import Table, clusters, crop, fit, upright, visible, width


@given(st.text(max_size=30))
def test_nothing_visible_steers(text: str) -> None:
    shown = visible(text)
    assert shown
    assert not any(ord(c) < 32 or ord(c) == 127 or 0x80 <= ord(c) < 0xA0 or 0x202A <= ord(c) <= 0x202E for c in shown)


def test_crop_marks_what_it_cut_and_never_halves_a_wide_character() -> None:
    assert crop("attention", 5) == "atte…"
    assert crop("attention", 9) == "attention"
    assert crop("日本語", 4) == "日…"
    assert clusters("e\u0301a") == ["e\u0301", "a"]


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
    assert [*lines[:2], *lines[3:]] == [
        "          how",
        "what     much  老人",
        "longer  1,000     z",
        "",
        "First note.",
        "Second.",
    ]
    assert lines[2].startswith("a|b         1  ")
    assert "\t" not in lines[2]


def test_markdown_keeps_its_columns() -> None:
    lines = TABLE.markdown().splitlines()
    rows = ["| what | how much | 老人 |", "| --- | --: | --: |", "| a\\|b | 1 | x\ty |", "| longer | 1,000 | z |"]
    assert lines == [*rows, "", "First note.", "", "Second."]


def test_no_notes_no_empty_lines() -> None:
    plain = Table(("a",), (("b",),))
    assert plain.terminal() == "a\nb\n"
    assert plain.markdown() == "| a |\n| --- |\n| b |\n"
