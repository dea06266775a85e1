"""Predictions from class scores: labels, probabilities, and out-of-scope texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.config import Classification as Section
from regard.tasks.text.assets import FittedValues

Scores = NDArray[np.float64]


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
        """Scores as labels and probabilities."""
        if self.section.kind == "regression":
            return [Prediction((), 1.0, float(score)) for score in score_BC[:, 0]]
        one = self._several if self.section.kind == "multi" else self._one
        return [one(row) for row in self.probabilities(score_BC)]

    def probabilities(self, score_BC: Scores) -> Scores:
        """Of every label: together one, or where a text may have several each on its own."""
        score_BC = score_BC / self.fitted.temperature
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
