"""Precision, recall and F1 of spans as in CoNLL: boundaries and label must match [Sang03 §2]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.system.errors import RegardError
from regard.text.tags import Span

Surface = tuple[tuple[str, ...], str]


@dataclass(frozen=True)
class Counts:
    """Counts of correct, predicted and gold spans; scores are 0 to 100, and 0 where the denominator is 0."""

    correct: int
    predicted: int
    gold: int

    @property
    def precision(self) -> float:
        """Precision."""
        return 100 * self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Right ones among those that are there."""
        return 100 * self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 200 * self.correct / (self.predicted + self.gold) if self.correct else 0.0

    def to_dict(self) -> dict[str, float]:
        """Plain values, for JSON."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1} | vars(self)


@dataclass(frozen=True)
class SpanScores:
    """Scores over all sentences (micro).

    ``boundaries`` leaves the label aside. ``surface`` counts each form (its words and label) once in the whole corpus,
    right if it was found right somewhere [Derczynski17 §4]; absent where no words were given.
    """

    spans: Counts
    types: dict[str, Counts]
    boundaries: Counts
    surface: Counts | None
    sentences: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "spans": self.spans.to_dict(),
            "types": {label: counts.to_dict() for label, counts in self.types.items()},
            "boundaries": self.boundaries.to_dict(),
            "surface": self.surface.to_dict() if self.surface else None,
            "sentences": self.sentences,
        }


def span_scores(
    gold: Sequence[Sequence[Span]],
    predicted: Sequence[Sequence[Span]],
    words: Sequence[Sequence[str]] | None = None,
) -> SpanScores:
    """Predicted spans compared with those that are there, sentence by sentence.

    Args:
        gold, predicted: for each sentence its spans (:func:`~regard.text.tags.spans_of`).
        words: for each sentence its words, for the scores of surface forms.

    Raises:
        RegardError: nothing to score, or not as many sentences on every side.
    """
    sides = [gold, predicted] if words is None else [gold, predicted, words]
    if len({len(side) for side in sides}) != 1:
        raise RegardError(f"{len(gold)} sentences with spans, but {len(predicted)} with predicted ones")
    if not gold:
        raise RegardError("nothing to score: there are no sentences")
    there, said, right = Counter[str](), Counter[str](), Counter[str]()
    bounds = [0, 0, 0]
    for one, other in zip(gold, predicted, strict=True):
        there.update(label for _, _, label in set(one))
        said.update(label for _, _, label in set(other))
        right.update(label for _, _, label in set(one) & set(other))
        ends, other_ends = ({span[:2] for span in spans} for spans in (one, other))
        for place, found in enumerate((ends & other_ends, other_ends, ends)):
            bounds[place] += len(found)
    return SpanScores(
        spans=Counts(right.total(), said.total(), there.total()),
        types={label: Counts(right[label], said[label], there[label]) for label in sorted(there | said)},
        boundaries=Counts(*bounds),
        surface=None if words is None else _surface(gold, predicted, words),
        sentences=len(gold),
    )


def _surface(
    gold: Sequence[Sequence[Span]], predicted: Sequence[Sequence[Span]], words: Sequence[Sequence[str]]
) -> Counts:
    there, said, right = set[Surface](), set[Surface](), set[Surface]()
    for one, other, text in zip(gold, predicted, words, strict=True):
        for forms, spans in ((there, set(one)), (said, set(other)), (right, set(one) & set(other))):
            forms.update((tuple(text[begin:end]), label) for begin, end, label in spans)
    return Counts(len(right), len(said), len(there))


def tag_accuracy(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """The share of words with the right tag, 0 to 100.

    Raises:
        RegardError: no words, or not a tag for each.
    """
    if [len(tags) for tags in gold] != [len(tags) for tags in predicted]:
        raise RegardError("not a predicted tag for each word")
    pairs = [pair for sides in zip(gold, predicted, strict=True) for pair in zip(*sides, strict=True)]
    if not pairs:
        raise RegardError("nothing to score: there are no words")
    return 100 * sum(right == said for right, said in pairs) / len(pairs)
