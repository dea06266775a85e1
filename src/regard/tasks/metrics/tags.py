"""Tagging scores: accuracy, and span precision, recall and F1 for span schemes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.tasks.metrics.spans import SpanScores, span_scores, tag_accuracy
from regard.text.tags import Scheme, convert_tags, spans_of

Tags = Sequence[Sequence[str]]
SHOWN = 5
"""Labels whose scores a card shows."""


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
        found = [f"accuracy {self.accuracy:.2f} ({self.words:,} words)"]
        if self.spans is None:
            return found
        every, types = self.spans.spans, self.spans.types
        found.insert(0, f"F1 {every.f1:.2f} (precision {every.precision:.2f}, recall {every.recall:.2f})")
        most = sorted(types, key=lambda label: (-types[label].gold, label))[:SHOWN]
        return found + [f"F1 of {label or 'spans'} {types[label].f1:.2f} ({types[label].gold:,})" for label in most]

    def to_dict(self) -> dict[str, Any]:
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
