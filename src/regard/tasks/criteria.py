"""What a classifier is taught by, and judged by: one label of several, any number of them, or a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from regard.config import Recipe
from regard.tasks import calibration
from regard.tasks.classes import class_scores, label_scores, number_scores
from regard.tasks.text_assets import Fitted
from regard.training.objective import Loss

NUMBER = "number"
"""What a regression's only score is called."""


class Labelled(Protocol):
    """What is asked of a batch: the labels of all texts, or images, end to end, and how many each has."""

    @property
    def labels_X(self) -> NDArray[np.int64]:
        """The labels of all, one behind the other."""
        ...

    @property
    def counts_B(self) -> NDArray[np.int64]:
        """How many labels each has."""
        ...


class OneOf:
    """One label a text: cross-entropy, smoothed; classes may weigh."""

    def __init__(self, smoothing: float, classes: int, weights: Tensor | None) -> None:
        self.smoothing, self.classes, self.weights = smoothing, classes, weights

    def wanted(self, batch: Labelled, device: torch.device) -> Tensor:
        """The class of each text; one behind the last: not known."""
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

    def scores(self, score_BC: NDArray[np.float64], wanted_B: NDArray[np.int64]) -> dict[str, float]:
        """Accuracy and macro F1 over texts whose class is known."""
        known_B = wanted_B < self.classes
        if not known_B.any():
            return {}
        names = [str(place) for place in range(self.classes)]
        found = class_scores(wanted_B[known_B], score_BC[known_B].argmax(1), names)
        return {"accuracy": found.accuracy, "f1": found.macro_f1}

    def named(self, label: NDArray[np.int64], labels: Sequence[str]) -> str:
        """The label of a text, for people."""
        return labels[label[0]] if len(label) and label[0] < len(labels) else "(not known)"

    def fitted(self, score_BC: NDArray[np.float64], wanted_B: NDArray[np.int64], recipe: Recipe) -> Fitted:
        """Temperature by texts whose class is known; threshold by those, and by those that have none."""
        known_B = wanted_B < self.classes
        section, warm = recipe.classification, 1.0
        if section.calibrate and known_B.any():
            warm = calibration.temperature(score_BC[known_B], wanted_B[known_B])
        if known_B.all() or not section.out_of_scope or section.threshold:
            return Fitted(warm, section.threshold)
        confidence_B, right_B = self._confidence(score_BC, wanted_B, warm)
        chosen = calibration.choose_threshold(confidence_B, right_B, ~known_B)
        return Fitted(warm, chosen.value)

    def _confidence(
        self, score_BC: NDArray[np.float64], wanted_B: NDArray[np.int64], warm: float
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        score_BC = score_BC / warm
        return np.exp(score_BC.max(1) - calibration.log_sum_exp(score_BC)), score_BC.argmax(1) == wanted_B

    def notes(self, score_BC: NDArray[np.float64], wanted_B: NDArray[np.int64], fitted: Fitted) -> list[str]:
        """How far probabilities can be trusted, and what is said to be out of scope."""
        known_B = wanted_B < self.classes
        confidence_B, right_B = self._confidence(score_BC, wanted_B, fitted.temperature)
        error = calibration.expected_calibration_error(confidence_B[known_B], right_B[known_B])
        lines = [f"* expected calibration error {error:.2f} at temperature {fitted.temperature:.3f}"]
        if fitted.threshold and not known_B.all():
            outside = 100 * float((confidence_B[~known_B] < fitted.threshold).mean())
            kept = 100 * float((confidence_B[known_B] >= fitted.threshold).mean())
            lines.append(
                f"* out of scope below probability {fitted.threshold:.3f}: {outside:.1f} % of such texts are seen to "
                f"be, {kept:.1f} % of the others are kept"
            )
        return lines


class AnyOf(OneOf):
    """Any number of labels a text: each is there or not, on its own."""

    def wanted(self, batch: Labelled, device: torch.device) -> Tensor:
        """1.0 where a text has a label."""
        rows = np.repeat(np.arange(len(batch.counts_B)), batch.counts_B)
        there_BC = np.zeros((len(batch.counts_B), self.classes + 1), np.float32)
        there_BC[rows, batch.labels_X] = 1.0
        return torch.from_numpy(there_BC[:, : self.classes]).to(device)

    def loss(self, score_BC: Tensor, wanted_BC: Tensor, training: bool) -> Loss:
        """Summed over texts and labels, divided by the number of labels."""
        target_BC = wanted_BC * (1 - self.smoothing) + self.smoothing / 2 if training else wanted_BC
        weights = None if self.weights is None or not training else self.weights.to(score_BC.device)
        nll = F.binary_cross_entropy_with_logits(score_BC.float(), wanted_BC, reduction="sum") / self.classes
        total = F.binary_cross_entropy_with_logits(score_BC.float(), target_BC, weights, reduction="sum")
        return Loss(total / self.classes, nll.detach(), len(score_BC))

    def scores(self, score_BC: NDArray[np.float64], wanted_BC: NDArray[np.int64]) -> dict[str, float]:
        """F1 over all labels, and the share of texts whose labels are all right."""
        names = [str(place) for place in range(self.classes)]
        found = label_scores(wanted_BC > 0.5, score_BC > 0, names)
        return {"f1": found.micro.f1, "accuracy": found.exact}

    def named(self, label: NDArray[np.int64], labels: Sequence[str]) -> str:
        return "|".join(labels[one] for one in label if one < len(labels)) or "(none)"

    def fitted(self, score_BC: NDArray[np.float64], wanted_BC: NDArray[np.int64], recipe: Recipe) -> Fitted:
        if not recipe.classification.calibrate:
            return Fitted()
        return Fitted(calibration.temperature_of_labels(score_BC, wanted_BC > 0.5))

    def notes(self, score_BC: NDArray[np.float64], wanted_BC: NDArray[np.int64], fitted: Fitted) -> list[str]:
        confidence_BC = 1 / (1 + np.exp(-np.abs(score_BC) / fitted.temperature))
        right_BC = (score_BC > 0) == (wanted_BC > 0.5)
        error = calibration.expected_calibration_error(confidence_BC.ravel(), right_BC.ravel())
        return [f"* expected calibration error {error:.2f} at temperature {fitted.temperature:.3f}"]


class Number(OneOf):
    """A number a text: squared error."""

    def wanted(self, batch: Labelled, device: torch.device) -> Tensor:
        """The number of each text."""
        return torch.from_numpy(batch.labels_X.astype(np.uint32).view(np.float32)).to(device)

    def loss(self, score_BC: Tensor, wanted_B: Tensor, training: bool) -> Loss:
        """Summed over texts."""
        total = F.mse_loss(score_BC[:, 0].float(), wanted_B, reduction="sum")
        return Loss(total, total.detach(), len(wanted_B))

    def scores(self, score_BC: NDArray[np.float64], wanted_B: NDArray[np.int64]) -> dict[str, float]:
        """Correlations."""
        found = number_scores(wanted_B, score_BC[:, 0])
        return {"pearson": found.pearson, "spearman": found.spearman}

    def named(self, label: NDArray[np.int64], labels: Sequence[str]) -> str:
        return f"{label.astype(np.uint32).view(np.float32)[0]:.3g}"

    def fitted(self, score_BC: NDArray[np.float64], wanted_B: NDArray[np.int64], recipe: Recipe) -> Fitted:
        return Fitted()

    def notes(self, score_BC: NDArray[np.float64], wanted_B: NDArray[np.int64], fitted: Fitted) -> list[str]:
        error = float(np.sqrt(np.square(score_BC[:, 0] - wanted_B).mean()))
        return [f"* root of the mean squared error {error:.4g}"]


CRITERIA: dict[str, type[OneOf]] = {"single": OneOf, "multi": AnyOf, "regression": Number}
"""The word ``classification.kind`` of a recipe to what it means."""
