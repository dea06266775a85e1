"""Outputs without near-duplicates: what counts as one, and how wide the search becomes."""

from dataclasses import dataclass

import pytest

from regard.decoding.hypotheses import Hypothesis
from regard.tasks.text.writer import core, search_distinct
from tests.tasks import small_tasks

TEXTS = [small_tasks.SOURCE, "The street.", "The animal was too tired."]


@pytest.mark.parametrize("other", ["ein hund", "Ein Hund.", "„EIN  HUND!“", "Ein-Hund", "einhund\u200b"])
def test_case_punctuation_and_spaces_make_no_other_text(other):
    assert core(other) == core("Ein Hund")


@pytest.mark.parametrize("pair", [("5 €", "5 $"), ("कि", "की"), ("a1", "a2"), ("na", "ná")])
def test_letters_digits_marks_and_symbols_do(pair):
    assert core(pair[0]) != core(pair[1])


@dataclass
class Searched:
    """Finds as many texts for a source as ``known`` names, each twice; counts the beams."""

    known: list[int]

    def __post_init__(self):
        self.asked = []

    def find(self, places, width):
        self.asked.append((list(places), width))
        return [[hypothesis(min(i // 2, self.known[place] - 1)) for i in range(width)] for place in places]


def hypothesis(number: int) -> Hypothesis:
    return Hypothesis((number,), -float(number), 0.0, (), True)


def test_a_text_with_too_few_is_searched_again_by_a_wider_beam_and_others_are_not():
    searched = Searched([9, 2, 1])
    found = search_distinct(searched.find, 3, 3, 5, lambda tokens: str(tokens[0]))
    assert [[one.tokens[0] for one in line] for line in found] == [[0, 1, 2], [0, 1], [0]]
    assert searched.asked == [([0, 1, 2], 5), ([1, 2], 10), ([1, 2], 20), ([1, 2], 40), ([1, 2], 80)]


@pytest.mark.parametrize("make", [small_tasks.translator, small_tasks.asker])
def test_models_write_distinct_outputs_alone_and_among_others(make):
    task = make().with_settings(["decoding.distinct=true"])
    found = task.nbest(TEXTS, 4, 4)
    for text, line in zip(TEXTS, found, strict=True):
        assert len({core(one.text) for one in line}) == len(line) > 1
        assert [one.text for one in task.nbest([text], 4, 4)[0]] == [one.text for one in line]
