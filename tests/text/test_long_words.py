"""Words beyond all measure are cut; every other text stays what it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text.sentences import shorten_words


@given(st.text(st.sampled_from("ab 。é\n\u2003"), max_size=60), st.integers(1, 9), st.booleans())
def test_words_have_so_many_characters_at_most(text: str, longest: int, end: bool) -> None:
    found, lost = shorten_words(text, longest, end=end)
    kept = [word[-longest:] if end else word[:longest] for word in text.split()]
    assert found.split() == kept
    assert lost == len(text) - len(found) == sum(max(0, len(word) - longest) for word in text.split())
    assert "".join(found.split(" ")) == found.replace(" ", "")


@pytest.mark.parametrize(("end", "expected"), [(False, " abc \tde fgh\n"), (True, " bcd \tde ijk\n")])
def test_white_space_stays_and_the_end_may_count(end: bool, expected: str) -> None:
    assert shorten_words(" abcd \tde fghijk\n", 3, end=end) == (expected, 4)


def test_what_has_no_long_word_is_not_made_anew() -> None:
    text = "a b " * 1000
    assert shorten_words(text, 5)[0] == text
    assert shorten_words("", 1) == ("", 0)
