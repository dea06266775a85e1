"""What stands for a whole sequence: against plain loops over its tokens, and blind to all others."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.nn.heads import Attention, CRFTags, IndependentTags, first, largest, mean
from regard.nn.hooks import capture
from regard.nn.layout import Sequences
from regard.text.tags import ForbiddenTransitions
from tests.models.small_models import assert_near, sequences, stir
from tests.nn.test_crf import BIO, TAGS, allowed
from tests.nn.test_crf import score as score_of

LOOPS = {first: lambda rows: rows[0], mean: lambda rows: rows.mean(0), largest: lambda rows: rows.max(0)}


@pytest.mark.parametrize("pool", LOOPS, ids=lambda pool: pool.__name__)
@pytest.mark.parametrize(("lengths", "tail", "spare"), [([3, 1, 5], 0, 0), ([2, 4], 3, 2), ([1], 0, 0)])
def test_pooled_is_of_each_sequence_alone(pool, lengths: list[int], tail: int, spare: int) -> None:
    of = sequences(lengths, tail, spare)
    hidden_TD = torch.randn(of.size, 6, dtype=torch.float64)
    hidden_TD[sum(lengths) :] = 1e9
    ends = np.cumsum(lengths)
    expected = [LOOPS[pool](hidden_TD.numpy()[end - length : end]) for end, length in zip(ends, lengths, strict=True)]
    assert_near(pool(hidden_TD, of), np.stack(expected), 1e-12)


@pytest.mark.parametrize("pool", LOOPS, ids=lambda pool: pool.__name__)
def test_gradients_reach_the_tokens_that_were_pooled_and_no_other(pool) -> None:
    of = sequences([2, 3], tail=2)
    hidden_TD = torch.randn(of.size, 4, dtype=torch.float64, requires_grad=True)
    (gradient_TD,) = torch.autograd.grad(pool(hidden_TD, of).sum(), hidden_TD)
    assert not gradient_TD[5:].any()
    sums_BD = torch.stack([gradient_TD[:2].sum(0), gradient_TD[2:5].sum(0)])
    assert_near(sums_BD, torch.ones(2, 4), 1e-12)  # each entry of a sequence's vector has weights that sum to one


def test_the_mean_keeps_half_precision() -> None:
    of = sequences([3])
    assert mean(torch.ones(3, 4, dtype=torch.bfloat16), of).dtype == torch.bfloat16


def attention(size: int = 6) -> Attention:
    made = Attention(size).double()
    torch.nn.init.normal_(made.query, generator=torch.Generator().manual_seed(1))
    torch.nn.init.normal_(made.score.direction, generator=torch.Generator().manual_seed(2))
    stir(made)
    made.path = "head.pool"
    return made


def attended(pool: Attention, rows: np.ndarray) -> list[float]:
    """What stands for one sequence, as the papers write it: in plain loops."""
    q, v, U = (x.detach().tolist() for x in (pool.query, pool.score.direction, pool.score.memory.weight))
    size = len(q)
    scores = [sum(v[i] * math.tanh(q[i] + sum(U[i][j] * m[j] for j in range(size))) for i in range(size)) for m in rows]
    shares = [math.exp(score) / sum(map(math.exp, scores)) for score in scores]
    return [sum(share * m[j] for share, m in zip(shares, rows, strict=True)) for j in range(size)]


@pytest.mark.parametrize("looked_at", [False, True])
@pytest.mark.parametrize(
    ("lengths", "tail", "spare"), [([3, 1, 5], 0, 0), ([2, 4], 3, 2), ([1], 0, 0), ([2, 0, 3], 1, 0)]
)
def test_attended_is_of_each_sequence_alone(lengths: list[int], tail: int, spare: int, looked_at: bool) -> None:
    of, pool = sequences(lengths, tail, spare), attention()
    hidden_TD = torch.randn(of.size, 6, dtype=torch.float64)
    hidden_TD[sum(lengths) :] = 1e9
    ends = np.cumsum(lengths)
    rows = [hidden_TD.numpy()[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    expected = [attended(pool, some) if len(some) else [0.0] * 6 for some in rows]
    with capture(["head.pool.*"] if looked_at else []) as heard:
        assert_near(pool(hidden_TD, of), np.array(expected), 1e-12)
    points = ("query", "key", "value", "score", "weight", "context", "output")
    assert set(heard) == ({f"head.pool.{point}" for point in points} if looked_at else set())


def test_attention_sends_gradients_to_the_tokens_of_sequences_alone() -> None:
    of, pool = sequences([2, 3], tail=2), attention(4)
    hidden_TD = torch.randn(of.size, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda hidden_TD: pool(hidden_TD, of), hidden_TD)
    (gradient_TD,) = torch.autograd.grad(pool(hidden_TD, of).square().sum(), hidden_TD)
    assert not gradient_TD[5:].any()
    assert gradient_TD[:5].abs().min() > 0


LENGTHS = [3, 1, 4]


def scored() -> tuple[Tensor, Sequences]:
    return 2 * torch.randn(sum(LENGTHS), TAGS, dtype=torch.float64), Sequences.end_to_end(LENGTHS)


def together(rule: ForbiddenTransitions) -> CRFTags:
    chain = CRFTags(TAGS).double()
    for parameter in chain.parameters():
        torch.nn.init.normal_(parameter)
    chain.limit(rule)
    return chain.requires_grad_(False)


def value(chain: CRFTags, score: Tensor, path: tuple[int, ...], rule: ForbiddenTransitions) -> float:
    """The score of a path; of one that is forbidden nothing is left."""
    return float(score_of(chain.field, score, path)) if allowed(path, rule) else -math.inf


@pytest.mark.parametrize("rule", [ForbiddenTransitions(), BIO], ids=["free", "bio"])
def test_probabilities_together_are_sums_over_all_sequences(rule: ForbiddenTransitions) -> None:
    chain = together(rule)
    score, sequences = scored()
    with torch.inference_mode():
        found = chain.probabilities(score, sequences)
    for part, probability in zip(score.split(LENGTHS), found.split(LENGTHS), strict=True):
        expected = torch.zeros_like(part)
        for path in product(range(TAGS), repeat=len(part)):
            weight = torch.tensor(value(chain, part, path, rule), dtype=torch.float64).exp()
            for place, tag in enumerate(path):
                expected[place, tag] += weight
        torch.testing.assert_close(probability, expected / expected.sum(1, keepdim=True), rtol=0, atol=1e-9)
    torch.testing.assert_close(found.sum(1), torch.ones(sum(LENGTHS)).double())


def test_alone_each_word_counts_for_itself() -> None:
    chain = IndependentTags(TAGS)
    score, sequences = scored()
    labels = torch.randint(TAGS, (len(score),))
    total, nll = chain.loss(score.requires_grad_(), labels, sequences, 0.3)
    logs = [[float(row[tag] - row.logsumexp(0)) for tag in range(TAGS)] for row in score.detach()]
    plain = -sum(row[label] for row, label in zip(logs, labels.tolist(), strict=True))
    smooth = -sum(sum(row) / TAGS for row in logs)
    assert float(nll) == pytest.approx(plain, rel=1e-5)
    assert float(total.detach()) == pytest.approx(0.7 * plain + 0.3 * smooth, rel=1e-5)
    assert not nll.requires_grad
    assert float(chain.loss(score, labels, sequences)[0].detach()) == pytest.approx(plain, rel=1e-5)
    torch.testing.assert_close(chain.probabilities(score, sequences).double(), score.softmax(1), rtol=1e-5, atol=1e-6)
