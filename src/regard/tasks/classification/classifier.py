"""Text classification with a trained encoder: one label, several labels, or a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, overload

import numpy as np

from regard.config import BertSection, Recipe, RnnEncoderSection
from regard.models.build import classes, reader
from regard.models.rnn import Reader
from regard.tasks.classification.predictions import NOTHING, LabelTask, Prediction, Scores
from regard.tasks.text.task import TextReader, forward_batches, mean_over_windows, refuse_others


class Classification(LabelTask, TextReader):
    """A classifier of texts, ready to use."""

    name: ClassVar[str] = "classification"

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Reader:
        """The encoder of a recipe with a head for n labels."""
        assert isinstance(recipe.model, BertSection | RnnEncoderSection)
        return reader(recipe.model, sizes[0], classes(recipe.model, max(1, sizes[1])), key)

    @overload
    def classify(self, text: str, threshold: float | None = None) -> Prediction: ...
    @overload
    def classify(self, text: list[str], threshold: float | None = None) -> list[Prediction]: ...
    def classify(self, text: str | list[str], threshold: float | None = None) -> Prediction | list[Prediction]:
        """The prediction for a text, or for each text of a list.

        A text longer than any in training is read in overlapping windows whose scores are averaged. An empty or
        blank text has no prediction (``predictions.NOTHING``), as none is in the training data.

        Args:
            text: one text or several.
            threshold: the lowest accepted probability; default: the recipe's, else the fitted one.
        """
        if isinstance(text, str):
            return self.classify([text], threshold)[0]
        refuse_others(text)
        said = iter(self.predictor(threshold).predictions(self.scores([one for one in text if one.strip()])))
        return [next(said) if one.strip() else NOTHING for one in text]

    def scores(self, texts: Sequence[str]) -> Scores:
        """``score_BC``: the scores of every label before temperature and softmax; of a regression the number."""
        pieces = self.assets.tokenizer.ids_batch(list(texts))
        windows = [[window.ids for window in self.frame.windows(ids)] for ids in pieces]
        rows = forward_batches(self.model, [one for group in windows for one in group], self.device, each=False)
        score_WC = np.array(rows).reshape(len(rows), len(self.assets.labels))
        return mean_over_windows(score_WC, np.array(list(map(len, windows)), np.int64))
