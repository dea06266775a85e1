"""Scores of tags and of spans as in CoNLL: boundaries and label must match [Sang03 §2]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from regard.system.errors import RegardError
from regard.text.counts import counted
from regard.text.tags import Scheme, Span, convert_tags, spans_of

Tags = Sequence[Sequence[str]]
SHOWN = 5
"""Labels whose scores a card shows."""


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

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            "spans": self.spans.to_dict(),
            "types": {label: counts.to_dict() for label, counts in self.types.items()},
            "boundaries": self.boundaries.to_dict(),
            "surface": self.surface.to_dict() if self.surface else None,
            "sentences": self.sentences,
        }


def span_scores(
    gold: Sequence[Sequence[Span]], predicted: Sequence[Sequence[Span]], words: Tags | None = None
) -> SpanScores:
    """Predicted spans compared with those that are there, sentence by sentence.

    Args:
        gold, predicted: for each sentence its spans (:func:`~regard.text.tags.spans_of`).
        words: for each sentence its words, for the scores of surface forms.

    Raises:
        RegardError: nothing to score, or not as many sentences on every side.
    """
    if len({len(side) for side in (gold, predicted, gold if words is None else words)}) != 1:
        raise RegardError(f"{len(gold)} sentences with spans, but {len(predicted)} with predicted ones")
    if not gold:
        raise RegardError("nothing to score: there are no sentences")
    there, said = (
        {(number, *span) for number, spans in enumerate(side) for span in spans} for side in (gold, predicted)
    )
    right = there & said
    labels = [Counter(label for *_, label in side) for side in (right, said, there)]
    ends, said_ends = ({span[:3] for span in side} for side in (there, said))
    surface = None
    if words is not None:
        forms = [{(*words[n][begin:end], label) for n, begin, end, label in side} for side in (right, said, there)]
        surface = Counts(*map(len, forms))
    return SpanScores(
        spans=Counts(len(right), len(said), len(there)),
        types={label: Counts(*(counts[label] for counts in labels)) for label in sorted(labels[1] | labels[2])},
        boundaries=Counts(len(ends & said_ends), len(said_ends), len(ends)),
        surface=surface,
        sentences=len(gold),
    )


def tag_accuracy(gold: Tags, predicted: Tags) -> float:
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


@dataclass(frozen=True)
class TagScores:
    """Scores of tagged texts.

    Args:
        accuracy: the share of words with the right tag, 0 to 100.
        spans: of spans; absent if tags do not form spans.
        words: how many were scored.
    """

    accuracy: float
    spans: SpanScores | None
    words: int

    @property
    def values(self) -> dict[str, float]:
        """The scores by name, larger being better, the one that taggers are judged by first."""
        both = {"f1": self.spans.spans.f1} if self.spans else {}
        return {**both, "accuracy": self.accuracy}

    def lines(self) -> list[str]:
        """For people, a score a line; of single labels those that occur most."""
        found = [f"accuracy {self.accuracy:.2f} ({counted(self.words, 'word')})"]
        if self.spans is None:
            return found
        every, types = self.spans.spans, self.spans.types
        found.insert(0, f"F1 {every.f1:.2f} (precision {every.precision:.2f}, recall {every.recall:.2f})")
        most = sorted(types, key=lambda label: (-types[label].gold, label))[:SHOWN]
        return found + [f"F1 of {label or 'spans'} {types[label].f1:.2f} ({types[label].gold:,})" for label in most]

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {"accuracy": self.accuracy, "words": self.words} | (self.spans.to_dict() if self.spans else {})


def tag_scores(gold: Tags, predicted: Tags, scheme: Scheme, words: Tags | None = None) -> TagScores:
    """Predicted tags compared with the right ones; span tags are compared as BIO, whatever their scheme.

    Args:
        gold, predicted: for each text a tag a word.
        scheme: ``none``, or the scheme of span tags.
        words: for each text its words, for the scores of surface forms.

    Raises:
        RegardError: no words, or not a tag for each.
    """
    count = sum(map(len, gold))
    if scheme == "none":
        return TagScores(tag_accuracy(gold, predicted), None, count)
    right, said = ([convert_tags(tags, "bio") for tags in side] for side in (gold, predicted))
    there, found = ([spans_of(tags) for tags in side] for side in (right, said))
    return TagScores(tag_accuracy(right, said), span_scores(there, found, words), count)
