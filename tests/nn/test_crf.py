"""The conditional random field is the sum over all sequences of tags, written out."""

from itertools import pairwise, product

import pytest
import torch
from torch import Tensor

from regard.nn.heads import ConditionalRandomField, constrained_viterbi
from regard.nn.layout import Sequences
from regard.text.tags import ForbiddenTransitions, forbidden, inventory

TAGS = 3
LENGTHS = [4, 1, 3, 0, 2]
BIO = forbidden(inventory("x", "bio"), "bio")


def field(rule: ForbiddenTransitions | None = None) -> ConditionalRandomField:
    made = ConditionalRandomField(TAGS, rule).double()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    return made


def batch() -> tuple[Tensor, Tensor, Sequences]:
    """Scores, tags, and five sequences with a gap before, between and behind them, and two spare ones."""
    starts = torch.tensor([1, 6, 7, 10, 10, 0, 0])
    sequences = Sequences(starts, torch.tensor([*LENGTHS, 0, 0]), 5, 4, 14)
    return torch.randn(14, TAGS, dtype=torch.float64), torch.randint(TAGS, (14,)), sequences


def allowed(path: tuple[int, ...], rule: ForbiddenTransitions) -> bool:
    return not set(pairwise(path)) & set(rule.between) and path[0] not in rule.first and path[-1] not in rule.last


def score(crf: ConditionalRandomField, scores: Tensor, path: tuple[int, ...]) -> Tensor:
    total = crf.start_C[path[0]] + crf.end_C[path[-1]]
    total = total + sum(scores[place, tag] for place, tag in enumerate(path))
    return total + sum((crf.transition_CC[left, right] for left, right in pairwise(path)), torch.zeros(()).double())


def paths(length: int, rule: ForbiddenTransitions) -> list[tuple[int, ...]]:
    return [path for path in product(range(TAGS), repeat=length) if allowed(path, rule)]


def written_out(
    crf: ConditionalRandomField, scores: Tensor, labels: Tensor, sequences: Sequences, rule: ForbiddenTransitions
) -> list[Tensor]:
    found = []
    for start, length in zip(sequences.starts_B.tolist(), LENGTHS, strict=False):
        part = scores[start : start + length]
        if not length:
            found.append(torch.zeros(()).double())
            continue
        every = torch.stack([score(crf, part, path) for path in paths(length, rule)])
        found.append(every.logsumexp(0) - score(crf, part, tuple(labels[start : start + length].tolist())))
    return found


def lawful(labels: Tensor, sequences: Sequences, rule: ForbiddenTransitions) -> Tensor:
    """Tags that the rule allows, the first such of each sequence shuffled by what was drawn."""
    labels = labels.clone()
    for start, length in zip(sequences.starts_B.tolist(), LENGTHS, strict=False):
        if length:
            choices = paths(length, rule)
            labels[start : start + length] = torch.tensor(choices[int(labels[start]) * 7 % len(choices)])
    return labels


@pytest.mark.parametrize("rule", [ForbiddenTransitions(), BIO], ids=["free", "bio"])
def test_likelihood_and_gradient_are_the_sum_written_out(rule: ForbiddenTransitions) -> None:
    crf, (scores, labels, sequences) = field(rule), batch()
    labels = lawful(labels, sequences, rule)
    scores.requires_grad_()
    inputs = [scores, *crf.parameters()]
    nll = crf(scores, labels, sequences)
    expected = torch.stack(written_out(crf, scores, labels, sequences, rule))
    torch.testing.assert_close(nll, expected, rtol=0, atol=1e-12)
    weights = torch.randn(len(LENGTHS)).double()
    ours = torch.autograd.grad((nll * weights).sum(), inputs)
    theirs = torch.autograd.grad((expected * weights).sum(), inputs)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rule", [ForbiddenTransitions(), BIO], ids=["free", "bio"])
@torch.no_grad()
def test_the_best_path_is_the_best_of_all(rule: ForbiddenTransitions) -> None:
    crf = field(rule)
    for _ in range(20):
        scores, _, sequences = batch()
        found, plain = crf.decode(scores, sequences), constrained_viterbi(scores, sequences, rule)
        for start, length in zip(sequences.starts_B.tolist(), LENGTHS, strict=False):
            part = scores[start : start + length]
            choices = paths(length, rule) if length else [()]
            best = max(choices, key=lambda path: float(score(crf, part, path)) if path else 0.0)
            assert tuple(found[start : start + length].tolist()) == best
            own = max(choices, key=lambda path: float(sum(part[place, tag] for place, tag in enumerate(path))))
            assert tuple(plain[start : start + length].tolist()) == own
        outside = ~sequences.inside_T
        assert not found[outside].any()
        assert not plain[outside].any()


@pytest.mark.parametrize("later", [False, True])
def test_what_is_forbidden_is_never_decoded_however_it_scores(later: bool) -> None:
    crf = field(None if later else BIO)
    if later:
        crf.limit(BIO)
    scores = torch.tensor([[0.0, 0.0, 500.0], [400.0, 0.0, 0.0], [0.0, -300.0, 300.0]], dtype=torch.float64)
    sequences = Sequences.end_to_end([3])
    for found in (crf.decode(scores, sequences), constrained_viterbi(scores, sequences, BIO)):
        assert allowed(tuple(found.tolist()), BIO)


def test_labels_outside_do_not_count() -> None:
    crf, (scores, labels, sequences) = field(), batch()
    other = torch.where(sequences.inside_T, labels, -100)
    assert torch.equal(crf(scores, labels, sequences), crf(scores, other, sequences))


@pytest.mark.parametrize("lengths", [[], [0, 0]])
def test_nothing_to_score(lengths: list[int]) -> None:
    crf, sequences = field(), Sequences.end_to_end(lengths)
    scores = torch.zeros(0, TAGS)
    assert crf(scores, torch.zeros(0, dtype=torch.int64), sequences).tolist() == [0.0] * len(lengths)
    assert crf.decode(scores, sequences).shape == (0,)


def test_low_precision_is_computed_in_full() -> None:
    crf, (scores, labels, sequences) = field().float(), batch()
    scores = scores.bfloat16()
    assert torch.equal(crf(scores, labels, sequences), crf(scores.float(), labels, sequences))
    assert crf(scores, labels, sequences).dtype == torch.float32


def test_only_what_is_learned_is_saved() -> None:
    assert set(field(BIO).state_dict()) == {"transition_CC", "start_C", "end_C"}
