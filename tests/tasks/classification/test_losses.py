"""What a classifier is judged by: what is not known counts nothing, what is of no class is for the threshold alone."""

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch

from regard.config import Classification as Section
from regard.data.prepare.windowing import OUTSIDE, LabelIds
from regard.tasks.assets import FittedValues
from regard.tasks.classification.losses import Labels, MultiLabel, Regression, SingleLabel
from regard.tasks.metrics.calibration import SCORES, choose_threshold

NAMES = ("a", "b", "c")


def section(**fields: Any) -> Section:
    return Section.model_validate(fields)


def labels(kind: Any, said: list[str], outside: str = "") -> Labels:
    rows = [LabelIds(kind, NAMES, outside).of(one) for one in said]
    return Labels(np.concatenate(rows), np.array(list(map(len, rows)), np.int64))


def wanted(criterion: SingleLabel, given: Labels) -> Any:
    return criterion.targets(given, torch.device("cpu"))


def drawn(count: int = 40) -> tuple[list[str], np.ndarray]:
    draw = np.random.default_rng(5)
    gold = draw.integers(0, 3, count)
    return [NAMES[one] for one in gold], draw.normal(size=(count, 3)) + 1.5 * np.eye(3)[gold]


def test_labels_that_are_not_known_change_nothing() -> None:
    said, score_BC = drawn()
    more = np.vstack([score_BC, 9 * score_BC[:6]])
    one = SingleLabel(section(out_of_scope="oos"), 0.1, 3, None)
    plain = wanted(one, labels("single", said, "oos"))
    strange = wanted(one, labels("single", [*said, *["x"] * 6], "oos"))
    assert one.scores(score_BC, plain.numpy()) == one.scores(more, strange.numpy())
    assert one.fit(score_BC, plain.numpy()) == one.fit(more, strange.numpy())
    for training in (False, True):
        first, second = (
            one.loss(torch.tensor(rows), right, training) for rows, right in ((score_BC, plain), (more, strange))
        )
        assert first.count == second.count == 40
        assert torch.equal(first.total, second.total)
    several = MultiLabel(section(kind="multi"), 0.1, 3, None)
    assert wanted(several, labels("multi", ["a|x|c", "", "x"], "oos")).tolist() == [[1, 0, 1], [0, 0, 0], [0, 0, 0]]


def test_in_training_a_rare_class_weighs_more_where_weights_are_balanced() -> None:
    learned, score_BC = Labels(np.array([0, 0, 0, 1]), np.ones(4, np.int64)), torch.tensor([[2.0, 0.0], [1.0, 0.0]])
    for weights, wanted_C in (("none", None), ("balanced", [4 / 6, 4 / 2])):
        one = SingleLabel.of(section(class_weights=weights), 0.0, 2, learned)
        loss, plain = (one.loss(score_BC, torch.tensor([0, 1]), training) for training in (True, False))
        each = -score_BC.log_softmax(1)[[0, 1], [0, 1]]
        assert plain.total.item() == pytest.approx(each.sum().item())
        assert loss.total.item() == pytest.approx((each * torch.tensor(wanted_C or [1.0, 1.0])).sum().item())


def test_what_is_of_no_class_moves_the_threshold_alone() -> None:
    said, score_BC = drawn()
    more = np.vstack([score_BC, score_BC[:6] / 2])
    one = SingleLabel(section(out_of_scope="oos"), 0.1, 3, None)
    plain, outside = (wanted(one, labels("single", given, "oos")).numpy() for given in (said, [*said, *["oos"] * 6]))
    assert one.scores(score_BC, plain) == one.scores(more, outside)
    before, after = one.fit(score_BC, plain), one.fit(more, outside)
    assert before.temperature == after.temperature
    assert before.threshold == 0 < after.threshold < 1
    assert "no threshold was chosen" in one.notes(score_BC, plain, before)[-1]
    probability_BC = np.exp(more / after.temperature)
    probability_BC /= probability_BC.sum(1, keepdims=True)
    believed = probability_BC.max(1) >= after.threshold
    inside = 100 * np.mean(believed[:40] & (probability_BC[:40].argmax(1) == plain))
    outcome = f"accuracy in scope {inside:.2f}, recall out of scope {100 * np.mean(~believed[40:]):.2f}"
    assert outcome in one.notes(more, outside, after)[-1]
    asked = SingleLabel(section(out_of_scope="oos", threshold=0.6), 0.1, 3, None)
    assert (fitted := asked.fit(more, outside)).threshold == 0.6
    assert "below probability 0.600, as the recipe says" in asked.notes(more, outside, fitted)[-1]
    sides = probability_BC.max(1), probability_BC.argmax(1) == outside, outside == 3 + OUTSIDE
    assert get_args(Section.model_fields["threshold_by"].annotation) == tuple(SCORES)
    for by in SCORES:
        asked = SingleLabel(section(out_of_scope="oos", threshold_by=by), 0.1, 3, None)
        assert (fitted := asked.fit(more, outside)).threshold == pytest.approx(choose_threshold(*sides, by).value)
        assert f"chosen by {by}" in asked.notes(more, outside, fitted)[-1]
    assert len(SingleLabel(section(), 0.1, 3, None).notes(score_BC, plain, before)) == 1  # nobody asked


def test_labels_are_named_for_people() -> None:
    one, several = SingleLabel(section(out_of_scope="oos"), 0.0, 3, None), MultiLabel(section(), 0.0, 3, None)
    ids = LabelIds("single", NAMES, "oos")
    assert [one.label_text(ids.of(label), NAMES) for label in ("b", "x", "oos")] == ["b", "(not known)", "oos"]
    ids = LabelIds("multi", NAMES)
    assert [several.label_text(ids.of(label), NAMES) for label in ("c|a", "x", "")] == ["c|a", "(none)", "(none)"]
    assert Regression(section()).label_text(LabelIds("regression", ()).of("-2.5"), ()) == "-2.5"


def test_numbers_are_learned_in_units_of_their_variance() -> None:
    labels = Labels(bits([1000.0, 1200.0, 800.0]), np.ones(3, np.int64))
    one = Regression.of(section(class_weights="balanced"), 0.0, 1, labels)  # of classes: they say nothing here
    assert (one.mean, one.deviation) == (pytest.approx(1000), pytest.approx(163.3, abs=0.1))
    wanted_B = one.targets(labels, torch.device("cpu"))
    exact_BC = ((wanted_B.double() - one.mean) / one.deviation)[:, None]
    assert one.loss(exact_BC, wanted_B, True).total == pytest.approx(0, abs=1e-9)
    start = one.start
    assert exact_BC[:, 0].numpy() / start.temperature + start.shift == pytest.approx(wanted_B.numpy())
    assert one.loss_scores(exact_BC.numpy(), start) == pytest.approx(exact_BC.numpy())


def test_numbers_are_calibrated_by_least_squares() -> None:
    own_B1 = np.random.default_rng(1).normal(size=(20_000, 1))
    one = Regression(section(), mean=5.0, deviation=4.0)
    found = one.fit(own_B1, 7 + 2 * own_B1[:, 0])
    assert (1 / found.temperature, found.shift) == pytest.approx((2, 7), rel=2e-3)
    assert one.start == one.fit(own_B1, 5 - own_B1[:, 0])  # it tells nothing
    assert Regression(section(calibrate=False), mean=5.0, deviation=4.0).fit(own_B1, 7 + 2 * own_B1[:, 0]) == one.start


def test_a_few_texts_calibrate_hardly() -> None:
    """Two could be met exactly by two values."""
    found = Regression(section(), mean=100.0, deviation=10.0).fit(np.array([[0.2], [0.3]]), np.array([130.0, 70.0]))
    assert 1 / found.temperature == pytest.approx(10, abs=0.5)
    assert found.shift == pytest.approx(100, abs=3)


def test_the_part_of_ngrams_stays_with_and_without_calibration() -> None:
    _, score_BC = drawn()
    mixed, gold_B = FittedValues(0.5, ngrams=3.0), np.arange(len(score_BC)) % 3
    for calibrate in (True, False):
        one = SingleLabel(section(calibrate=calibrate), 0.0, 3, None)
        found = one.fit(score_BC, gold_B, mixed)
        assert found.ngrams == 3
        assert (found.temperature == 1) is not calibrate
        assert found == replace(one.fit(score_BC, gold_B), ngrams=3.0)


def bits(numbers: list[float]) -> np.ndarray:
    return np.array(numbers, np.float32).view(np.uint32).astype(np.int64)
