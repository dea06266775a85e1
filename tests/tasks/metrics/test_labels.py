"""Scores of labels and numbers are those of plain loops; of tags and spans nervaluate's, in whatever scheme."""

import json
import random

import numpy as np
import pytest
from nervaluate import Evaluator

from regard.system.errors import RegardError
from regard.tasks.metrics import labels as scores
from regard.tasks.metrics.labels import (
    Counts,
    class_scores,
    label_table,
    number_scores,
    span_scores,
    tag_accuracy,
    tag_scores,
)
from regard.text.tags import Span, spans_of
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
    found = scores.label_scores(gold, said, LABELS)
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


KINDS = ("LOC", "ORG", "PER")
Corpus = tuple[list[list[str]], list[list[str]]]


def drawn_tags(seed: int, sentences: int = 40) -> Corpus:
    """BIO tags, well-formed and not, and the same with some changed."""
    drawn = random.Random(seed)
    tags = ["O"] * 4 + [f"{letter}-{label}" for letter in "BI" for label in KINDS]
    gold = [drawn.choices(tags, k=drawn.randint(1, 12)) for _ in range(sentences)]
    said = [[drawn.choice(tags) if drawn.random() < 0.3 else tag for tag in one] for one in gold]
    return gold, said


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_nervaluates(seed: int) -> None:
    sides = [[spans_of(one) for one in side] for side in drawn_tags(seed)]
    dicts = ([[{"start": b, "end": e - 1, "label": name} for b, e, name in one] for one in side] for side in sides)
    theirs = Evaluator(*dicts, tags=list(KINDS), loader="dict").evaluate()
    ours = span_scores(*sides)
    pairs = [(ours.spans, theirs["overall"]["strict"]), (ours.boundaries, theirs["overall"]["exact"])]
    for counts, found in pairs + [(ours.types[label], theirs["entities"][label]["strict"]) for label in KINDS]:
        assert (counts.correct, counts.predicted, counts.gold) == (found.correct, found.actual, found.possible)
        assert counts.precision == pytest.approx(100 * found.precision)
        assert counts.recall == pytest.approx(100 * found.recall)
        assert counts.f1 == pytest.approx(100 * found.f1)


def test_a_surface_form_counts_once() -> None:
    words = [["Ann", "saw", "Rome"], ["Ann", "Lee"], ["Rome"]]
    gold: list[list[Span]] = [[(0, 1, "PER"), (2, 3, "LOC")], [(0, 2, "PER")], [(0, 1, "LOC")]]
    said: list[list[Span]] = [[(0, 1, "PER"), (2, 3, "PER")], [(0, 1, "PER")], [(0, 1, "LOC")]]
    found = span_scores(gold, said, words)
    assert found.surface == Counts(correct=2, predicted=3, gold=3)  # Ann PER, Rome LOC; Rome PER; Ann Lee PER
    assert found.spans == Counts(correct=2, predicted=4, gold=4)
    assert span_scores(gold, said).surface is None
    assert json.loads(json.dumps(found.to_dict()))["surface"]["correct"] == 2


def test_nothing_found_is_nought() -> None:
    found = span_scores([[]], [[]])
    assert (found.spans.precision, found.spans.recall, found.spans.f1) == (0.0, 0.0, 0.0)
    assert span_scores([[(0, 1, "x")]], [[]]).types == {"x": Counts(0, 0, 1)}


def test_tags_of_words_and_what_cannot_be_scored() -> None:
    assert tag_accuracy([["a", "b"], ["c"]], [["a", "c"], ["c"]]) == pytest.approx(200 / 3)
    with refused(RegardError):
        tag_accuracy([["a"]], [["a", "b"]])
    with refused(RegardError):
        tag_accuracy([[]], [[]])
    with refused(RegardError, None, "1", "0"):
        span_scores([[]], [])
    for score in (span_scores, tag_accuracy, lambda gold, said: tag_scores(gold, said, "none")):
        with refused(RegardError):
            score([], [])


GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC"]]
SAID = [["B-PER", "I-PER", "O", "B-PER"], ["O", "B-LOC"]]


def test_words_with_a_tag_of_their_own_are_counted() -> None:
    found = tag_scores([["A", "B"], ["C"]], [["A", "C"], ["C"]], "none")
    assert found.values == {"accuracy": pytest.approx(200 / 3)}
    assert (found.spans, found.words) == (None, 3)
    assert found.card_lines() == ["accuracy 66.67 (3 words)"]


def test_spans_are_right_with_both_ends_and_the_label() -> None:
    found = tag_scores(GOLD, SAID, "bio")
    assert list(found.values) == ["f1", "accuracy"]
    assert found.values == {"f1": pytest.approx(200 / 3), "accuracy": pytest.approx(500 / 6)}
    assert found.card_lines() == [
        "F1 66.67 (precision 66.67, recall 66.67)",
        "accuracy 83.33 (6 words)",
        "F1 of LOC 66.67 (2)",
        "F1 of PER 66.67 (1)",
    ]
    assert json.loads(json.dumps(found.to_dict()))["spans"]["correct"] == 2
    assert tag_scores(GOLD, SAID, "bio", [["a", "b", "c", "d"], ["e", "f"]]).to_dict()["surface"]["gold"] == 3


def test_other_schemes_are_compared_as_bio() -> None:
    written = [["B-PER", "L-PER", "O", "U-PER"], ["O", "U-LOC"]]
    assert tag_scores(GOLD, written, "bilou").values == tag_scores(GOLD, SAID, "bio").values
    inside = [["I-PER", "I-PER", "O", "I-PER"], ["O", "I-LOC"]]
    assert tag_scores(GOLD, inside, "io").values == tag_scores(GOLD, SAID, "bio").values


def test_labels_neither_there_nor_said_are_left_out_of_the_table() -> None:
    lines = label_table({"a": Counts(1, 2, 3), "日本": Counts(0, 0, 1), "none": Counts(0, 0, 0)}, "label")
    assert [line.split()[0] for line in lines] == ["label", "a", "日本"]
    assert lines[1].split()[1:] == ["50.00", "33.33", "40.00", "3"]
