"""Temperatures lie where the loss has no slope; errors and thresholds are those of plain loops."""

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from regard.system.errors import RegardError, UsageError
from regard.tasks.metrics import calibration
from tests.refusals import refused


def texts(heat: float) -> tuple[np.ndarray, np.ndarray]:
    """Logits that are too sure by a factor, and labels drawn from what they should say."""
    logits = np.random.randn(4000, 5) * 2
    rows = np.exp(logits - calibration.log_sum_exp(logits)[:, None])
    return logits * heat, np.array([np.random.choice(5, p=row) for row in rows])


def slope(loss: Callable[[torch.Tensor], torch.Tensor], heat: float) -> float:
    at = torch.tensor(heat, dtype=torch.float64, requires_grad=True)
    loss(at).backward()
    return float(at.grad)  # type: ignore[arg-type]


@pytest.mark.parametrize("heat", [0.5, 3.0])
def test_the_temperature_is_found(heat: float) -> None:
    logits, gold = texts(heat)
    found = calibration.temperature(logits, gold)
    assert found == pytest.approx(heat, rel=0.1)
    smooth = (1 - 4001 / 4002) * 5 / 4  # torch's smoothing gives a part of it back to the right label

    def loss(at: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(torch.tensor(logits) / at, torch.tensor(gold), label_smoothing=smooth)

    assert abs(slope(loss, found)) < 1e-6
    sure = [np.exp(logits / at - calibration.log_sum_exp(logits / at)[:, None]).max(1) for at in (1.0, found)]
    right = logits.argmax(1) == gold
    before, after = (calibration.expected_calibration_error(one, right) for one in sure)
    assert after < 0.03 < before


def test_the_temperature_of_labels_that_are_there_or_not() -> None:
    logits = np.random.randn(3000, 3) * 4
    gold = np.random.rand(3000, 3) < 1 / (1 + np.exp(-logits / 2))
    found = calibration.temperature_of_labels(logits, gold)
    assert found == pytest.approx(2.0, rel=0.1)
    targets = torch.where(torch.tensor(gold), 3001 / 3002, 1 / 3002).double()
    assert abs(slope(lambda at: F.binary_cross_entropy_with_logits(torch.tensor(logits) / at, targets), found)) < 1e-6


def test_a_temperature_stays_within_its_limits() -> None:
    logits = np.array([[100.0, 0.0], [0.0, 100.0]])
    assert calibration.temperature(logits / 1e4, np.array([0, 1])) == pytest.approx(calibration.COLDEST)
    assert calibration.temperature(logits, np.array([1, 0])) == pytest.approx(calibration.HOTTEST)
    right = np.array([True, False])
    limits = {
        calibration.COLDEST: "limit of 0.1: .* are less sure",
        calibration.HOTTEST: "limit of 1000: .* surer than",
    }
    for heat, sure in limits.items():
        (_, said) = calibration.calibration_lines(np.array([0.9, 0.6]), right, heat * (1 + 1e-7))
        assert re.search(sure, said)
    assert calibration.calibration_lines(np.array([0.9, 0.6]), right, 9.9) == [
        "expected calibration error 0.3500 at temperature 9.900"
    ]
    with refused(RegardError):
        calibration.temperature(np.zeros((0, 2)), np.zeros(0, dtype=np.int64))


@pytest.mark.parametrize("texts", [5, 30, 1000])
def test_a_few_texts_that_are_all_right_make_nothing_certain(texts: int) -> None:
    """So many texts show at most that (n + 1) of (n + 2) are right [Platt99]."""
    gold = np.arange(texts) % 3
    logits = np.where(np.arange(3) == gold[:, None], 4.0, 0.0)
    scaled = logits / calibration.temperature(logits, gold)
    probability = np.exp(scaled - calibration.log_sum_exp(scaled)[:, None]).max(1)
    np.testing.assert_allclose(probability, (texts + 1) / (texts + 2), rtol=1e-6)
    scaled = (2 * logits - 4) / calibration.temperature_of_labels(2 * logits - 4, logits > 2)
    np.testing.assert_allclose(1 / (1 + np.exp(-np.abs(scaled))), (texts + 1) / (texts + 2), rtol=1e-6)


def test_the_calibration_error_is_the_sum_over_bins() -> None:
    confidence, right = np.array([0.0, 0.05, 0.1, 0.2, 0.95, 0.95, 1.0]), np.array([0, 1, 0, 0, 1, 0, 1]) > 0
    expected = 3 * (1 / 3 - 0.05) + 0.2 + 3 * (2.9 / 3 - 2 / 3)  # three texts up to 0.1, one to 0.2, three above 0.9
    assert calibration.expected_calibration_error(confidence, right, 10) == pytest.approx(expected / 7)
    assert calibration.expected_calibration_error(np.zeros(0), np.zeros(0, dtype=np.bool_)) == 0.0


def drawn(count: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    outside = np.random.rand(count) < 0.4
    confidence = np.round(np.clip(np.where(outside, 0.4, 0.7) + np.random.randn(count) / 5, 0, 1), 2)
    return confidence, np.random.rand(count) < 0.8, outside


def by_hand(confidence: np.ndarray, right: np.ndarray, outside: np.ndarray, threshold: float) -> dict[str, float]:
    rows = list(zip(confidence, right, outside, strict=True))
    right_in = sum(good and not out and sure >= threshold for sure, good, out in rows)
    right_out = sum(out and sure < threshold for sure, _, out in rows)
    said = sum(sure < threshold for sure, _, _ in rows)
    outs = sum(out for _, _, out in rows)
    inside, recall = 100 * right_in / (len(rows) - outs), 100 * right_out / outs
    return {
        "accuracy": 100 * (right_in + right_out) / len(rows),
        "f1": 200 * right_out / (said + outs),
        "balanced": (inside + recall) / 2,
        "recall": recall,
        "in_scope_accuracy": inside,
    }


def test_what_thresholds_accept_is_counted() -> None:
    confidence, right, outside = drawn()
    thresholds = np.array([0.0, 0.31, 0.5, 0.505, 1.0])
    found = calibration.acceptance_scores(confidence, right, outside, thresholds)
    for one, threshold in zip(found, thresholds, strict=True):
        for name, value in by_hand(confidence, right, outside, threshold).items():
            score = calibration.SCORES[name](one) if name in calibration.SCORES else getattr(one, name)
            assert score == pytest.approx(value), (name, threshold)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("score", calibration.SCORES)
def test_no_threshold_scores_better(score: str) -> None:
    for _ in range(10):
        confidence, right, outside = drawn()
        chosen = calibration.choose_threshold(confidence, right, outside, score)
        every = [by_hand(confidence, right, outside, one)[score] for one in np.linspace(0, 1, 1001)]
        assert by_hand(confidence, right, outside, chosen.value)[score] == pytest.approx(max(every))
        assert chosen.f1 == pytest.approx(by_hand(confidence, right, outside, chosen.value)["f1"])


def test_a_threshold_needs_both_kinds_of_texts() -> None:
    confidence, right, outside = drawn()
    for one in (np.zeros_like(outside), np.ones_like(outside)):
        with refused(RegardError):
            calibration.choose_threshold(confidence, right, one)
    with refused(UsageError, "classification.threshold_by", "'luck'", "balanced", "f1"):
        calibration.choose_threshold(confidence, right, outside, "luck")


def test_a_mixture_is_the_ratio_of_the_two_best_factors() -> None:
    """There the likelihood, which is concave in both, has no slope."""
    random = np.random.default_rng(4)
    gold_B = random.integers(3, size=400)
    one_BC, more_BC = random.normal(size=(2, 400, 3))
    one_BC[np.arange(400), gold_B] += 0.7
    more_BC[np.arange(400), gold_B] += 1.4
    found = calibration.mixture(one_BC, more_BC, gold_B)
    wanted = calibration.sure(400)
    target_BC = np.full((400, 3), (1 - wanted) / 2)
    target_BC[np.arange(400), gold_B] = wanted
    at = torch.tensor(found, dtype=torch.float64, requires_grad=True)
    score_BC = at[0] * torch.tensor(one_BC) + at[1] * torch.tensor(more_BC)
    (score_BC.logsumexp(1) - (torch.tensor(target_BC) * score_BC).sum(1)).mean().backward()
    assert at.grad.abs().max() < 1e-6  # type: ignore[union-attr]


def test_a_mixture_with_what_says_nothing_or_the_wrong_thing() -> None:
    random = np.random.default_rng(4)
    gold_B = random.integers(3, size=400)
    good_BC, noise_BC = random.normal(size=(2, 400, 3))
    good_BC[np.arange(400), gold_B] += 2
    assert calibration.mixture(good_BC, -good_BC + 0.1 * noise_BC, gold_B)[1] == 0
    own, more = calibration.mixture(np.zeros((400, 3)), good_BC, gold_B)
    assert 0 < own < more
    own, more = calibration.mixture(noise_BC, good_BC, gold_B)
    assert 5 < more / own < calibration.LARGEST_MIXTURE + 1
    assert all(np.isfinite(calibration.mixture(np.zeros((9, 3)), np.zeros((9, 3)), gold_B[:9])))
    with refused(RegardError):
        calibration.mixture(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, np.int64))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
def test_one_in_a_hundred_right_outputs_is_doubted_where_most_are_right_and_else_one_of_all(share: float) -> None:
    right = np.random.rand(20_000) < share
    found = np.random.rand(20_000) * np.where(right, 1.0, 0.1)
    below = calibration.doubted_below(found.tolist(), right.tolist())
    counted = found[right] if share > 0.5 else found
    assert (counted < below).mean() == pytest.approx(0.01, abs=0.001)
    assert below == float(f"{below:.4g}")


@pytest.mark.parametrize(
    ("found", "right"), [([], 0), ([0.5] * 99, 0), ([0.5] * 198, 99), ([0.5] * 190, 99), ([math.nan] * 200, 0)]
)
def test_nothing_is_doubted_by_too_few_outputs_or_by_no_numbers(found: list[float], right: int) -> None:
    expected = 0.5 if len(found) == 198 else 0.0  # exactly half of them are right: all count
    assert calibration.doubted_below(found, [place < right for place in range(len(found))]) == expected
