"""Classification: a text → one of several labels, any number of them, or a number, with a trained encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, overload

import numpy as np
import torch
from numpy.typing import NDArray

from regard.config import BertSection, Recipe
from regard.data.framing import Frame
from regard.models.bert import Bert
from regard.models.build import bert, classes
from regard.tasks.reading import read
from regard.tasks.teaching import device_of
from regard.tasks.text_assets import TextAssets
from regard.tasks.texts import refuse_others

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """What a classifier says of one text.

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


class Classification:
    """A classifier of texts, ready to use.

    Args:
        recipe: what it was made by.
        assets: tokenizer, labels, and what was fitted.
        model: the trained encoder with its head, on its device.
    """

    name: ClassVar[str] = "classification"

    def __init__(self, recipe: Recipe, assets: TextAssets, model: Bert) -> None:
        self.recipe, self.assets, self.model = recipe, assets, model
        self.frame = Frame.of(assets.tokenizer, recipe.data.max_tokens)

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Bert:
        """The encoder of a recipe with a head for so many labels."""
        assert isinstance(recipe.model, BertSection)
        return bert(recipe.model, sizes[0], classes(recipe.model, max(1, sizes[1])), key)

    @staticmethod
    def opened(folder: Path) -> TextAssets:
        """Tokenizer and labels of a model folder."""
        return TextAssets.load(folder)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return device_of(self.model)

    @overload
    def classify(self, text: str) -> Verdict: ...
    @overload
    def classify(self, text: list[str]) -> list[Verdict]: ...
    def classify(self, text: str | list[str]) -> Verdict | list[Verdict]:
        """What the model says of a text, or of each text of a list.

        A text longer than the model ever saw is read in windows that overlap; their scores are averaged.
        """
        if isinstance(text, str):
            return self.verdicts(self.scores([text]))[0]
        refuse_others(text)
        return self.verdicts(self.scores(text))

    def scores(self, texts: Sequence[str]) -> Scores:
        """``score_BC``: the scores of every label before temperature and softmax; of a regression the number."""
        pieces = self.assets.tokenizer.ids_batch(list(texts))
        windows = [[window.ids for window in self.frame.windows(ids)] for ids in pieces]
        rows = iter(read(self.model, [one for group in windows for one in group], self.device, each=False))
        found = [np.mean([next(rows) for _ in group], axis=0) for group in windows]
        return np.array(found, np.float64).reshape(len(found), -1)

    def verdicts(self, score_BC: Scores) -> list[Verdict]:
        """Scores as labels and probabilities."""
        section = self.recipe.classification
        if section.kind == "regression":
            return [Verdict((), 1.0, float(score)) for score in score_BC[:, 0]]
        score_BC = score_BC / self.assets.fitted.temperature
        return [self._several(row) if section.kind == "multi" else self._one(row) for row in score_BC]

    def _one(self, score_C: Scores) -> Verdict:
        labels, threshold = self.assets.labels, self.recipe.classification.threshold or self.assets.fitted.threshold
        probability_C = np.exp(score_C - np.logaddexp.reduce(score_C))
        best = int(probability_C.argmax())
        probability = float(probability_C[best])
        outside = self.recipe.classification.out_of_scope or "out of scope"
        label = labels[best] if probability >= threshold else outside
        return Verdict((label,), probability, None, dict(zip(labels, probability_C.tolist(), strict=True)))

    def _several(self, score_C: Scores) -> Verdict:
        probability_C = 1.0 / (1.0 + np.exp(-score_C))
        chosen = [int(place) for place in np.argsort(-probability_C, kind="stable") if probability_C[place] >= 0.5]
        least = float(probability_C[chosen].min()) if chosen else float(1.0 - probability_C.max())
        labels = tuple(self.assets.labels[place] for place in chosen)
        return Verdict(labels, least, None, dict(zip(self.assets.labels, probability_C.tolist(), strict=True)))
