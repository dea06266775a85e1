"""Losses, scores and calibration of classifiers: single-label, multi-label and regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from regard.config import Classification as Section
from regard.data.prepare.windowing import OUTSIDE
from regard.tasks.assets import FittedValues
from regard.tasks.metrics import calibration
from regard.tasks.metrics.labels import class_scores, label_scores, number_scores
from regard.training.objective import Loss

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Bools = NDArray[np.bool_]
NUMBER = "number"
"""Name of a regression's only score."""


class LabelledBatch(Protocol):
    """The batch fields a loss needs: the labels of all texts or images, packed, and how many each has."""

    @property
    def labels_X(self) -> Ids:
        """The labels of all, packed."""

    @property
    def counts_B(self) -> Ids:
        """How many labels each has."""


@dataclass(frozen=True)
class Labels:
    """The labels alone; fits :class:`LabelledBatch`."""

    labels_X: Ids
    counts_B: Ids


@dataclass(eq=False)
class SingleLabel:
    """One label per text: cross-entropy with label smoothing and optional class weights.

    Args:
        section: options of calibration and of the out-of-scope label.
        smoothing: probability given to all other classes.
        classes: how many there are.
        weights: of the classes.
        mean, deviation: of the numbers of a regression.
    """

    section: Section
    smoothing: float = 0.0
    classes: int = 1
    weights: Tensor | None = None
    mean: float = 0.0
    deviation: float = 1.0

    def __post_init__(self) -> None:
        """What a model has before anything is fitted, so that the scores of a regression are numbers."""
        self.start = FittedValues(1 / self.deviation, shift=self.mean)

    @classmethod
    def of(cls, section: Section, smoothing: float, classes: int, learned: LabelledBatch) -> SingleLabel:
        """The criterion of a run.

        Args:
            section, smoothing, classes: as of the class.
            learned: the labels of all that is learned from, by which class weights are balanced.
        """
        if section.class_weights == "none":
            return cls(section, smoothing, classes, None)
        counts_C = np.bincount(learned.labels_X, minlength=classes)[:classes]
        weights_C = counts_C.sum() / (classes * np.maximum(counts_C, 1))  # the mean over all is one
        return cls(section, smoothing, classes, torch.from_numpy(weights_C).float())

    def loss_scores(self, score_BC: Floats, fitted: FittedValues) -> Floats:
        """Scores as :meth:`loss` takes them, where they are calibrated."""
        return (score_BC / fitted.temperature + fitted.shift - self.mean) / self.deviation

    def targets(self, batch: LabelledBatch, device: torch.device) -> Tensor:
        """The class of each text; values after the last: unknown, or out of scope, see ``data.prepare.encoders``."""
        return torch.from_numpy(batch.labels_X).to(device)

    def loss(self, score_BC: Tensor, wanted_B: Tensor, training: bool) -> Loss:
        """Summed over texts whose class is known."""
        known_B = wanted_B < self.classes
        score_BC, wanted_B = score_BC[known_B], wanted_B[known_B]
        nll = F.cross_entropy(score_BC.float(), wanted_B, reduction="sum")
        if not training:
            return Loss(nll, nll.detach(), len(wanted_B))
        weights = None if self.weights is None else self.weights.to(score_BC.device)
        total = F.cross_entropy(score_BC.float(), wanted_B, weights, reduction="sum", label_smoothing=self.smoothing)
        return Loss(total, nll.detach(), len(wanted_B))

    def scores(self, score_BC: Floats, wanted_B: Ids) -> dict[str, float]:
        """Accuracy and macro F1 over texts whose class is known."""
        known_B = wanted_B < self.classes
        if not known_B.any():
            return {}
        names = list(map(str, range(self.classes)))
        found = class_scores(wanted_B[known_B], score_BC[known_B].argmax(1), names)
        return {"accuracy": found.accuracy, "f1": found.macro_f1}

    def label_text(self, label: Ids, labels: Sequence[str]) -> str:
        """The label of a text, for people."""
        if len(label) and label[0] < len(labels):
            return labels[label[0]]
        return self.section.out_of_scope if len(label) and label[0] == len(labels) + OUTSIDE else "(not known)"

    def fit(self, score_BC: Floats, wanted_B: Ids, mixed: FittedValues | None = None) -> FittedValues:
        """Temperature by texts whose class is known; threshold by those, and by those that have none.

        Args:
            score_BC: with what n-grams add.
            wanted_B: the classes.
            mixed: what :meth:`fit_mixture` found, where there are n-grams.
        """
        known_B, outside_B = wanted_B < self.classes, wanted_B == self.classes + OUTSIDE
        warm, ngrams = 1.0, mixed.ngrams if mixed else 1.0
        if self.section.calibrate and known_B.any():
            warm = calibration.temperature(score_BC[known_B], wanted_B[known_B])
        if self.section.threshold or not outside_B.any():
            return FittedValues(warm, self.section.threshold, ngrams)
        confidence_B, right_B = self._confidence(score_BC, wanted_B, warm)
        some_B = known_B | outside_B
        chosen = calibration.choose_threshold(
            confidence_B[some_B], right_B[some_B], outside_B[some_B], self.section.threshold_by
        )
        return FittedValues(warm, chosen.value, ngrams)

    def fit_mixture(self, score_BC: Floats, more_BC: Floats, wanted_B: Ids) -> FittedValues:
        """What other scores are multiplied by before they are added, and the temperature, by texts of known class."""
        known_B = wanted_B < self.classes
        if not known_B.any():
            return FittedValues()
        own, more = calibration.mixture(score_BC[known_B], more_BC[known_B], wanted_B[known_B])
        return FittedValues(1 / own, ngrams=more / own)

    def _confidence(self, score_BC: Floats, wanted_B: Ids, warm: float) -> tuple[Floats, Bools]:
        score_BC = score_BC / warm
        return np.exp(score_BC.max(1) - calibration.log_sum_exp(score_BC)), score_BC.argmax(1) == wanted_B

    def notes(self, score_BC: Floats, wanted_B: Ids, fitted: FittedValues) -> list[str]:
        """Card lines of calibration, and of the threshold's effect in scope and out of scope."""
        known_B, outside_B = wanted_B < self.classes, wanted_B == self.classes + OUTSIDE
        confidence_B, right_B = self._confidence(score_BC, wanted_B, fitted.temperature)
        lines = calibration.calibration_lines(confidence_B[known_B], right_B[known_B], fitted.temperature)
        section, threshold = self.section, fitted.threshold
        if not threshold and not outside_B.any():
            said = "nothing that is validated on has it, so no threshold was chosen"
            return [*lines, f"out of scope {section.out_of_scope!r}: {said}"] if section.out_of_scope else lines
        some_B = known_B | outside_B
        sides = confidence_B[some_B], right_B[some_B], outside_B[some_B]
        (found,) = calibration.acceptance_scores(*sides, np.array([threshold]))
        chosen = "as the recipe says" if section.threshold else f"chosen by {section.threshold_by}"
        recall = f", recall out of scope {found.recall:.2f}" if outside_B.any() else ""
        scope = (
            f"out of scope below probability {threshold:.3f}, {chosen}: accuracy in scope "
            f"{found.in_scope_accuracy:.2f}{recall}; the accuracy above is without it"
        )
        return [*lines, scope]


class MultiLabel(SingleLabel):
    """Any number of labels a text: each is there or not, on its own."""

    def targets(self, batch: LabelledBatch, device: torch.device) -> Tensor:
        """1.0 where a text has a label."""
        return torch.from_numpy(class_matrix(batch, self.classes).astype(np.float32)).to(device)

    def loss(self, score_BC: Tensor, wanted_BC: Tensor, training: bool) -> Loss:
        """Summed over texts and labels, divided by the number of labels."""
        target_BC = wanted_BC * (1 - self.smoothing) + self.smoothing / 2 if training else wanted_BC
        weights = None if self.weights is None or not training else self.weights.to(score_BC.device)
        nll = F.binary_cross_entropy_with_logits(score_BC.float(), wanted_BC, reduction="sum") / self.classes
        total = F.binary_cross_entropy_with_logits(score_BC.float(), target_BC, weights, reduction="sum")
        return Loss(total / self.classes, nll.detach(), len(score_BC))

    def scores(self, score_BC: Floats, wanted_BC: Ids) -> dict[str, float]:
        """F1 over all labels, and exact-match accuracy."""
        names = [str(place) for place in range(self.classes)]
        found = label_scores(wanted_BC > 0.5, score_BC > 0, names)
        return {"f1": found.micro.f1, "accuracy": found.exact}

    def label_text(self, label: Ids, labels: Sequence[str]) -> str:
        return "|".join(labels[one] for one in label if one < len(labels)) or "(none)"

    def fit(self, score_BC: Floats, wanted_BC: Ids, mixed: FittedValues | None = None) -> FittedValues:
        ngrams = mixed.ngrams if mixed else 1.0
        if not self.section.calibrate:
            return FittedValues(ngrams=ngrams)
        return FittedValues(calibration.temperature_of_labels(score_BC, wanted_BC > 0.5), ngrams=ngrams)

    def fit_mixture(self, score_BC: Floats, more_BC: Floats, wanted_BC: Ids) -> FittedValues:
        """Each label there or not is a choice of its own."""
        two = [np.stack([np.zeros(one.size), one.ravel()], 1) for one in (score_BC, more_BC)]
        own, more = calibration.mixture(two[0], two[1], (wanted_BC > 0.5).ravel().astype(np.int64))
        return FittedValues(1 / own, ngrams=more / own)

    def notes(self, score_BC: Floats, wanted_BC: Ids, fitted: FittedValues) -> list[str]:
        confidence_BC = 1 / (1 + np.exp(-np.abs(score_BC) / fitted.temperature))
        right_BC = (score_BC > 0) == (wanted_BC > 0.5)
        return calibration.calibration_lines(confidence_BC.ravel(), right_BC.ravel(), fitted.temperature)


class Regression(SingleLabel):
    """A number a text: squared error, in units of the variance of the numbers that are learned from.

    Where all are the same, the deviation is 1.
    """

    @classmethod
    def of(cls, section: Section, smoothing: float, classes: int, learned: LabelledBatch) -> Regression:
        number_B = numbers_of(learned.labels_X).astype(np.float64)
        return cls(section, mean=float(number_B.mean()), deviation=float(number_B.std()) or 1.0)

    def targets(self, batch: LabelledBatch, device: torch.device) -> Tensor:
        """The number of each text."""
        return torch.from_numpy(numbers_of(batch.labels_X)).to(device)

    def loss(self, score_BC: Tensor, wanted_B: Tensor, training: bool) -> Loss:
        """Summed over texts."""
        wanted_B = ((wanted_B.double() - self.mean) / self.deviation).float()
        total = F.mse_loss(score_BC[:, 0].float(), wanted_B, reduction="sum")
        return Loss(total, total.detach(), len(wanted_B))

    def scores(self, score_BC: Floats, wanted_B: Ids) -> dict[str, float]:
        """Correlations."""
        found = number_scores(wanted_B, score_BC[:, 0])
        return {"pearson": found.pearson, "spearman": found.spearman}

    def label_text(self, label: Ids, labels: Sequence[str]) -> str:
        return f"{numbers_of(label)[0]:.3g}"

    def fit(self, score_BC: Floats, wanted_B: Ids, mixed: FittedValues | None = None) -> FittedValues:
        """Temperature and shift, by least squares."""
        if not self.section.calibrate:
            return self.start
        z_B = (wanted_B.astype(np.float64) - self.mean) / self.deviation
        factor, shift = calibration.least_squares(score_BC[:, 0], z_B)
        if factor <= 0:
            return self.start
        return FittedValues(1 / (factor * self.deviation), shift=self.mean + shift * self.deviation)

    def notes(self, score_BC: Floats, wanted_B: Ids, fitted: FittedValues) -> list[str]:
        error = float(np.sqrt(np.square(score_BC[:, 0] / fitted.temperature + fitted.shift - wanted_B).mean()))
        return [f"root of the mean squared error {error:.4g}"]


def class_matrix(batch: LabelledBatch, classes: int) -> Bools:
    """``there_BC``: which classes each text is of; labels from ``classes`` on are of none."""
    there_BC = np.zeros((len(batch.counts_B), classes + 2), np.bool_)
    there_BC[np.repeat(np.arange(len(batch.counts_B)), batch.counts_B), batch.labels_X] = True
    return there_BC[:, :classes]


def numbers_of(labels_X: Ids) -> NDArray[np.float32]:
    """The numbers whose bits labels are."""
    return labels_X.astype(np.uint32).view(np.float32)


CRITERIA: dict[str, type[SingleLabel]] = {"single": SingleLabel, "multi": MultiLabel, "regression": Regression}
"""The classes for the words of ``classification.kind``."""
