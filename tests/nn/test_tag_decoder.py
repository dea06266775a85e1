"""Tags alone and together: probabilities and choices are those over all sequences of tags, written out."""

from itertools import product
from math import log

import pytest
import torch
from torch import Tensor

from regard.nn.heads import Chain, CRFTags, IndependentTags
from regard.nn.layout import Sequences
from regard.text.tags import ForbiddenTransitions
from tests.nn.test_crf import BIO, TAGS, allowed
from tests.nn.test_crf import score as score_of

LENGTHS = [3, 1, 4]


def scored() -> tuple[Tensor, Sequences]:
    return 2 * torch.randn(sum(LENGTHS), TAGS, dtype=torch.float64), Sequences.end_to_end(LENGTHS)


def together(rule: ForbiddenTransitions) -> CRFTags:
    chain = CRFTags(TAGS).double()
    for parameter in chain.parameters():
        torch.nn.init.normal_(parameter)
    chain.limit(rule)
    return chain.requires_grad_(False)


def value(chain: Chain, score: Tensor, path: tuple[int, ...], rule: ForbiddenTransitions) -> float:
    """The score of a path; of one that is forbidden nothing is left."""
    if not allowed(path, rule):
        return -float("inf")
    if isinstance(chain, CRFTags):
        return float(score_of(chain.field, score, path))
    return sum(float(score[place, tag]) for place, tag in enumerate(path))


@pytest.mark.parametrize("rule", [ForbiddenTransitions(), BIO], ids=["free", "bio"])
@pytest.mark.parametrize("make", [together, None], ids=["together", "alone"])
def test_the_best_allowed_tags_are_chosen(make, rule: ForbiddenTransitions) -> None:
    chain: Chain = make(rule) if make else IndependentTags(TAGS)
    chain.limit(rule)
    score, sequences = scored()
    found = chain.decode(score, sequences).split(LENGTHS)
    for part, tags in zip(score.split(LENGTHS), found, strict=True):
        paths = list(product(range(TAGS), repeat=len(part)))
        best = max(paths, key=lambda path: value(chain, part, path, rule))
        assert tuple(tags.tolist()) == best


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


def test_together_the_loss_is_the_likelihood_of_whole_sentences_among_what_can_be() -> None:
    chain = together(BIO)
    score, sequences = scored()
    labels = torch.zeros(len(score), dtype=torch.int64)
    total, nll = chain.loss(score, labels, sequences, 0.3)
    expected = 0.0
    for part in score.split(LENGTHS):
        paths = product(range(TAGS), repeat=len(part))
        values = torch.tensor([value(chain, part, path, BIO) for path in paths], dtype=torch.float64)
        expected += float(values.logsumexp(0)) - value(chain, part, (0,) * len(part), BIO)
    assert float(total.detach()) == pytest.approx(expected, rel=1e-9)
    assert float(nll) == float(total.detach())


def test_untaught_and_free_all_sequences_are_alike() -> None:
    chain = CRFTags(TAGS)
    score, sequences = torch.zeros(sum(LENGTHS), TAGS), Sequences.end_to_end(LENGTHS)
    loss, _ = chain.loss(score, torch.zeros(len(score), dtype=torch.int64), sequences)
    assert float(loss.detach()) == pytest.approx(sum(LENGTHS) * log(TAGS), rel=1e-5)
