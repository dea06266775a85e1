"""Temperature scaling, isotonic maps, out-of-scope thresholds and doubted outputs, all fitted on validation texts.

Framework-free: logits and probabilities are arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from regard.system.errors import RegardError, UsageError

Floats = NDArray[np.float64]

COLDEST, HOTTEST = 0.1, 1000.0
"""Limits of the temperature: where every validation text is right, the best one would be 0."""

PRIOR = 10.0
"""Texts that what was known before counts as, where factors of numbers are fitted."""
_GOLDEN = (5**0.5 - 1) / 2
_STEPS = 60
LARGEST_MIXTURE = 100.0
"""Limit of the factor of other scores: where the first say nothing yet, it would be without end."""
_NEWTON, _SHORTEST, _RIDGE = 30, 1e-3, 1e-9
"""Of Newton's method: most steps, the shortest part of one, and what keeps the system solvable."""
BINS = 20
"""Of an isotonic map, at most."""
UNUSUAL = 0.01
"""The share of outputs that are doubted although they are right."""
SCORES: dict[str, Callable[[Threshold], float]] = {
    "balanced": lambda accepted: (accepted.in_scope_accuracy + accepted.recall) / 2,
    "accuracy": attrgetter("accuracy"),
    "f1": attrgetter("f1"),
}
"""Criteria to choose a threshold; ``balanced`` is the mean of accuracy in scope and recall out of scope."""


def expected_calibration_error(confidence_B: Floats, right_B: NDArray[np.bool_], bins: int = 15) -> float:
    """How far probabilities are from the share of right answers, on average over bins of equal width [Guo17 §2, eq. 3].

    Args:
        confidence_B: the probability of the prediction, 0 to 1.
        right_B: whether it is correct.
        bins: number of bins in 0 to 1.
    """
    bin_B = np.clip(np.ceil(confidence_B * bins).astype(np.int64) - 1, 0, bins - 1)
    gap = np.bincount(bin_B, right_B - confidence_B, minlength=bins)
    return float(np.abs(gap).sum()) / max(1, len(confidence_B))


def temperature(logits_BC: Floats, gold_B: NDArray[np.int64]) -> float:
    """What logits are divided by before the softmax, so that the right labels are most probable [Guo17 §4.2].

    Right labels are wanted with :func:`sure`, not with certainty: else a few texts that are all right would make every
    later probability one.

    Raises:
        RegardError: no texts.
    """
    rows, wanted, others = np.arange(len(gold_B)), sure(len(gold_B)), max(1, logits_BC.shape[1] - 1)
    right_B = logits_BC[rows, gold_B]
    target_B = wanted * right_B + (1 - wanted) * (logits_BC.sum(1) - right_B) / others

    def loss(heat: float) -> float:
        return float((log_sum_exp(logits_BC / heat) - target_B / heat).mean())

    return _coolest(loss, len(gold_B))


def temperature_of_labels(logits_BC: Floats, gold_BC: NDArray[np.bool_]) -> float:
    """The same for labels that are each there or not: what logits are divided by before the sigmoid.

    Raises:
        RegardError: no texts.
    """
    wrong_BC, wanted = np.where(gold_BC, -1.0, 1.0) * logits_BC, sure(len(gold_BC))

    def loss(heat: float) -> float:
        each_BC = wanted * np.logaddexp(0.0, wrong_BC / heat) + (1 - wanted) * np.logaddexp(0.0, -wrong_BC / heat)
        return float(each_BC.mean())

    return _coolest(loss, len(gold_BC))


def mixture(logits_BC: Floats, more_BC: Floats, gold_B: NDArray[np.int64]) -> tuple[float, float]:
    """What two kinds of logits are multiplied by before they are added, so that the right labels are most probable.

    As :func:`temperature`, for both at once: the likelihood is concave in both factors, and Newton's method finds them.
    Neither is negative, and the second is at most :data:`LARGEST_MIXTURE` times the first.

    Args:
        logits_BC, more_BC: of the same texts.
        gold_B: the right labels.

    Raises:
        RegardError: no texts.
    """
    if not len(gold_B):
        raise RegardError("no texts to fit a mixture to")
    both_KBC, wanted = np.stack([logits_BC, more_BC]), sure(len(gold_B))
    right_KB = both_KBC[:, np.arange(len(gold_B)), gold_B]
    others = max(1, both_KBC.shape[2] - 1)
    target_KB = wanted * right_KB + (1 - wanted) * (both_KBC.sum(2) - right_KB) / others
    factor_K = np.array([1.0, 1.0])

    def loss(factor_K: Floats) -> float:
        return float((log_sum_exp(np.tensordot(factor_K, both_KBC, 1)) - factor_K @ target_KB).mean())

    for _ in range(_NEWTON):
        mixed_BC = np.tensordot(factor_K, both_KBC, 1)
        p_BC = np.exp(mixed_BC - log_sum_exp(mixed_BC)[:, None])
        mean_KB = (p_BC * both_KBC).sum(2)
        gradient_K = (mean_KB - target_KB).mean(1)
        centred_KBC = both_KBC - mean_KB[:, :, None]
        hessian_KK = np.einsum("bc,kbc,lbc->kl", p_BC, centred_KBC, centred_KBC) / len(gold_B)
        step_K = np.linalg.solve(hessian_KK + _RIDGE * np.eye(2), gradient_K)
        size = 1.0
        while size > _SHORTEST and not loss(factor_K - size * step_K) < loss(factor_K):
            size /= 2
        if size <= _SHORTEST:
            break
        factor_K = factor_K - size * step_K
    own, more = np.maximum(factor_K, 0.0).tolist()
    return max(own, more / LARGEST_MIXTURE, _RIDGE), more


def least_squares(number_B: Floats, wanted_B: Floats) -> tuple[float, float]:
    """What numbers are multiplied by and what is added, so that they are near to what is wanted; all are standardised.

    As long as there are few texts the factor stays near 1 and what is added near 0: these count as much as
    :data:`PRIOR` texts.
    """
    given_B2 = np.stack([number_B, np.ones(len(number_B))]).T
    matrix_22 = given_B2.T @ given_B2 + PRIOR * np.eye(2)
    factor, shift = np.linalg.solve(matrix_22, given_B2.T @ wanted_B + PRIOR * np.array([1.0, 0.0]))
    return float(factor), float(shift)


def doubted_below(confidences: Sequence[float], right: Sequence[bool]) -> float:
    """The confidence of which only :data:`UNUSUAL` of the right outputs have less, to four digits.

    Right are those that equal their references, where most do. Else a text has many right outputs, as in translation
    it mostly has, and all count. So it is known how many false alarms there are among texts like these.

    Args:
        confidences: of the outputs.
        right: whether each equals its reference.

    Returns:
        0, which doubts nothing, where they are too few for that share to be one of them, or where a model knows no
        numbers.
    """
    found = np.array(confidences)
    if 2 * sum(right) > len(found):
        found = found[np.array(right)]
    if len(found) * UNUSUAL < 1 or not np.isfinite(found).all():
        return 0.0
    return float(f"{np.quantile(found, UNUSUAL):.4g}")


def monotone_map(given_B: Floats, right_B: NDArray[np.bool_]) -> tuple[tuple[float, float], ...]:
    """What numbers say of being right, both rising: isotonic regression over bins of equal counts [Zadrozny02].

    Args:
        given_B: the larger, the more probable it is right.
        right_B: whether it is.

    Returns:
        To five digits, for :data:`BINS` at most: neighbours in which the share of right ones would fall are joined.
        None where a bin would have fewer than 50.
    """
    if len(given_B) < 50 * BINS or not np.isfinite(given_B).all():
        return ()
    kept: list[Floats] = []  # sums of given and of right, and counts
    for part in np.array_split(given_B.argsort(kind="stable"), BINS):
        kept.append(np.array([given_B[part].sum(), right_B[part].sum(), len(part)]))
        while len(kept) > 1 and kept[-2][1] * kept[-1][2] >= kept[-1][1] * kept[-2][2]:
            last = kept.pop()
            kept[-1] = kept[-1] + last
    return tuple((float(f"{given / n:.5g}"), float(f"{right / n:.5g}")) for given, right, n in kept)


def sure(texts: int) -> float:
    """Highest probability of the right label that n texts can support: ``(n + 1) / (n + 2)`` [Platt99]."""
    return (texts + 1) / (texts + 2)


def _coolest(loss: Callable[[float], float], texts: int) -> float:
    """The temperature of least loss, by golden section: the loss is convex in its inverse, so it has one valley."""
    if not texts:
        raise RegardError("no texts to fit a temperature to")

    def heated(logarithm: float) -> float:
        return loss(float(np.exp(logarithm)))

    low, high = np.log(COLDEST), np.log(HOTTEST)
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    left_loss, right_loss = heated(left), heated(right)
    for _ in range(_STEPS):
        if left_loss <= right_loss:
            high, right, right_loss = right, left, left_loss
            left = high - _GOLDEN * (high - low)
            left_loss = heated(left)
        else:
            low, left, left_loss = left, right, right_loss
            right = low + _GOLDEN * (high - low)
            right_loss = heated(right)
    return float(np.exp((low + high) / 2))


def calibration_lines(confidence_B: Floats, right_B: NDArray[np.bool_], temperature: float) -> list[str]:
    """Lines for a card: how far probabilities at a temperature can be trusted, and whether it ended at a limit."""
    error = expected_calibration_error(confidence_B, right_B)
    lines = [f"expected calibration error {error:.4f} at temperature {temperature:.3f}"]
    for limit, sure in ((COLDEST, "less sure"), (HOTTEST, "surer")):
        if abs(temperature - limit) < 1e-3 * limit:
            ended = f"the temperature ended at its limit of {limit:g}"
            lines.append(f"{ended}: probabilities are {sure} than they should be")
    return lines


def log_sum_exp(values_BC: Floats) -> Floats:
    """``log Σ exp`` of each row, without overflow."""
    most_B1 = values_BC.max(1, keepdims=True)
    return np.asarray(most_B1[:, 0] + np.log(np.exp(values_BC - most_B1).sum(1)))


@dataclass(frozen=True)
class Threshold:
    """A lowest accepted probability and its scores, 0 to 100; texts below it are classified as out of scope.

    Args:
        value: the probability.
        accuracy: the share of all texts that were treated rightly.
        in_scope_accuracy: the share of texts in scope with the right label; out-of-scope predictions are wrong.
        recall: the share of texts out of scope classified as such [Larson19 §3].
        f1: F1 of being out of scope.
    """

    value: float
    accuracy: float
    in_scope_accuracy: float
    recall: float
    f1: float


def acceptance_scores(
    confidence_B: Floats, right_B: NDArray[np.bool_], outside_B: NDArray[np.bool_], thresholds: Floats
) -> list[Threshold]:
    """What each threshold makes of texts: those with a lower confidence are classified as out of scope.

    Args:
        confidence_B: the probability of the best label that is in scope.
        right_B: whether that label is the right one (of texts out of scope it does not matter).
        outside_B: whether the text is out of scope.
        thresholds: in any order.
    """

    def below(chosen_B: NDArray[np.bool_]) -> Floats:
        return np.searchsorted(np.sort(confidence_B[chosen_B]), thresholds, "left").astype(np.float64)

    right_B = right_B & ~outside_B
    right_in, right_out = int(right_B.sum()) - below(right_B), below(outside_B)
    said_out = right_out + below(~outside_B)
    inside, outside = int((~outside_B).sum()), int(outside_B.sum())
    accuracy = 100 * (right_in + right_out) / max(1, inside + outside)
    in_scope_accuracy, recall = 100 * right_in / max(1, inside), 100 * right_out / max(1, outside)
    f1 = 200 * right_out / np.maximum(1, said_out + outside)
    return [Threshold(*row) for row in np.stack([thresholds, accuracy, in_scope_accuracy, recall, f1], 1).tolist()]


def choose_threshold(
    confidence_B: Floats, right_B: NDArray[np.bool_], outside_B: NDArray[np.bool_], score: str = "balanced"
) -> Threshold:
    """The threshold with the highest score on these texts; of several the lowest, half-way between two confidences.

    Args:
        confidence_B, right_B, outside_B: as :func:`acceptance_scores`.
        score: one of :data:`SCORES`. ``balanced`` does not depend on how many texts out of scope validation happens
            to have; ``accuracy`` and ``f1`` do.

    Raises:
        UsageError: no such score.
        RegardError: no text is out of scope, or all are; then there is nothing to choose by.
    """
    if score not in SCORES:
        raise UsageError(f"{score!r} is unknown; known are {', '.join(SCORES)}", "classification.threshold_by")
    if not outside_B.any() or outside_B.all():
        raise RegardError("a threshold needs validation texts of both kinds: in scope and out of scope")
    known = np.unique(confidence_B)
    thresholds = np.concatenate([[0.0], (known[1:] + known[:-1]) / 2, [1.0]])
    return max(acceptance_scores(confidence_B, right_B, outside_B, thresholds), key=SCORES[score])
