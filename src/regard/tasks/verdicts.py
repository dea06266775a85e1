"""Scores of labels as people want them: which label, how probable, and what is out of scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.config import Classification as Section
from regard.tasks.text_assets import Fitted

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """What a classifier says of one text, or one image.

    Args:
        labels: the label; of a model with several labels those that are more probable than not; of a regression none.
        probability: of the label, or of the least probable of several; how far it can be trusted is on the card.
        value: the number of a regression.
        probabilities: of every label the model knows.
    """

    labels: tuple[str, ...]
    probability: float
    value: float | None = None
    probabilities: dict[str, float] | None = None

    @property
    def label(self) -> str:
        """The label, or all of them with ``|`` between."""
        return "|".join(self.labels)


@dataclass(frozen=True)
class Judge:
    """Turns scores into verdicts.

    Args:
        section: what kind of labels there are.
        labels: their names, in the order of their scores.
        fitted: temperature and threshold.
    """

    section: Section
    labels: Sequence[str]
    fitted: Fitted

    def verdicts(self, score_BC: Scores) -> list[Verdict]:
        """Scores as labels and probabilities."""
        if self.section.kind == "regression":
            return [Verdict((), 1.0, float(score)) for score in score_BC[:, 0]]
        score_BC = score_BC / self.fitted.temperature
        return [self._several(row) if self.section.kind == "multi" else self._one(row) for row in score_BC]

    def _one(self, score_C: Scores) -> Verdict:
        labels, threshold = self.labels, self.section.threshold or self.fitted.threshold
        probability_C = np.exp(score_C - np.logaddexp.reduce(score_C))
        best = int(probability_C.argmax())
        probability = float(probability_C[best])
        outside = self.section.out_of_scope or "out of scope"
        label = labels[best] if probability >= threshold else outside
        return Verdict((label,), probability, None, dict(zip(labels, probability_C.tolist(), strict=True)))

    def _several(self, score_C: Scores) -> Verdict:
        probability_C = 1.0 / (1.0 + np.exp(-score_C))
        chosen = [int(place) for place in np.argsort(-probability_C, kind="stable") if probability_C[place] >= 0.5]
        least = float(probability_C[chosen].min()) if chosen else float(1.0 - probability_C.max())
        labels = tuple(self.labels[place] for place in chosen)
        return Verdict(labels, least, None, dict(zip(self.labels, probability_C.tolist(), strict=True)))
