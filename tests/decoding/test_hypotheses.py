import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.decoding.hypotheses import Hypothesis, NBest, length_penalty


def hypothesis(score: float, token: int = 2) -> Hypothesis:
    return Hypothesis((token,), score, score, (score,), True)


def test_the_length_penalty_is_that_of_the_paper():
    assert length_penalty(1.0, 0.6) == 1.0
    assert length_penalty(7.0, 0.6) == pytest.approx(2.0**0.6)
    assert length_penalty(19.0, 1.0) == pytest.approx(4.0)
    assert length_penalty(np.array([7.0, 13.0]), 0.0).tolist() == [1.0, 1.0]


@given(st.lists(st.sampled_from([-3.0, -2.0, -1.0, -0.5]), max_size=12), st.integers(1, 5))
def test_n_best_is_a_stable_sort_cut_to_n(scores, size):
    best, given_in = NBest(size), []
    for number, score in enumerate(scores):
        given_in.append(hypothesis(score, number))
        best.add(given_in[-1])
        wanted = sorted(given_in, key=lambda h: (-h.score, h.tokens))[:size]
        assert best.hypotheses == wanted
        assert best.bar == (wanted[-1].score if len(wanted) == size else -np.inf)


def test_the_confidence_is_the_geometric_mean_of_the_tokens_probabilities():
    each = tuple(np.log([0.5, 0.9, 0.7]).tolist())
    found = Hypothesis((3, 4), -0.1, sum(each), each, True)
    assert found.confidence == pytest.approx((0.5 * 0.9 * 0.7) ** (1 / 3))
