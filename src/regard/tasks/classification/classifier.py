"""Classification of texts: one label, several labels or a number; predictions and their evaluation (images, too)."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from regard.config import BertSection, Recipe, RnnEncoderSection
from regard.config import Classification as Section
from regard.data.batches.batch import Ids
from regard.data.checks.findings import excerpt
from regard.data.corpora.corpus import Corpus
from regard.data.corpora.labelled import open_labelled, parse_number, split_labels
from regard.system.errors import Damaged, RegardError, UsageError
from regard.tasks.assets import FittedValues, ImageAssets, TextAssets
from regard.tasks.classification.ngrams import NGRAMS, LinearNGrams, read_ngrams
from regard.tasks.engine import engine_of
from regard.tasks.metrics.calibration import Threshold, acceptance_scores, expected_calibration_error
from regard.tasks.metrics.labels import (
    ClassScores,
    LabelScores,
    NumberScores,
    class_scores,
    label_scores,
    label_table,
    number_scores,
    refuse_unknown_labels,
)
from regard.tasks.protocols import Divide, find_at_once
from regard.tasks.text.task import (
    AnyModel,
    BaseTask,
    TextReader,
    finite_numbers,
    forward_batches,
    mean_over_windows,
    read_by_engine,
    refuse_others,
)
from regard.text.counts import counted

if TYPE_CHECKING:
    from regard.models.rnn import Reader

Scores = NDArray[np.float64]
SHOWN = 5
"""Most labels named in a sentence."""


@dataclass(frozen=True)
class ClassAssets(TextAssets):
    """Tokenizer and classes.

    Args:
        ngrams: a linear classifier whose scores are added to the model's, if there is one.
    """

    ngrams: LinearNGrams | None = field(default=None, compare=False, kw_only=True)

    @property
    def contents(self) -> Mapping[str, bytes]:
        """The same, and the linear classifier."""
        found = super().contents
        return {**found, NGRAMS: self.ngrams.content} if self.ngrams else found

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Those of a model folder.

        Raises:
            RegardError: a file is missing or damaged.
        """
        found, ngrams = super().load(folder), read_ngrams(folder)
        if ngrams is not None and found.labels and len(ngrams.bias_C) != len(found.labels):
            message = f"is of {len(ngrams.bias_C)} labels, but the model has {len(found.labels)}"
            raise Damaged(message, str(folder / NGRAMS))
        return replace(found, ngrams=ngrams)


AnyLabelAssets = TypeVar("AnyLabelAssets", ClassAssets, ImageAssets)


@dataclass(frozen=True)
class Prediction:
    """Prediction for one text or image.

    Args:
        labels: the label; of a model with several labels those that are more probable than not; of a regression none.
        probability: of the label, or of the least probable of several; the card has its calibration error.
        value: the number of a regression.
        probabilities: of every label the model knows; absent where nothing is said, and of a regression.
    """

    labels: tuple[str, ...]
    probability: float
    value: float | None = None
    probabilities: dict[str, float] | None = None

    @property
    def label(self) -> str:
        """The label, or all of them with ``|`` between."""
        return "|".join(self.labels)


NOTHING = Prediction((), 0.0)
"""Of an empty text: no label, no number, no probability."""


@dataclass(frozen=True)
class Predictor:
    """Maps scores to predictions.

    Args:
        section: what kind of labels there are.
        labels: their names, in the order of their scores.
        fitted: temperature and threshold.
        asked: a threshold to use instead of the recipe's or the fitted one.
    """

    section: Section
    labels: Sequence[str]
    fitted: FittedValues
    asked: float | None = None

    @property
    def threshold(self) -> float:
        """The probability from which on a label is believed: of several labels each, else the best one's."""
        if self.section.kind == "multi":
            return 0.5 if self.asked is None else self.asked
        return (self.section.threshold or self.fitted.threshold) if self.asked is None else self.asked

    def predictions(self, score_BC: Scores) -> list[Prediction]:
        """Scores as labels and probabilities.

        Raises:
            RegardError: a score is not finite.
        """
        if self.section.kind == "regression":
            return [Prediction((), 1.0, value) for value in self.values(score_BC).tolist()]
        one = self._several if self.section.kind == "multi" else self._one
        return [one(row) for row in self.probabilities(score_BC)]

    def values(self, score_BC: Scores) -> Scores:
        """``value_B``: the numbers of a regression."""
        return finite_numbers(score_BC)[:, 0] / self.fitted.temperature + self.fitted.shift

    def probabilities(self, score_BC: Scores) -> Scores:
        """Of every label: together one, or where a text may have several each on its own."""
        score_BC = finite_numbers(score_BC) / self.fitted.temperature
        if self.section.kind == "multi":
            return np.asarray(np.exp(-np.logaddexp(0.0, -score_BC)))
        return np.asarray(np.exp(score_BC - np.logaddexp.reduce(score_BC, axis=1, keepdims=True)))

    def _one(self, probability_C: Scores) -> Prediction:
        best = int(probability_C.argmax())
        probability = float(probability_C[best])
        outside = self.section.out_of_scope or "out of scope"
        label = self.labels[best] if probability >= self.threshold else outside
        return Prediction((label,), probability, None, dict(zip(self.labels, probability_C.tolist(), strict=True)))

    def _several(self, probability_C: Scores) -> Prediction:
        order = np.argsort(-probability_C, kind="stable")
        chosen = [int(place) for place in order if probability_C[place] >= self.threshold]
        least = float(probability_C[chosen].min()) if chosen else float(1.0 - probability_C.max())
        labels = tuple(self.labels[place] for place in chosen)
        return Prediction(labels, least, None, dict(zip(self.labels, probability_C.tolist(), strict=True)))


@dataclass(frozen=True)
class ClassEvaluation:
    """Results on a test set.

    Args:
        scores: of labels, or of numbers; where texts belong to no class, of the others, each by its best label.
        calibration_error: how far probabilities are from the share of right answers [Guo17 §2]; of numbers none.
        scope: what the threshold makes of all texts; absent where there is none, and every text is in scope.
        unknown: labels not in the training data, and how many texts have them; those texts count as wrong.
        unlabelled: texts without a label, which are left out.
        empty: texts without a prediction, which are left out, as in training.
    """

    scores: ClassScores | LabelScores | NumberScores
    calibration_error: float | None
    scope: Threshold | None
    unknown: dict[str, int]
    unlabelled: int
    empty: int = 0

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        own = {
            "calibration_error": self.calibration_error,
            "out_of_scope": vars(self.scope) if self.scope else None,
            "unknown_labels": self.unknown,
            "unlabelled": self.unlabelled,
            "empty": self.empty,
        }
        return self.scores.to_dict() | own

    def lines(self) -> list[str]:
        """The scores as people read them."""
        from regard.text.terminal import visible

        scores = self.scores
        if isinstance(scores, ClassScores):
            right = f"{int(scores.confusion_CC.trace()):,} of {scores.texts:,}"
            lines = [f"accuracy {scores.accuracy:.2f}  ({right})", f"macro F1 {scores.macro_f1:.2f}"]
        elif isinstance(scores, LabelScores):
            lines = [
                f"F1 {scores.micro.f1:.2f}  (precision {scores.micro.precision:.2f}, recall {scores.micro.recall:.2f})",
                f"macro F1 {scores.macro_f1:.2f}",
                f"all labels right {scores.exact:.2f}",
            ]
        else:
            lines = [
                f"root of the mean squared error {scores.mean_squared_error**0.5:.4g}  "
                f"({counted(scores.texts, 'text')})",
                f"Pearson's correlation {scores.pearson:.4f}",
                f"Spearman's correlation {scores.spearman:.4f}",
            ]
        if self.calibration_error is not None:
            lines.append(f"calibration error {self.calibration_error:.3f}")
        if scope := self.scope:
            outside = f": recall {scope.recall:.2f}, F1 {scope.f1:.2f}" if scope.recall or scope.f1 else ""
            lines.append(
                f"out of scope below probability {scope.value:.3f}{outside}; in scope {scope.in_scope_accuracy:.2f}, "
                f"all {scope.accuracy:.2f} treated rightly"
            )
        if self.unknown:
            names = sorted(self.unknown, key=lambda label: -self.unknown[label])
            listed = ", ".join(map(visible, names[:SHOWN])) + (", …" if len(names) > SHOWN else "")
            count = sum(self.unknown.values())
            lines.append(f"{count:,} have a label that nothing was learned of, and count as wrong: {listed}")
        if self.unlabelled:
            lines.append(f"{self.unlabelled:,} have no label, and are left out")
        if self.empty:
            lines.append(f"{self.empty:,} are empty, and are left out")
        if not isinstance(scores, ClassScores | LabelScores):
            return lines
        lines += ["", *label_table(scores.classes, "label")]
        if isinstance(scores, ClassScores) and (confused := scores.confusions()):
            pairs = (f"{visible(label)} as {visible(said)} {count:,}" for label, said, count in confused)
            lines += ["", f"taken for another most often: {'; '.join(pairs)}"]
        return lines


def evaluate_labels(judge: Predictor, score: Callable[[Sequence[str]], Scores], corpus: Corpus[Any]) -> ClassEvaluation:
    """A model's scores on a corpus of examples with labels.

    Args:
        judge: maps scores to labels and probabilities.
        score: ``score_BC`` of examples.
        corpus: examples and what is right of each.

    Raises:
        RegardError: nothing to score, no label that the model knows, or one that is no number where it should be.

    Warns:
        UserWarning: the model knows fewer than a tenth of the labels.
    """
    pairs = list(corpus.examples())
    kind = judge.section.kind
    said = [place for place, (_, label) in enumerate(pairs) if label or kind == "multi"]
    kept = [place for place in said if not pairs[place].is_empty]
    left = (len(pairs) - len(said), len(said) - len(kept))
    if not kept:
        raise RegardError("nothing to score: no text has a label", corpus.name)
    texts, labels = ([pairs[place][side] for place in kept] for side in (0, 1))
    if kind == "regression":
        numbers = []
        for place, label in zip(kept, labels, strict=True):
            if (number := parse_number(label)) is None:
                raise RegardError(f"the label {excerpt(label)!r} is no number", corpus.where(place, 1))
            numbers.append(number)
        return ClassEvaluation(number_scores(numbers, judge.values(score(texts))), None, None, {}, *left)
    there = Counter(label for one in labels for label in (split_labels(one) if kind == "multi" else [one]))
    known = {*judge.labels, judge.section.out_of_scope}
    refuse_unknown_labels(there, known.__contains__, judge.labels, "label", corpus.name)
    probability_BC = judge.probabilities(score(texts))
    score_labels = _labels if kind == "multi" else _classes
    scores, error, scope, unknown = score_labels(judge, probability_BC, labels, corpus.name)
    return ClassEvaluation(scores, error, scope, unknown, *left)


def _classes(
    judge: Predictor, probability_BC: Scores, labels: Sequence[str], where: str
) -> tuple[ClassScores, float, Threshold | None, dict[str, int]]:
    """One label a text."""
    outside = judge.section.out_of_scope
    outside_B = np.array([bool(outside) and label == outside for label in labels], np.bool_)
    if outside_B.all():
        raise RegardError(f"nothing to score: the label of all texts is {excerpt(outside)!r}, which is no class", where)
    inside = [label for label, out in zip(labels, outside_B, strict=True) if not out]
    names, unknown = _names(judge, Counter(inside))
    ids = {label: place for place, label in enumerate(names)}
    gold_B = np.array([ids.get(label, len(names)) for label in labels], np.int64)
    said_B, confidence_B = probability_BC.argmax(1), probability_BC.max(1)
    right_B = (gold_B == said_B) & ~outside_B
    scores = class_scores(gold_B[~outside_B], said_B[~outside_B], names)
    error = expected_calibration_error(confidence_B[~outside_B], right_B[~outside_B])
    scope = None
    if judge.threshold or outside_B.any():
        (scope,) = acceptance_scores(confidence_B, right_B, outside_B, np.array([judge.threshold]))
    return scores, error, scope, unknown


def _labels(
    judge: Predictor, probability_BC: Scores, labels: Sequence[str], where: str
) -> tuple[LabelScores, float, None, dict[str, int]]:
    """Any number of labels a text."""
    split = [split_labels(label) for label in labels]
    names, unknown = _names(judge, Counter(label for some in split for label in some))
    ids = {label: place for place, label in enumerate(names)}
    gold_BC = np.zeros((len(split), len(names)), np.bool_)
    for row, some in enumerate(split):
        gold_BC[row, [ids[label] for label in some]] = True
    known = len(judge.labels)
    said_BC = np.zeros_like(gold_BC)
    said_BC[:, :known] = probability_BC >= judge.threshold
    confidence_BC = np.maximum(probability_BC, 1.0 - probability_BC)
    right_BC = (probability_BC >= 0.5) == gold_BC[:, :known]
    error = expected_calibration_error(confidence_BC.ravel(), right_BC.ravel())
    return label_scores(gold_BC, said_BC, names), error, None, unknown


def _names(judge: Predictor, counts: Counter[str]) -> tuple[list[str], dict[str, int]]:
    """The model's labels followed by those that only the test set has, and the counts of the latter."""
    known = set(judge.labels)
    unknown = {label: counts[label] for label in sorted(counts) if label not in known}
    return [*judge.labels, *unknown], unknown


class LabelTask(BaseTask[AnyLabelAssets, AnyModel]):
    """What classifiers of texts and of images share."""

    evaluate_options = ("test", "columns", "threshold")

    @abstractmethod
    def scores(self, examples: Sequence[Any]) -> Scores:
        """``score_BC``: the scores of every label before temperature and softmax; of a regression one."""

    def predictor(self, threshold: float | None = None) -> Predictor:
        """What turns scores into labels and probabilities.

        Raises:
            UsageError: the threshold is no probability.
        """
        if threshold is not None and not 0 <= threshold <= 1:
            raise UsageError(f"{threshold:g} is no probability; give 0 to 1", "threshold")
        return Predictor(self.recipe.classification, self.assets.labels, self.assets.fitted, threshold)

    def evaluate(
        self, corpus: Corpus[Any], threshold: float | None = None, divide: Divide = find_at_once
    ) -> ClassEvaluation:
        """Scores of the model on labelled test examples."""

        def score(examples: Sequence[Any]) -> Scores:
            return np.array(divide(lambda some, begin: self.scores(some).tolist(), examples), np.float64)

        return evaluate_labels(self.predictor(threshold), score, corpus)


class TextLabelTask(LabelTask[ClassAssets, "Reader"], TextReader):
    """What classifiers of texts and of sentence pairs share."""

    assets_class = ClassAssets

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Reader:
        """The encoder of a recipe with a head for n labels."""
        from regard.models.build import classes, reader

        assert isinstance(recipe.model, BertSection | RnnEncoderSection)
        return reader(recipe.model, sizes[0], classes(recipe.model, max(1, sizes[1])), key)

    @abstractmethod
    def parse_line(self, line: str, number: int) -> Any:
        """What a numbered line asks for; ``None`` for an empty one."""

    @abstractmethod
    def windows(self, examples: Sequence[Any]) -> list[list[Ids]]:
        """The windows in which each example is read."""

    def scores(self, examples: Sequence[Any]) -> Scores:
        """``score_BC``: the mean scores of the windows of each example, with what n-grams add."""
        groups = self.windows(examples)
        framed = [one for group in groups for one in group]
        if (engine := engine_of(self)) is not None:
            rows = read_by_engine(engine, self.texts_of, framed, each=False)
        else:
            rows = forward_batches(self.model, framed, self.inputs, each=False)
        score_WC = np.array(rows, np.float64).reshape(len(rows), len(self.assets.labels)) + self.ngram_scores(framed)
        return mean_over_windows(score_WC, np.array([len(group) for group in groups], np.int64))

    def ngram_scores(self, windows: Sequence[Ids]) -> Scores:
        """``score_WC``: what the n-grams of each window add to the scores of its labels; zeros without a classifier."""
        if self.assets.ngrams is None:
            return np.zeros((len(windows), 1))
        read = [self.source_tokenizer.decode(ids.tolist()) for ids in windows]
        return self.assets.fitted.ngrams * self.assets.ngrams.scores(read)


class Classification(TextLabelTask):
    """A classifier of texts, ready to use."""

    open_corpus = staticmethod(open_labelled)

    @overload
    def classify(self, text: str, threshold: float | None = None) -> Prediction: ...
    @overload
    def classify(self, text: list[str], threshold: float | None = None) -> list[Prediction]: ...
    def classify(self, text: str | list[str], threshold: float | None = None) -> Prediction | list[Prediction]:
        """The prediction for a text, or for each text of a list.

        A text longer than any in training is read in overlapping windows whose scores are averaged. An empty or
        blank text has no prediction (:data:`NOTHING`), as none is in the training data.

        Args:
            text: one text or several.
            threshold: the lowest accepted probability; default: the recipe's, else the fitted one.
        """
        if isinstance(text, str):
            return self.classify([text], threshold)[0]
        refuse_others(text)
        said = iter(self.predictor(threshold).predictions(self.scores([one for one in text if one.strip()])))
        return [next(said) if one.strip() else NOTHING for one in text]

    def parse_line(self, line: str, number: int) -> str | None:
        """The text of a line; none of a blank one."""
        return line if line.strip() else None

    def windows(self, texts: Sequence[str]) -> list[list[Ids]]:
        """The windows of each text."""
        return [
            [window.ids for window in self.frame.windows(ids)] for ids in self.assets.tokenizer.ids_batch(list(texts))
        ]
