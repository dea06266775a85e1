"""Spans and tags are the same thing said twice; what is ill-formed is read as CoNLL's scoring reads it."""

import random
import re
from itertools import pairwise, product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text import tags as module
from regard.text.tags import Scheme, Span, TaggedWords, convert_tags, forbidden, inventory, places_of, spans_of, tags_of

SCHEMES = get_args(Scheme)


def drawn_spans(drawn: random.Random, words: int) -> list[Span]:
    spans, place = [], 0
    while place < words:
        length = drawn.randint(1, 3)
        if drawn.random() < 0.6 and place + length <= words:
            spans.append((place, place + length, drawn.choice(("PER", "creative-work"))))
        place += length
    return spans


def conlleval(tags: list[str]) -> list[Span]:
    """CoNLL's table of where chunks begin and end, row by row."""
    ends = {("B", "B"), ("B", "S"), ("B", "O"), ("I", "B"), ("I", "S"), ("I", "O")}
    begins = {("E", "E"), ("E", "I"), ("S", "E"), ("S", "I"), ("O", "E"), ("O", "I")}
    found: list[Span] = []
    begin, before, before_label = -1, "O", ""
    for place, tag in enumerate([*tags, "O"]):
        letter, _, label = tag.partition("-")
        ended = before in "ES" or (before, letter) in ends or (before != "O" and before_label != label)
        if ended and begin >= 0:
            found.append((begin, place, before_label))
            begin = -1
        if letter in "BS" or (before, letter) in begins or (letter != "O" and before_label != label):
            begin = place
        before, before_label = letter, label
    return found


@pytest.mark.parametrize("scheme", ["bio", "bilou"])
@given(seed=st.integers(0, 10**6))
def test_spans_come_back(scheme: Scheme, seed: int) -> None:
    drawn = random.Random(seed)
    words = drawn.randint(0, 12)
    spans = drawn_spans(drawn, words)
    tags = tags_of(spans, words, scheme)
    assert spans_of(tags) == spans
    assert spans_of(convert_tags(tags, "bio" if scheme == "bilou" else "bilou")) == spans
    numbers = {tag: number for number, tag in enumerate(inventory(("PER", "creative-work"), scheme))}
    rule = forbidden(list(numbers), scheme)
    line = [numbers[tag] for tag in tags]
    assert not set(pairwise(line)) & set(rule.between)
    assert not set(line[:1]) & set(rule.first)
    assert not set(line[-1:]) & set(rule.last)


@pytest.mark.parametrize("letters", ["BI", "I", "BIES"])
def test_ill_formed_tags_are_read_as_conlleval_reads_them(letters: str) -> None:
    tags = ["O", *(f"{letter}-{label}" for letter in letters for label in "xy")]
    for sequence in product(tags, repeat=4 if len(tags) < 9 else 3):
        assert spans_of(sequence) == conlleval(list(sequence)), sequence


@pytest.mark.parametrize("scheme", ["io", "bio", "bilou"])
def test_what_is_not_forbidden_comes_back_and_nothing_else(scheme: Scheme) -> None:
    tags = inventory("xy", scheme)
    rule = forbidden(tags, scheme)
    for line in product(range(len(tags)), repeat=3):
        edges = line[0] not in rule.first and line[-1] not in rule.last
        allowed = edges and not set(pairwise(line)) & set(rule.between)
        written = [tags[number] for number in line]
        assert allowed == (tags_of(spans_of(written), 3, scheme) == written)


SEEN = [
    (["B-x I-x O", "O U-y"], "bilou"),
    (["B-x I-x E-x O S-y"], "bilou"),
    (["I-x I-x O", "I-y"], "io"),
    (["I-x I-x O", "I-y B-y O"], "iob1"),
    (["B-x I-x O", "B-y"], "bio"),
    (["B-x O O"], "bio"),
    (["B-x I-x O", "O I-y O", "B-x"], "bio"),
    (["B I O O B"], "bio"),
    (["I O I"], "none"),
    (["DET NOUN VERB"], "none"),
    (["-LRB- NN -RRB- B-x"], "none"),
    (["O O"], "none"),
    ([], "none"),
    (["B-x I-x O " * 10 + "PER"], "bio"),
]


@pytest.mark.parametrize(("sentences", "scheme"), SEEN)
def test_the_scheme_is_seen(sentences: list[str], scheme: module.Written) -> None:
    assert module.detect(sentence.split() for sentence in sentences) == scheme


def test_iob1_becomes_another_scheme() -> None:
    written = {"bio": "B-x I-x B-x O B-y B-x", "bilou": "B-x L-x U-x O U-y U-x", "io": "I-x I-x I-x O I-y I-x"}
    for scheme, tags in written.items():
        assert convert_tags("I-x I-x B-x O I-y I-x".split(), scheme) == tags.split()  # type: ignore[arg-type]


def test_tags_that_are_only_tags() -> None:
    assert spans_of(["DET", "NOUN"], "none") == [(0, 1, "DET"), (1, 2, "NOUN")]
    assert tags_of([(0, 1, "DET"), (1, 2, "NOUN")], 2, "none") == ["DET", "NOUN"]
    assert convert_tags(["B-x", "E-x"], "none") == ["B-x", "E-x"]
    assert inventory(["DET", "NOUN"], "none") == ["DET", "NOUN"]
    assert forbidden(["DET", "NOUN"], "none").between == ()


def test_letters_and_labels() -> None:
    read = {"E-PER": ("L", "PER"), "S-a-b": ("U", "a-b"), "M-x": ("I", "x"), "O": ("O", ""), "I": ("I", "")}
    assert {tag: module.split_tag(tag) for tag in read} == read
    assert {module.split_tag(tag) for tag in ("PER", "B-", "-x", "0")} == {("O", "")}


def test_spans_that_cannot_be_tags() -> None:
    for spans in ([(0, 2, "x"), (1, 3, "y")], [(1, 1, "x")], [(2, 4, "x")], [(-1, 1, "x")]):
        with pytest.raises(ValueError):
            tags_of(spans, 3)


def test_words_come_back() -> None:
    tags = ["B-LOC", "I-LOC", "O", "a:b c", "O"]
    words = TaggedWords.from_words(["New", "York", " ", ":", "x:y"], tags, [True, False, True])
    assert words.text == "New York  : x:y"
    assert words.words == ["New", "York", " ", ":", "x:y"]
    assert words.sides()[1].count("\t") == len(words.places) - 1
    assert TaggedWords("").sides() == ("", "")
    with pytest.raises(ValueError):  # places need a tag each
        TaggedWords("ab", ((0, 1), (1, 2)), ("O",)).sides()


SCRIPTS = [
    ("He didn't, 3.5 x_y", "He didn ' t , 3 . 5 x_y"),
    ("हिन्दी में।", "हिन्दी में ।"),
    ("東京へ行く", "東 京 へ 行 く"),
    ("가나 다", "가나 다"),
    ("café cafe\u0301", "café cafe\u0301"),
    ("\u0301a", "\u0301a"),
    ("👍🏽!", "👍 🏽 !"),
    ("ไป", "ไ ป"),
    ("می‌خواهم", "می‌خواهم"),
]


@pytest.mark.parametrize(("text", "words"), SCRIPTS)
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
