"""Span scores are nervaluate's and conlleval's."""

from __future__ import annotations

import json
import random

import pytest
from nervaluate import Evaluator

from regard.system.errors import RegardError
from regard.tasks.metrics.spans import Counts, span_scores, tag_accuracy
from regard.text.tags import Span, spans_of

LABELS = ("LOC", "ORG", "PER")
Corpus = tuple[list[list[str]], list[list[str]]]


def drawn_tags(seed: int, sentences: int = 40) -> Corpus:
    """BIO tags, well-formed and not, and the same with some changed."""
    drawn = random.Random(seed)
    tags = ["O"] * 4 + [f"{letter}-{label}" for letter in "BI" for label in LABELS]
    gold = [drawn.choices(tags, k=drawn.randint(1, 12)) for _ in range(sentences)]
    said = [[drawn.choice(tags) if drawn.random() < 0.3 else tag for tag in one] for one in gold]
    return gold, said


def spans(tags: list[list[str]]) -> list[list[Span]]:
    return [spans_of(one) for one in tags]


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_nervaluates(seed: int) -> None:
    gold, said = map(spans, drawn_tags(seed))
    dicts = [
        [[{"start": begin, "end": end - 1, "label": label} for begin, end, label in one] for one in side]
        for side in (gold, said)
    ]
    theirs = Evaluator(*dicts, tags=list(LABELS), loader="dict").evaluate()["overall"]
    ours = span_scores(gold, said)
    for counts, schema in ((ours.spans, "strict"), (ours.boundaries, "exact")):
        found = theirs[schema]
        assert (counts.correct, counts.predicted, counts.gold) == (found.correct, found.actual, found.possible)
        assert counts.precision == pytest.approx(100 * found.precision)
        assert counts.recall == pytest.approx(100 * found.recall)
        assert counts.f1 == pytest.approx(100 * found.f1)


def conlleval(gold: list[list[str]], said: list[list[str]]) -> dict[str, list[int]]:
    """Correct, guessed and there by type, followed word by word as conlleval does it."""
    counts = {label: [0, 0, 0] for label in LABELS}
    for tags in zip(gold, said, strict=True):
        before = [("O", ""), ("O", "")]
        both = False
        for row in [*zip(*tags, strict=True), ("O", "O")]:
            now = [tuple(tag.split("-")) if "-" in tag else ("O", "") for tag in row]
            ended = [
                old[0] != "O" and (new[0] in "BO" or new[1] != old[1]) for old, new in zip(before, now, strict=True)
            ]
            begun = [
                new[0] == "B" or (new[0] == "I" and (old[0] == "O" or old[1] != new[1]))
                for old, new in zip(before, now, strict=True)
            ]
            if both and all(ended):
                counts[before[0][1]][0] += 1
                both = False
            elif any(ended):
                both = False
            if all(begun) and now[0][1] == now[1][1]:
                both = True
            for side, place in ((0, 2), (1, 1)):
                if begun[side]:
                    counts[now[side][1]][place] += 1
            before = now
    return counts


@pytest.mark.parametrize("seed", range(5))
def test_scores_by_type_are_conllevals(seed: int) -> None:
    gold, said = drawn_tags(seed)
    theirs = conlleval(gold, said)
    ours = span_scores(spans(gold), spans(said))
    assert {label: [one.correct, one.predicted, one.gold] for label, one in ours.types.items()} == theirs
    assert [ours.spans.correct, ours.spans.predicted, ours.spans.gold] == [
        sum(column) for column in zip(*theirs.values(), strict=True)
    ]


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


def test_tags_of_words() -> None:
    assert tag_accuracy([["a", "b"], ["c"]], [["a", "c"], ["c"]]) == pytest.approx(200 / 3)
    with pytest.raises(RegardError, match="a predicted tag for each"):
        tag_accuracy([["a"]], [["a", "b"]])
    with pytest.raises(RegardError, match="no words"):
        tag_accuracy([[]], [[]])


def test_sides_of_unlike_size_are_refused() -> None:
    with pytest.raises(RegardError, match="1 sentences with spans, but 0"):
        span_scores([[]], [])
    with pytest.raises(RegardError, match="no sentences"):
        span_scores([], [])
