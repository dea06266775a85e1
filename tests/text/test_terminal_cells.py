"""Text takes exactly the cells it is given, and no token can steer a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from regard.text.terminal_cells import clusters, crop, visible, width


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
