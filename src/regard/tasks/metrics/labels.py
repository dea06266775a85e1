"""Accuracy, precision, recall, F1 and correlation of labels, tags and spans; 0 to 100, and 0 where nothing divides.

Spans are scored as in CoNLL: boundaries and label must match [Sang03 §2].
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.data.checks.findings import excerpt
from regard.system.errors import Option, RegardError
from regard.text.counts import counted
from regard.text.tags import Scheme, Span, convert_tags, spans_of

Floats = NDArray[np.float64]
Entry = TypeVar("Entry", np.int64, np.bool_, np.float64)
Tags = Sequence[Sequence[str]]
FEW = 0.1
"""The share of labels that the model knows below which a warning is given."""
NAMED, SHOWN = 3, 5
"""Labels named in a sentence, and labels whose scores a card shows."""
WIDEST = 40
"""Most characters of a label's column."""


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
class ClassScores:
    """One label per text. ``macro_f1``: mean F1 of the labels; labels neither in gold nor predicted are skipped."""

    accuracy: float
    macro_f1: float
    classes: dict[str, Counts]
    confusion_CC: NDArray[np.int64]
    """Texts by gold label (rows) and prediction (columns), in the order of the labels."""
    texts: int

    def confusions(self, most: int = 10) -> list[tuple[str, str, int]]:
        """The most frequent confusions: (label, prediction, texts)."""
        names = list(self.classes)
        wrong_CC = self.confusion_CC.copy()
        np.fill_diagonal(wrong_CC, 0)
        order = np.argsort(-wrong_CC, axis=None, kind="stable")[:most]
        places = [np.unravel_index(int(one), wrong_CC.shape) for one in order]
        return [(names[row], names[said], int(wrong_CC[row, said])) for row, said in places if wrong_CC[row, said]]

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            "accuracy": self.accuracy,
            "macro_f1": self.macro_f1,
            "texts": self.texts,
            "classes": {label: counts.to_dict() for label, counts in self.classes.items()},
            "confused": self.confusions(),
        }


def class_scores(gold: ArrayLike, predicted: ArrayLike, labels: Sequence[str]) -> ClassScores:
    """Predicted labels compared with the right ones.

    Args:
        gold, predicted: numbers of labels, one a text.
        labels: their names.

    Raises:
        RegardError: nothing to score, or not one prediction a text.
    """
    gold_B, predicted_B = _sides(np.asarray(gold, dtype=np.int64), np.asarray(predicted, dtype=np.int64))
    confusion_CC = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(confusion_CC, (gold_B, predicted_B), 1)
    right, said, there = confusion_CC.diagonal(), confusion_CC.sum(0), confusion_CC.sum(1)
    classes = _counts(labels, right, said, there)
    return ClassScores(100 * int(right.sum()) / len(gold_B), _macro(classes), classes, confusion_CC, len(gold_B))


@dataclass(frozen=True)
class LabelScores:
    """Any number of labels a text. ``exact`` is the share of texts with all labels right and no other."""

    exact: float
    macro_f1: float
    micro: Counts
    classes: dict[str, Counts]

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            "exact": self.exact,
            "macro_f1": self.macro_f1,
            "micro": self.micro.to_dict(),
            "classes": {label: counts.to_dict() for label, counts in self.classes.items()},
        }


def label_scores(gold: ArrayLike, predicted: ArrayLike, labels: Sequence[str]) -> LabelScores:
    """Predicted sets of labels compared with the right ones: for each text and label, whether the text has it.

    Raises:
        RegardError: nothing to score, or not one prediction a text.
    """
    gold_BC, predicted_BC = _sides(np.asarray(gold, dtype=np.bool_), np.asarray(predicted, dtype=np.bool_))
    right, said, there = (side.sum(0) for side in (gold_BC & predicted_BC, predicted_BC, gold_BC))
    classes = _counts(labels, right, said, there)
    exact = 100 * float((gold_BC == predicted_BC).all(1).mean())
    return LabelScores(exact, _macro(classes), Counts(int(right.sum()), int(said.sum()), int(there.sum())), classes)


@dataclass(frozen=True)
class NumberScores:
    """A number a text. The correlations are -1 to 1, and 0 where one side is always the same."""

    mean_squared_error: float
    pearson: float
    spearman: float
    texts: int

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return vars(self)


def number_scores(gold: ArrayLike, predicted: ArrayLike) -> NumberScores:
    """Predicted numbers compared with the right ones.

    Raises:
        RegardError: nothing to score, or not one prediction a text.
    """
    gold_B, predicted_B = _sides(np.asarray(gold, dtype=np.float64), np.asarray(predicted, dtype=np.float64))
    return NumberScores(
        mean_squared_error=float(((gold_B - predicted_B) ** 2).mean()),
        pearson=_correlation(gold_B, predicted_B),
        spearman=_correlation(_ranks(gold_B), _ranks(predicted_B)),
        texts=len(gold_B),
    )


def _sides(gold: NDArray[Entry], predicted: NDArray[Entry]) -> tuple[NDArray[Entry], NDArray[Entry]]:
    if gold.shape != predicted.shape:
        raise RegardError(f"{len(gold)} texts, but {len(predicted)} predictions, or of other labels")
    if not len(gold):
        raise RegardError("nothing to score: there are no texts")
    return gold, predicted


def _counts(labels: Sequence[str], right: ArrayLike, said: ArrayLike, there: ArrayLike) -> dict[str, Counts]:
    rows = np.stack([np.asarray(one) for one in (right, said, there)], 1).tolist()
    return {label: Counts(*row) for label, row in zip(labels, rows, strict=True)}


def _macro(classes: dict[str, Counts]) -> float:
    """The mean of F1 over the labels in gold or predicted."""
    found = [counts.f1 for counts in classes.values() if counts.gold or counts.predicted]
    return sum(found) / len(found) if found else 0.0


def _correlation(left_B: Floats, right_B: Floats) -> float:
    """Pearson's correlation."""
    left_B, right_B = left_B - left_B.mean(), right_B - right_B.mean()
    norm = float(np.sqrt((left_B**2).sum() * (right_B**2).sum()))
    return float((left_B * right_B).sum()) / norm if norm else 0.0


def _ranks(values_B: Floats) -> Floats:
    """The place of each value in order; equal ones share the mean of their places."""
    _, number_B, times = np.unique(values_B, return_inverse=True, return_counts=True)
    ends = times.cumsum()
    return np.asarray(((ends - times + 1 + ends) / 2)[number_B], dtype=np.float64)


def refuse_unknown_labels(
    there: Counter[str], known: Callable[[str], bool], taught: Iterable[str], noun: str, where: str
) -> None:
    """Check that a model knows the labels of its test set; if columns are wrong it knows hardly any.

    Args:
        there: counts of the labels.
        known: whether the model has a label.
        taught: its labels, for the message.
        noun: label or tag.
        where: the test set.

    Raises:
        RegardError: none is known, so every prediction would be wrong.

    Warns:
        UserWarning: fewer than a tenth are known.
    """
    count, mine = there.total(), sum(times for label, times in there.items() if known(label))
    if mine >= FEW * count:
        return
    strange = [label for label, _ in there.most_common() if not known(label)]
    theirs, ours = (
        ", ".join(repr(excerpt(label)) for label in labels[:NAMED]) + (", …" if len(labels) > NAMED else "")
        for labels in (strange, list(taught))
    )
    compared = f"they are {theirs}, the model's {ours}"
    instead = f"if text and {noun} are in other columns, name them by {Option('columns')}, as in training"
    if not mine:
        raise RegardError(f"the model knows none of its {noun}s: {compared}; {instead}", where)
    said = f"{where}: the model knows {mine:,} of its {count:,} {noun}s: {compared}; {instead}"
    warnings.warn(said, stacklevel=4)  # where a task was asked to evaluate


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
        """The scores as people read them."""
        lines = [f"accuracy of tags {self.accuracy:.2f}  ({counted(self.words, 'word')})"]
        if self.spans is None:
            return lines
        parts = {"F1": self.spans.spans, "F1 of boundaries alone": self.spans.boundaries}
        if self.spans.surface:
            parts["F1 of surface forms"] = self.spans.surface
        told = [
            f"{name} {counts.f1:.2f}  (precision {counts.precision:.2f}, recall {counts.recall:.2f})"
            for name, counts in parts.items()
        ]
        return [*told, *lines, "", *label_table(self.spans.types, "type")]

    def card_lines(self) -> list[str]:
        """The same for a card: of single labels those that occur most."""
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


def label_table(rows: Mapping[str, Counts], what: str) -> list[str]:
    """Precision, recall, F1 and support of each label; labels neither present nor predicted are left out."""
    from regard.text.terminal import fit, visible, width

    kept = {visible(label): counts for label, counts in rows.items() if counts.gold or counts.predicted}
    room = min(WIDEST, max([width(what), *map(width, kept)], default=0))
    lines = [f"{fit(what, room)}  precision  recall      F1    there"]
    for label, counts in kept.items():
        scores = f"{counts.precision:9.2f}  {counts.recall:6.2f}  {counts.f1:6.2f}  {counts.gold:7,}"
        lines.append(f"{fit(label, room)}  {scores}")
    return lines
