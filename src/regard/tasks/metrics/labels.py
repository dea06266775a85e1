"""Accuracy, precision, recall, F1 and correlation of predictions; 0 to 100, and 0 where the denominator is 0."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.data.checks.findings import excerpt
from regard.system.errors import RegardError
from regard.tasks.metrics.spans import Counts

Floats = NDArray[np.float64]
Entry = TypeVar("Entry", np.int64, np.bool_, np.float64)
FEW = 0.1
"""The share of labels that the model knows below which a warning is given."""
SHOWN = 3


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
        ", ".join(repr(excerpt(label)) for label in labels[:SHOWN]) + (", …" if len(labels) > SHOWN else "")
        for labels in (strange, list(taught))
    )
    compared = f"they are {theirs}, the model's {ours}"
    instead = f"if text and {noun} are in other columns, name them by --columns, as in training"
    if not mine:
        raise RegardError(f"the model knows none of its {noun}s: {compared}; {instead}", where)
    said = f"{where}: the model knows {mine:,} of its {count:,} {noun}s: {compared}; {instead}"
    warnings.warn(said, stacklevel=4)  # where a task was asked to evaluate
