"""Scores of tags: of words one by one, and of the spans they say, whatever these are written in."""

from __future__ import annotations

import json

import pytest

from regard.system.errors import RegardError
from regard.tasks.metrics.spans import tag_scores
from tests.refusals import refused

GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC"]]
SAID = [["B-PER", "I-PER", "O", "B-PER"], ["O", "B-LOC"]]


def test_words_with_a_tag_of_their_own_are_counted() -> None:
    found = tag_scores([["A", "B"], ["C"]], [["A", "C"], ["C"]], "none")
    assert found.values == {"accuracy": pytest.approx(200 / 3)}
    assert (found.spans, found.words) == (None, 3)
    assert found.lines() == ["accuracy 66.67 (3 words)"]


def test_spans_are_right_with_both_ends_and_the_label() -> None:
    found = tag_scores(GOLD, SAID, "bio")
    assert list(found.values) == ["f1", "accuracy"]
    assert found.values == {"f1": pytest.approx(200 / 3), "accuracy": pytest.approx(500 / 6)}
    assert found.lines() == [
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


def test_nothing_to_score_is_said() -> None:
    with refused(RegardError):
        tag_scores([], [], "none")
