import numpy as np
import pytest
import torch

from regard.config import Decoding
from regard.models.decoding.next_token import NextTokenScores, filter_logits, penalize_repetition
from tests.decoding.table_step import chances
from tests.reference import equations

SCORES_NV = torch.randn(4, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
EXPECTED = np.log([equations.softmax(row) for row in SCORES_NV.numpy()])


@pytest.mark.parametrize(("dtype", "most"), [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 3e-2)])
def test_every_log_probability(dtype: torch.dtype, most: float) -> None:
    found = NextTokenScores(SCORES_NV.to(dtype)).all()
    assert found.dtype == np.float64
    assert abs(found - EXPECTED).max() < most
    if dtype != torch.bfloat16:
        assert abs(np.exp(found).sum(1) - 1).max() < 1e-6


def test_of_given_tokens() -> None:
    tokens_N = np.array([3, 0, 8, 3])
    assert np.allclose(NextTokenScores(SCORES_NV).of(tokens_N), EXPECTED[np.arange(4), tokens_N], atol=1e-12)


@pytest.mark.parametrize("k", [1, 3, 9, 20])
@pytest.mark.parametrize("without", [(), (2,), (0, 5, 8)])
def test_the_best(k: int, without: tuple[int, ...]) -> None:
    ids_Nk, log_probability_Nk = NextTokenScores(SCORES_NV).best(k, without)
    for row in range(4):
        allowed = [token for token in range(9) if token not in without]
        expected = sorted(allowed, key=lambda token, row=row: -EXPECTED[row, token])[:k]
        count = len(expected)
        assert ids_Nk[row, :count].tolist() == expected
        assert np.allclose(log_probability_Nk[row, :count], EXPECTED[row, expected], atol=1e-12)
        assert (log_probability_Nk[row, count:] == -np.inf).all()


def test_ties_go_to_the_smaller_id() -> None:
    score_NV = torch.tensor([[1.0, 3.0, 2.0, 3.0, 2.0]])
    assert NextTokenScores(score_NV).best(4)[0].tolist() == [[1, 3, 2, 4]]


@pytest.mark.parametrize("vocabulary", [7, 300])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_ties_at_the_edge_go_to_the_smaller_id_too(vocabulary: int, k: int) -> None:
    score_NV = torch.zeros(3, vocabulary)
    score_NV[1, 4] = 1.0
    ids_Nk, _ = NextTokenScores(score_NV).best(k)
    assert ids_Nk[0].tolist() == list(range(k))
    assert ids_Nk[1].tolist() == [4, 0, 1, 2, 3][:k]


SETTINGS = {
    "plain": {},
    "warm": {"temperature": 1.7},
    "cold": {"temperature": 0.3},
    "k": {"top_k": 3},
    "k above the vocabulary": {"top_k": 50},
    "nucleus": {"top_p": 0.6},
    "nucleus of one": {"top_p": 1e-6},
    "least": {"min_p": 0.25},
    "typical": {"typical": 0.5},
    "typical of one": {"typical": 1e-6},
    "k and nucleus": {"top_k": 5, "top_p": 0.7},
    "k and typical": {"top_k": 6, "typical": 0.6},
    "all": {"temperature": 1.4, "top_k": 7, "top_p": 0.9, "min_p": 0.1, "typical": 0.8, "repetition_penalty": 1.3},
    "penalty": {"repetition_penalty": 2.0},
}
SEEN_NS = np.array([[3, 3, -1], [0, 8, 5], [-1, -1, -1], [2, 9, 1]])  # 9 is no token: a start symbol


def of_transformers(score_NV: torch.Tensor, settings: dict[str, float], seen: list[list[int]]) -> torch.Tensor:
    """The processed scores, by the classes and in the order of that library's generation."""
    from transformers.generation import logits_process as them

    line = [
        ("temperature", them.TemperatureLogitsWarper),
        ("top_k", them.TopKLogitsWarper),
        ("top_p", them.TopPLogitsWarper),
        ("min_p", them.MinPLogitsWarper),
        ("typical", them.TypicalLogitsWarper),
    ]
    score_NV = score_NV.clone()
    if "repetition_penalty" in settings:
        penalise = them.RepetitionPenaltyLogitsProcessor(settings["repetition_penalty"])
        for row, ids in enumerate(seen):
            if ids:
                score_NV[row] = penalise(torch.tensor([ids]), score_NV[row : row + 1])[0]
    for name, kind in line:
        if name in settings:
            score_NV = kind(settings[name])(None, score_NV)
    return score_NV


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_what_survives_is_what_transformers_leaves(settings: dict[str, float], dtype: torch.dtype) -> None:
    score_NV, decoding = (2 * SCORES_NV).to(dtype), Decoding(**settings)
    seen = [[token for token in row if 0 <= token < 9] for row in SEEN_NS.tolist()]
    wanted = of_transformers(score_NV, settings, seen).softmax(1)
    if "repetition_penalty" in settings:
        score_NV = penalize_repetition(score_NV, torch.from_numpy(SEEN_NS), decoding.repetition_penalty)
    score_NR, ids_NR = filter_logits(score_NV, decoding)
    found = torch.zeros_like(wanted).scatter(1, ids_NR, score_NR.softmax(1))
    assert torch.equal(found > 0, wanted > 0)
    assert abs(found - wanted).max() < 1e-6


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_draws_are_the_inverse_of_the_cumulative_function(settings: dict[str, float]) -> None:
    """Numbers spread evenly give each token its share, to one part in their count; tokens left out never come."""
    count, decoding = 2000, Decoding(**settings)
    even = (np.arange(count) + 0.5) / count
    for row, seen in zip(2 * SCORES_NV, SEEN_NS, strict=True):
        answer = NextTokenScores(row.expand(count, -1))
        drawn = answer.sample(even, decoding, (4,), np.tile(seen, (count, 1)))
        wanted = chances(row.numpy(), decoding, (4,), seen)
        share = np.bincount(drawn, minlength=9) / count
        assert set(drawn.tolist()) <= set(wanted)
        assert all(abs(share[token] - p) <= 1.01 / count for token, p in wanted.items())


def test_a_row_is_drawn_by_its_own_scores_and_number() -> None:
    decoding = Decoding(top_p=0.8, temperature=1.3)
    uniform_N = np.array([0.1, 0.5, 0.9, 0.999])
    together = NextTokenScores(SCORES_NV).sample(uniform_N, decoding)
    order = [2, 0, 3]
    assert NextTokenScores(SCORES_NV[order]).sample(uniform_N[order], decoding).tolist() == together[order].tolist()


def test_no_temperature_takes_the_most_probable_ties_to_the_smaller_id() -> None:
    answer = NextTokenScores(torch.tensor([[1.0, 3.0, 2.0, 3.0], [0.0, 0.0, 5.0, 4.0]]))
    cold, most = Decoding(temperature=0.0, top_k=2, typical=0.2), np.array([1 - 2.0**-53] * 2)
    assert answer.sample(most, cold).tolist() == [1, 2]
    assert answer.sample(most, cold, without=(1,)).tolist() == [3, 2]
    assert answer.sample(
        most, Decoding(temperature=0.0, repetition_penalty=2.0), seen_NS=np.array([[1], [2]])
    ).tolist() == [3, 3]
    assert answer.sample(most, Decoding(temperature=1e-300)).tolist() == [3, 2]


def test_the_ends_of_the_numbers_and_rows_without_a_token() -> None:
    score_NV = torch.tensor([[-torch.inf, 0.0, 0.0, -torch.inf], [-torch.inf] * 4])
    for uniform, token in ((0.0, 1), (0.5, 2), (1 - 2.0**-53, 2)):
        assert NextTokenScores(score_NV).sample(np.full(2, uniform), Decoding()).tolist() == [token, -1]
    for settings in SETTINGS.values():
        drawn = NextTokenScores(SCORES_NV[:1]).sample(np.array([0.3]), Decoding(**settings), without=range(9))
        assert drawn.tolist() == [-1]


def test_sampling_leaves_the_scores_alone() -> None:
    for score_NV in (SCORES_NV.clone(), SCORES_NV.float()):
        before = score_NV.clone()
        for settings in SETTINGS.values():
            NextTokenScores(score_NV).sample(np.full(4, 0.4), Decoding(**settings), (0,), SEEN_NS)
        assert torch.equal(score_NV, before)


def test_cross_attention_if_asked_for() -> None:
    weight_NHS = torch.rand(4, 2, 5)
    assert NextTokenScores(SCORES_NV).context() is None
    assert np.array_equal(
        NextTokenScores(SCORES_NV, [weight_NHS.transpose(0, 1)]).context(), weight_NHS.double().numpy()
    )
