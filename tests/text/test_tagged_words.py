"""Words, their places and tags survive being one string; running text is cut into words of every script."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text.tags import TaggedWords, places_of


def test_words_come_back() -> None:
    words = TaggedWords.from_words(
        ["New", "York", " ", ":", "x:y"], ["B-LOC", "I-LOC", "O", "a:b c", "O"], [True, False, True]
    )
    assert words.text == "New York  : x:y"
    assert words.words == ["New", "York", " ", ":", "x:y"]
    assert words.sides()[1].count("\t") == len(words.places) - 1
    assert TaggedWords("").sides() == ("", "")


def test_places_need_a_tag_each() -> None:
    with pytest.raises(ValueError):
        TaggedWords("ab", ((0, 1), (1, 2)), ("O",)).sides()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("He didn't, 3.5 x_y", "He didn ' t , 3 . 5 x_y"),
        ("हिन्दी में।", "हिन्दी में ।"),
        ("東京へ行く", "東 京 へ 行 く"),
        ("가나 다", "가나 다"),
        ("café cafe\u0301", "café cafe\u0301"),
        ("\u0301a", "\u0301a"),
        ("👍🏽!", "👍 🏽 !"),
        ("ไป", "ไ ป"),
        ("می‌خواهم", "می‌خواهم"),
    ],
)
def test_words_of_every_script(text: str, words: str) -> None:
    assert [text[begin:end] for begin, end in places_of(text)] == words.split(" ")


@given(st.text())
def test_words_cover_everything_but_blanks(text: str) -> None:
    places = places_of(text, [3, 5])
    assert "".join(text[begin:end] for begin, end in places) == re.sub(r"\s", "", text)
    assert all(left[1] <= right[0] for left, right in pairwise(places))
    assert all(not begin < edge < end for begin, end in places for edge in (3, 5))


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_is_no_script_of_its_own(text: str) -> None:
    with_more = places_of(text + " ä")
    assert with_more[:-1] == places_of(text)
