"""Exact match, BLEU and ROUGE-L of outputs, each against a plain way to compute it."""

import random

import pytest

from regard.system.errors import RegardError
from regard.tasks.metrics.answers import Words, exact_match, rouge_l, score_answers
from regard.tasks.metrics.bleu import score
from tests.refusals import refused

WORDS = "the cat Cat sleeps übers Haus haus 12 it's x_y".split()


def texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(0, 9))) for _ in range(count)]


def longest_common_subsequence(one: list[str], other: list[str]) -> int:
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, left in enumerate(one):
        for j, right in enumerate(other):
            table[i + 1][j + 1] = table[i][j] + 1 if left == right else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def f_measure(said: str, wanted: str) -> float:
    """[Lin04 §3.2] with precision and recall weighed alike."""
    one, other = Words().tokenize(said), Words().tokenize(wanted)
    if not one or not other or not (common := longest_common_subsequence(one, other)):
        return 0.0
    precision, recall = common / len(one), common / len(other)
    return 2 * precision * recall / (precision + recall)


def test_words_are_letters_and_digits_of_any_script() -> None:
    assert Words().tokenize("It's ÜBER x_y, 12-3") == ["it", "s", "über", "x", "y", "12", "3"]


def test_rouge_is_that_of_a_plain_table() -> None:
    said, wanted = texts(60, 1), texts(60, 2)
    mean = sum(map(f_measure, said, wanted)) / 60
    assert rouge_l(said, wanted) == pytest.approx(100 * mean, abs=1e-9)
    assert rouge_l(wanted, wanted) == pytest.approx(100 * sum(bool(one) for one in wanted) / 60)


def test_exact_match_is_to_the_letter_but_for_white_space_around() -> None:
    assert exact_match(["a b ", "a  b", "A b", "c"], ["a b", "a b", "a b", "c"]) == 50.0


def test_scores_of_each_prefix_are_those_of_its_texts_alone() -> None:
    said, wanted = texts(40, 3), texts(40, 3)
    said[::5] = texts(8, 4)
    wanted = [one or "x" for one in wanted]
    prefixes = [("a", "b", "")[place % 3] for place in range(40)]
    found = score_answers(said, wanted, prefixes)
    assert list(found.prefixes) == ["a", "b", ""]
    for number, (prefix, one) in enumerate(found.prefixes.items()):
        alone = score_answers(said[number::3], wanted[number::3], [prefix] * len(said[number::3]), samples=1)
        assert (alone, alone.prefixes) == (one, {})
    whole = score(said, wanted)
    assert (found.bleu, found.bleu_interval) == (whole.bleu, whole.bleu_interval)
    assert found.exact == pytest.approx(sum(one.exact * one.texts for one in found.prefixes.values()) / 40)
    first, *each, last = found.lines()
    assert f"{found.exact:.2f}" in first
    assert [line.partition(":")[0] for line in each] == ["a", "b", "(no prefix)"]
    assert found.bleu_signature in last
    assert set(found.to_dict()["prefixes"]) == {"a", "b", ""}


def test_nothing_is_not_scored() -> None:
    with refused(RegardError, None, "nothing to score"):
        score_answers([], [], [])
