"""Placeholders: where they stand, what is left without them, which words have them."""

import pytest

from regard.text.placeholders import SIGNS, plain, signs_of, with_placeholders, words_of


@pytest.mark.parametrize("text", ["", " a", "The cat's (old) hat,  no. 12!\n ", "дом – 家があります"])
def test_words_are_the_text(text: str) -> None:
    assert "".join(words_of(text)) == text


def test_signs_stand_behind_words() -> None:
    words = words_of("The old cat sleeps.")
    assert with_placeholders(words, [("⦿", range(1, 3)), ("⦾", {2, 4})]) == "The old⦿ cat⦿⦾ sleeps.⦾"
    assert with_placeholders(words, []) == "The old cat sleeps."


def test_words_have_their_signs() -> None:
    text = "The ol⦿ cat⦾⦿ is.⦾"
    assert plain(text) == "The ol cat is."
    assert signs_of(text) == [*[""] * 3, *["⦿"] * 3, *["⦾⦿"] * 4, *[""] * 3, "⦾"]
    assert plain(SIGNS) == ""
    assert signs_of(SIGNS) == []
