"""Long texts are cut into parts that fit; nothing but white space is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text.sentences import cut, sentences
from regard.text.tokenizer import Tokenizer, learn

LONG = "Mr. Smith went home. It was late, and he was tired! Was he? Yes. " * 20


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn([LONG, "das ist ein Satz"] * 2, 320)


def without_space(text: str) -> str:
    return "".join(text.split())


def test_sentences_know_abbreviations() -> None:
    assert sentences("Mr. Smith went home. It was late.", "en") == ["Mr. Smith went home.", "It was late."]
    assert sentences("  ", "de") == []
    for code in ("de", "de-AT", "DE", "deu"):
        assert sentences("Herr bzw. Frau Maier. Er ging.", code) == ["Herr bzw. Frau Maier.", "Er ging."]


def test_what_fits_stays_whole(tokenizer: Tokenizer) -> None:
    text = "  It was late. He was tired. "
    count = len(tokenizer.encode(text).ids) + 1
    assert cut(text, tokenizer, count, "en") == [text]
    assert cut(text, tokenizer, count - 1, "en") == ["It was late.", "He was tired."]


@given(st.one_of(st.text(max_size=300), st.text(st.sampled_from("ab .é😀\u0301"), max_size=400)), st.integers(6, 40))
def test_every_part_fits_and_nothing_is_lost(tokenizer: Tokenizer, text: str, limit: int) -> None:
    parts = cut(text, tokenizer, limit, "en")
    assert parts
    assert without_space("".join(parts)) == without_space(tokenizer.normalise(text)) or parts == [text]
    for part in parts:
        assert len(tokenizer.encode(part).ids) < limit


def test_words_stay_whole_where_they_can(tokenizer: Tokenizer) -> None:
    words = "late and tired he went home " * 50
    parts = cut(words, tokenizer, 30, "en")
    assert [word for part in parts for word in part.split()] == words.split()


def test_a_million_characters_take_seconds_not_hours(tokenizer: Tokenizer) -> None:
    parts = cut("x" * 100_000, tokenizer, 256)
    assert "".join(parts) == "x" * 100_000
    assert cut(" " * 100_000, tokenizer, 256) == [""]
