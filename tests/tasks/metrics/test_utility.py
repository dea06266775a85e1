"""Expected utilities against sacreBLEU, text by text."""

import time

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from regard.tasks.metrics.utility import bleu_pairs, by_utility, chrf_pairs

WORDS = "a an the cat sat on mat mats . , Der Hund läuft 日本 ü e\u0301".split()
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), min_size=1, max_size=6, unique=True)


@given(texts)
def test_pairs_are_those_of_sacrebleu(lines):
    for score_BB, of in ((chrf_pairs(lines), sacrebleu.sentence_chrf), (bleu_pairs(lines), sacrebleu.sentence_bleu)):
        wanted = [[of(one, [other]).score for other in lines] for one in lines]
        assert np.allclose(score_BB, wanted, rtol=1e-12, atol=1e-12)


@given(st.lists(st.sampled_from(["a cat", "a cat sat", "the mat", "A cat", ""]), min_size=1, max_size=7))
def test_the_best_has_the_best_mean_against_the_others(lines):
    def mean(place: int) -> float:
        others = [line for number, line in enumerate(lines) if number != place]
        return sum(sacrebleu.sentence_chrf(lines[place], [other]).score for other in others) / max(1, len(others))

    found = by_utility(lines, "chrf")
    assert sorted(lines[place] for place, _ in found) == sorted(set(lines))
    assert all(place == lines.index(lines[place]) for place, _ in found)
    assert [value for _, value in found] == pytest.approx([mean(place) for place, _ in found], abs=1e-9)
    order = [(-round(value, 9), place) for place, value in found]
    assert order == sorted(order)


def test_ties_go_to_the_first_and_languages_have_their_tokens():
    assert [place for place, _ in by_utility(["ab", "cd", "ef"], "bleu")] == [0, 1, 2]
    tie = ["a cat", "a cat", "the mat", "A cat", "A cat"]  # whose sums differ in their last bit
    assert [place for place, _ in by_utility(tie, "chrf")] == [0, 3, 2]
    chinese = ["我喜歡你", "我喜歡他"]
    assert bleu_pairs(chinese, "zh")[0, 1] > bleu_pairs(chinese)[0, 1]


def test_a_hundred_candidates_take_well_under_a_second():
    draw = np.random.default_rng(0)
    lines = [" ".join(draw.choice(WORDS, 14)) for _ in range(100)]
    begun = time.process_time()
    by_utility(lines, "chrf")
    by_utility(lines, "bleu")
    assert time.process_time() - begun < 2  # both; a tenth of it each on a free core
