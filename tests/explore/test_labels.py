"""Labels take exactly the cells they are given, and no token can steer a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from regard.explore.labels import clusters, crop, fit, upright, visible, width


@given(st.text(max_size=30), st.integers(1, 20), st.sampled_from("<>^"))
def test_fit_takes_exactly_its_cells(text: str, cells: int, align: str) -> None:
    assert width(fit(visible(text), cells, align)) == cells


@given(st.text(max_size=30))
def test_nothing_visible_steers(text: str) -> None:
    shown = visible(text)
    assert shown
    assert not any(ord(c) < 32 or ord(c) == 127 or 0x80 <= ord(c) < 0xA0 or 0x202A <= ord(c) <= 0x202E for c in shown)


def test_crop_marks_what_it_cut_and_never_halves_a_wide_character() -> None:
    assert crop("attention", 5) == "atte…"
    assert crop("attention", 9) == "attention"
    assert crop("日本語", 4) == "日…"
    assert width(crop("日本語", 4)) <= 4


def test_combining_marks_stay_with_their_letter() -> None:
    assert clusters("e\u0301a") == ["e\u0301", "a"]


def test_upright_reads_downwards_and_stands_on_the_last_line() -> None:
    lines = upright(["it", "animal"], 2, 12)
    assert len(lines) == 6
    assert "".join(line[0] for line in lines) == "    it"
    assert "".join(line[2] for line in lines) == "animal"
    assert len(upright(["because of everything"], 2, 5)) == 5
