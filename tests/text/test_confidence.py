"""How sure an output is, by plain loops; the words that training read; and the files of a model folder that say so."""

import math
import random
import re
from collections import Counter
from pathlib import Path

import pytest

from regard.system.errors import Damaged, RegardError
from regard.text import confidence as module
from regard.text.confidence import CONFIDENCE, WORDS, SeenWords, WordCounter, confidence_content, read_doubted_below
from tests.refusals import refused

BAD_NUMBERS = [f'{{"doubted_below": {one}}}' for one in ("-1", "2", "true", "NaN", '"a"', "null")]
BAD_COUNTS = [
    '{"format": 1}',
    '{"format": 1, "counts": {"a": 0}, "others": ""}',
    '{"format": 1, "counts": {}, "others": "", "unseen_pieces": [["a"]]}',
]


def counted(*texts: str) -> SeenWords:
    counter = WordCounter()
    counter.add(texts)
    return counter.seen_words()


def test_it_is_the_geometric_mean_of_probabilities() -> None:
    probabilities = [0.9, 0.5, 0.2, 1.0]
    whole = sum(map(math.log, probabilities))
    assert module.confidence_of(whole, 4) == pytest.approx(math.prod(probabilities) ** 0.25)
    assert (module.confidence_of(-math.inf, 3), module.confidence_of(0.0, 0)) == (0.0, 1.0)
    assert math.isnan(module.confidence_of(math.nan, 3))


def test_less_than_usual_is_doubted_where_both_are_known() -> None:
    rows = [(0.3, 0.6, True), (0.6, 0.6, False), (0.3, None, None), (0.0, 0.0, None), (math.nan, 0.6, None)]
    assert [module.is_doubted(confidence, below) for confidence, below, _ in rows] == [row[2] for row in rows]


def test_the_file_gives_back_the_number(tmp_path: Path) -> None:
    assert read_doubted_below(tmp_path) is None
    assert module.read_calibration(tmp_path) == module.NOT_CALIBRATED
    for below in (0.0, 0.9055, 1.0):
        (tmp_path / CONFIDENCE).write_bytes(confidence_content(below))
        assert read_doubted_below(tmp_path) == below
    found = module.Calibration({"ratio": -0.1, "copy": 0.2}, ((-2.5, 0.3), (-0.1, 0.9)))
    (tmp_path / CONFIDENCE).write_bytes(confidence_content(0.5, found))
    assert (read_doubted_below(tmp_path), module.read_calibration(tmp_path)) == (0.5, found)
    for damaged in ("[1]", '{"doubted_below": 0.5, "guard": [1]}', '{"doubted_below": 0.5, "guard": {"copy": NaN}}'):
        (tmp_path / CONFIDENCE).write_text(damaged)
        with refused(Damaged, CONFIDENCE, "guard"):
            module.read_calibration(tmp_path)
    for words in ("[1]", "[[1, 2], [0, 3]]", "[[1, 2], [3, NaN]]", "[[1, 2, 3]]", "3"):
        (tmp_path / CONFIDENCE).write_text(f'{{"doubted_below": 0.5, "words": {words}}}')
        with refused(Damaged, CONFIDENCE, "words"):
            module.read_calibration(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [*((CONFIDENCE, one) for one in ("", "[]", "{}", *BAD_NUMBERS)), *((WORDS, one) for one in BAD_COUNTS)],
)
def test_a_damaged_file_is_refused(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with refused(Damaged, name, "damaged"):
        (read_doubted_below if name == CONFIDENCE else module.read_seen_words)(tmp_path)


def test_a_file_of_a_newer_regard_is_refused(tmp_path: Path) -> None:
    (tmp_path / CONFIDENCE).write_text('{"format": 99, "below": 1}')
    with refused(RegardError, CONFIDENCE, "newer"):
        read_doubted_below(tmp_path)


def test_counts_equal_those_of_a_plain_loop() -> None:
    texts = ["The cat saw the dog.", "A dog, the “Cat”!"]
    assert counted(*texts).counts == Counter(word for text in texts for word in re.findall(r"\w+", text.lower()))


def test_unseen_words_stand_where_it_says_and_letter_case_and_form_do_not_matter() -> None:
    seen, text = counted("Die schöne Straße 3 ."), "DIE scho\u0308ne Gasse, die Straße: 4!"
    found = seen.unseen_words(text)
    assert [word.word for word in found] == ["Gasse", "4"] == [text[word.begin : word.end] for word in found]


def test_characters_whose_pieces_were_never_seen_make_a_word_unseen_or_stand_alone() -> None:
    text = "The CAT didn’t see  the dog"
    found = counted("The cat didn't see the dog").unseen_words(text, [(5, 6), (12, 13), (18, 20)])
    assert [(word.word, word.begin, word.end) for word in found] == [("CAT", 4, 7), ("’", 12, 13)]


def test_rare_words_are_never_named_unseen_and_few_others_are_missed() -> None:
    draws = random.Random(1)
    words = [f"{draws.randrange(1 << 60):x}" for _ in range(3000)]
    seen = SeenWords.of(Counter(words[:2000]), kept=100)
    assert len(seen.counts) == 100
    assert len(seen.others) <= 1 << 13
    assert all(word in seen for word in words[:2000])
    assert sum(word in seen for word in words[2000:]) < 20


@pytest.mark.parametrize("pieces", [None, ((1, 5),), ((), (3,))])
def test_the_file_gives_back_the_same_words(tmp_path: Path, pieces: tuple[tuple[int, ...], ...] | None) -> None:
    seen = SeenWords.of({"a": 3, "ß": 1, "b": 2}, kept=2, unseen_pieces=pieces)
    (tmp_path / WORDS).write_bytes(seen.content)
    assert module.read_seen_words(tmp_path) == seen


def test_a_text_has_all_words_where_none_is_unseen_whatever_was_asked_before() -> None:
    draws, seen = random.Random(2), counted("Die schöne Straße 3 . a_b scho\u0308n")
    parts = [*"die schöne scho\u0308ne Straße 3 4 zebra ! \u0308 a_b -".split(" "), " ", "\u00a0", "\t"]
    texts = ["".join(draws.choices(parts, k=draws.randrange(7))) for _ in range(500)]
    answers = [seen.has_all_words(text) for text in texts * 2]
    assert answers == [seen.unseen_words(text) == [] for text in texts] * 2
    assert 50 < sum(answers) < 950


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = counted("a b")
    assert seen.has_all_words("a" + "-" * module.LONGEST + " " + "- " * 3)
    assert seen._chunks == {"-"}
    monkeypatch.setattr(module, "KEPT", 3)
    assert all(seen.has_all_words("a" + "!" * number) for number in range(10))
    assert len(seen._chunks) <= 3
