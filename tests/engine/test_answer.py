"""Scores of a step: what is asked of them is what the model's own answer gives."""

import numpy as np
import pytest
import torch

from regard.config import Decoding
from regard.decoding.ensemble import EnsembleAnswer
from regard.models.decoding.next_token import NextTokenScores
from tests.models.decoding.test_next_token import SEEN_NS, SETTINGS

HIDDEN_ND = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
TABLE_VD = np.random.default_rng(1).standard_normal((9, 6)).astype(np.float32)


def answers():
    from regard.engine.answer import FastAnswer, Output

    return FastAnswer(HIDDEN_ND, Output(TABLE_VD)), NextTokenScores(torch.from_numpy(HIDDEN_ND @ TABLE_VD.T))


@pytest.mark.one_of(4)
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_draws_are_those_of_the_model(settings: dict[str, float]) -> None:
    found, expected = answers()
    seen_NS = SEEN_NS if "repetition_penalty" in settings else None
    for uniform_N in np.random.default_rng(2).random((200, 4)):
        drawn = found.sample(uniform_N, Decoding(**settings), (4,), seen_NS)
        assert drawn.tolist() == expected.sample(uniform_N, Decoding(**settings), (4,), seen_NS).tolist()


def test_the_most_probable_at_temperature_zero_and_none_where_none_is_left() -> None:
    found, expected = answers()
    assert (found.sample(np.zeros(4), Decoding(temperature=0.0)) == expected.best(1)[0][:, 0]).all()
    assert (found.sample(np.zeros(4), Decoding(temperature=0.0), range(9)) == -1).all()
    assert (found.sample(np.full(4, 0.5), Decoding(), range(9)) == -1).all()


@pytest.mark.parametrize("k", [1, 3, 9, 20])
@pytest.mark.parametrize("without", [(), (2,), (0, 5, 8), tuple(range(9))])
def test_the_best_and_given_ones(k: int, without: tuple[int, ...]) -> None:
    found, expected = answers()
    ids_Nk, log_probability_Nk = found.best(k, without)
    expected_Nk, known_Nk = expected.best(k, without)
    possible = known_Nk > -np.inf
    assert (ids_Nk[possible] == expected_Nk[possible]).all()
    np.testing.assert_allclose(log_probability_Nk, known_Nk, atol=1e-5)
    np.testing.assert_allclose(found.all(), expected.all(), atol=1e-5)
    np.testing.assert_allclose(found.of(np.array([0, 8, 3, 3])), expected.of(np.array([0, 8, 3, 3])), atol=1e-5)
    tokens_NF = np.array([[0, 8], [3, -1], [-1, -1], [2, 2]])
    several_NF = np.where(tokens_NF < 0, -np.inf, np.take_along_axis(expected.all(), tokens_NF, 1))
    for one in (found, answers()[0]):
        np.testing.assert_allclose(one.of_several(tokens_NF), several_NF, atol=1e-5)
    np.testing.assert_array_equal(found.of_several(tokens_NF)[1:2, :1], one.of_several(tokens_NF)[1:2, :1])
    assert found.context() is None


@pytest.mark.parametrize("sharpness", [0.01, 1.0, 9.0])
@pytest.mark.parametrize(("k", "without"), [(1, ()), (4, (3, 7)), (30, ()), (99, range(50))])
def test_an_ensemble_has_the_best_of_the_mean_of_probabilities(
    k: int, without: tuple[int, ...], sharpness: float
) -> None:
    """Whether their lists tell or, of models that are unsure, all tokens must be looked at."""
    from regard.engine.answer import FastAnswer, Output

    random = np.random.default_rng(k)
    weights = [random.standard_normal((60, 6)).astype(np.float32) * sharpness for _ in range(3)]
    answers = [FastAnswer(HIDDEN_ND, Output(weight_VD)) for weight_VD in weights]
    mean_NV = np.log(np.mean([np.exp(answer.all()) for answer in answers], axis=0))
    found = EnsembleAnswer(answers)
    ids_Nk, log_probability_Nk = found.best(k, without)
    mean_NV[:, list(without)] = -np.inf
    wanted_Nk = -np.sort(-mean_NV, axis=1)[:, :k]
    wide = wanted_Nk.shape[1]
    np.testing.assert_allclose(log_probability_Nk[:, :wide], wanted_Nk, atol=1e-5)
    assert (log_probability_Nk[:, wide:] == -np.inf).all()
    for line, ids, some in zip(mean_NV, ids_Nk, log_probability_Nk, strict=True):
        own = ids[some > -np.inf].tolist()
        assert len({*own}) == len(own)
        np.testing.assert_allclose(line[own], some[some > -np.inf], atol=1e-5)
    most_N = found.most_probable(without)
    np.testing.assert_allclose(mean_NV[np.arange(4), most_N], wanted_Nk[:, 0], atol=1e-5)
