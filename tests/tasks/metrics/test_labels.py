"""Scores of labels and numbers are those of plain loops."""

import json

import numpy as np
import pytest

from regard.system.errors import RegardError
from regard.tasks.metrics.labels import class_scores, label_scores, number_scores
from tests.refusals import refused

LABELS = ["a", "b", "c", "never"]


def f1(gold: list[bool], said: list[bool]) -> float:
    right = sum(one and other for one, other in zip(gold, said, strict=True))
    precision, recall = right / max(1, sum(said)), right / max(1, sum(gold))
    return 2 * precision * recall / (precision + recall) if right else 0.0


def test_one_label_a_text() -> None:
    gold, said = np.random.randint(3, size=50).tolist(), np.random.randint(3, size=50).tolist()
    found = class_scores(gold, said, LABELS)
    of_each = [f1([one == label for one in gold], [one == label for one in said]) for label in range(3)]
    assert found.accuracy == pytest.approx(100 * sum(map(int.__eq__, gold, said)) / 50)
    assert found.macro_f1 == pytest.approx(100 * sum(of_each) / 3)
    assert [found.classes[label].f1 for label in LABELS[:3]] == pytest.approx([100 * one for one in of_each])
    pairs = list(zip(gold, said, strict=True))
    assert found.confusion_CC.tolist() == [[pairs.count((row, column)) for column in range(4)] for row in range(4)]
    assert found.texts == 50
    most = max(((row, column) for row in range(3) for column in range(3) if row != column), key=pairs.count)
    assert found.confusions(1) == [(LABELS[most[0]], LABELS[most[1]], pairs.count(most))]
    assert len(found.confusions()) == len({pair for pair in pairs if pair[0] != pair[1]})
    assert json.loads(json.dumps(found.to_dict()))["classes"]["never"]["gold"] == 0
    only_said = class_scores([0, 0], [0, 3], LABELS)  # which lowers the mean
    assert only_said.macro_f1 == pytest.approx(100 * (2 / 3) / 2)


def test_any_number_of_labels_a_text() -> None:
    gold, said = np.random.rand(2, 40, 4) < 0.4
    gold[:, 3] = said[:, 3] = False
    found = label_scores(gold, said, LABELS)
    assert found.exact == pytest.approx(100 * sum(map(np.array_equal, gold, said)) / 40)
    assert found.micro.f1 == pytest.approx(100 * f1(gold.flatten().tolist(), said.flatten().tolist()))
    of_each = [f1(gold[:, label].tolist(), said[:, label].tolist()) for label in range(3)]
    assert found.macro_f1 == pytest.approx(100 * sum(of_each) / 3)
    assert json.loads(json.dumps(found.to_dict()))["micro"]["gold"] == gold.sum()


def rank(values: list[float], one: float) -> float:
    return sum(other < one for other in values) + (1 + values.count(one)) / 2


def test_numbers() -> None:
    gold = np.round(np.random.randn(30), 1)
    said = np.round(gold + np.random.randn(30), 1)
    found = number_scores(gold, said)
    squares = [(a - b) ** 2 for a, b in zip(gold, said, strict=True)]
    assert found.mean_squared_error == pytest.approx(sum(squares) / 30, abs=1e-12)
    assert found.pearson == pytest.approx(np.corrcoef(gold, said)[0, 1])
    ranks = [[rank(side.tolist(), one) for one in side.tolist()] for side in (gold, said)]
    assert found.spearman == pytest.approx(np.corrcoef(ranks)[0, 1])
    assert number_scores(gold, gold**3).spearman == pytest.approx(1.0)
    assert number_scores([1, 2], [3, 3]).pearson == 0.0
    assert json.loads(json.dumps(found.to_dict()))["texts"] == 30


def test_nothing_to_score_and_sides_of_unlike_size() -> None:
    with refused(RegardError):
        class_scores([], [], LABELS)
    with refused(RegardError, None, "2", "1"):
        class_scores([0, 1], [0], LABELS)
    with refused(RegardError):
        number_scores([], [])
