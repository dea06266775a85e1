import equations
import numpy as np
import pytest
import torch

from regard.models.answer import ScoreAnswer

SCORES_NV = torch.randn(4, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
EXPECTED = np.log([equations.softmax(row) for row in SCORES_NV.numpy()])


@pytest.mark.parametrize(("dtype", "most"), [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 3e-2)])
def test_every_log_probability(dtype: torch.dtype, most: float) -> None:
    found = ScoreAnswer(SCORES_NV.to(dtype)).all()
    assert found.dtype == np.float64
    assert abs(found - EXPECTED).max() < most
    if dtype != torch.bfloat16:
        assert abs(np.exp(found).sum(1) - 1).max() < 1e-6


def test_of_given_tokens() -> None:
    tokens_N = np.array([3, 0, 8, 3])
    assert np.allclose(ScoreAnswer(SCORES_NV).of(tokens_N), EXPECTED[np.arange(4), tokens_N], atol=1e-12)


@pytest.mark.parametrize("k", [1, 3, 9, 20])
@pytest.mark.parametrize("without", [(), (2,), (0, 5, 8)])
def test_the_best(k: int, without: tuple[int, ...]) -> None:
    ids_Nk, log_probability_Nk = ScoreAnswer(SCORES_NV).best(k, without)
    for row in range(4):
        allowed = [token for token in range(9) if token not in without]
        expected = sorted(allowed, key=lambda token, row=row: -EXPECTED[row, token])[:k]
        count = len(expected)
        assert ids_Nk[row, :count].tolist() == expected
        assert np.allclose(log_probability_Nk[row, :count], EXPECTED[row, expected], atol=1e-12)
        assert (log_probability_Nk[row, count:] == -np.inf).all()


def test_ties_go_to_the_smaller_id() -> None:
    score_NV = torch.tensor([[1.0, 3.0, 2.0, 3.0, 2.0]])
    assert ScoreAnswer(score_NV).best(4)[0].tolist() == [[1, 3, 2, 4]]


@pytest.mark.parametrize("vocabulary", [7, 300])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_ties_at_the_edge_go_to_the_smaller_id_too(vocabulary: int, k: int) -> None:
    score_NV = torch.zeros(3, vocabulary)
    score_NV[1, 4] = 1.0
    ids_Nk, _ = ScoreAnswer(score_NV).best(k)
    assert ids_Nk[0].tolist() == list(range(k))
    assert ids_Nk[1].tolist() == [4, 0, 1, 2, 3][:k]


def test_sampling_is_a_function_of_its_key_and_follows_the_distribution() -> None:
    answer = ScoreAnswer(SCORES_NV[:1].expand(4000, -1).float())
    drawn = answer.sample(5)
    assert np.array_equal(drawn, answer.sample(5))
    assert not np.array_equal(drawn, answer.sample(6))
    share = np.bincount(drawn, minlength=9) / 4000
    probability = np.exp(EXPECTED[0])
    assert (abs(share - probability) < 5 * np.sqrt(probability * (1 - probability) / 4000)).all()
    assert not np.isin(answer.sample(5, without=(1, 3)), [1, 3]).any()
    cold = answer.sample(5, temperature=1e-4)
    assert (cold == EXPECTED[0].argmax()).all()


def test_sampling_leaves_the_scores_alone() -> None:
    score_NV = SCORES_NV.float()
    before = score_NV.clone()
    ScoreAnswer(score_NV).sample(1, without=(0,))
    assert torch.equal(score_NV, before)


def test_cross_attention_if_asked_for() -> None:
    weight_NHS = torch.rand(4, 2, 5)
    assert ScoreAnswer(SCORES_NV).context() is None
    assert np.array_equal(ScoreAnswer(SCORES_NV, weight_NHS).context(), weight_NHS.double().numpy())
