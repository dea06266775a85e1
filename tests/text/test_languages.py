"""Languages by their codes; long texts are cut into parts that fit, and nothing but white space is lost."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text.languages import bleu_tokeniser, cut, joiner, language_of, sentences, shorten_words
from regard.text.tokenizers.tokenizer import Encoding, Tokenizer, learn

LONG = "Mr. Smith went home. It was late, and he was tired! Was he? Yes. " * 20
NAMES = {"en": ["train.en", "a/b.c/valid.en-GB.txt.xz"], "de": ["corpus.de.gz", "x.deu"], "zh": ["x.zh_CN"]}
NAMES |= {"pt": ["x.PT.zst"], "und": ["udhr/deu.txt.gz", "pairs.tsv", "train", "notes.txt"]}


@pytest.mark.parametrize("language", NAMES)
def test_the_extension_names_the_language(language: str) -> None:
    assert {language_of(name) for name in NAMES[language]} == {language}


def test_every_tokeniser_named_is_one_sacrebleu_has() -> None:
    from sacrebleu.metrics import BLEU

    for language in ("en", "de", "und", "zh", "ja", "ko", "th"):
        BLEU(tokenize=bleu_tokeniser(language)).sentence_score("a b", ["a b"])
    assert (bleu_tokeniser("de"), bleu_tokeniser("zh")) == ("13a", "zh")


@pytest.mark.parametrize("code", ["zh", "zh-CN", "zh_TW", "ZH", "zho", "zh-Hans-CN", "zh_CN.utf8"])
def test_a_region_a_script_or_capitals_do_not_change_the_language(code: str) -> None:
    assert (bleu_tokeniser(code), joiner(code)) == ("zh", "")
    assert (bleu_tokeniser("ja_JP"), joiner("JA")) == (bleu_tokeniser("ja"), "")
    assert (bleu_tokeniser("en-GB"), joiner("EN"), joiner("en")) == ("13a", " ", " ")


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


class Counting:
    """The tokenizer, and how many characters it was given at once and in all."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer, self.most, self.sum = tokenizer, 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def encode(self, text: str) -> Encoding:
        self.most, self.sum = max(self.most, len(text)), self.sum + len(text)
        return self._tokenizer.encode(text)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("text", [" " * 100_000, "x" * 20_000, "late and tired " * 1_500, "é" * 20_000, "a。" * 10_000])
def test_of_a_long_text_only_parts_are_encoded(tokenizer: Tokenizer, text: str) -> None:
    counting: Any = Counting(tokenizer)
    assert without_space("".join(cut(text, counting, 64))) == without_space(text)
    assert counting.most <= 5_000
    assert counting.sum <= 40 * len(text)


@pytest.mark.parametrize("end", ["。", "！", "？", "．", "? ", ". "])
def test_sentences_of_a_long_text_are_those_of_its_parts(end: str) -> None:
    """Also where they are looked for in a part of it at a time."""
    one = f"今日は雨です{end}傘がいります{end}"
    assert sentences(one * 2000, "ja") == sentences(one, "ja") * 2000
    assert sentences("x" * 30_000 + one, "ja") == ["x" * 30_000 + sentences(one, "ja")[0], *sentences(one, "ja")[1:]]


def test_sentences_can_be_shortened_before_they_are_cut(tokenizer: Tokenizer) -> None:
    found = cut(LONG + "x" * 100 + ". " + LONG, tokenizer, 30, "en", lambda sentence: sentence[:20])
    assert "x" * 20 in "".join(found)
    assert "x" * 21 not in "".join(found)


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
