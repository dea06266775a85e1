"""Classification: a text → one of several labels, any number of them, or a number, with a trained encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, overload

import numpy as np

from regard.config import BertSection, Recipe, RnnEncoderSection
from regard.data.corpora import Corpus
from regard.models.build import classes, reader
from regard.models.rnn_reader import Reader
from regard.tasks.class_evaluation import ClassEvaluation, evaluated
from regard.tasks.reading import averaged, read
from regard.tasks.texts import TextReader, refuse_others
from regard.tasks.verdicts import NOTHING, Judge, Scores, Verdict

__all__ = ["Classification", "Verdict"]


class Classification(TextReader):
    """A classifier of texts, ready to use.

    Args:
        recipe: what it was made by.
        assets: tokenizer, labels, and what was fitted.
        model: the trained encoder with its head, on its device.
    """

    name: ClassVar[str] = "classification"

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Reader:
        """The encoder of a recipe with a head for so many labels."""
        assert isinstance(recipe.model, BertSection | RnnEncoderSection)
        return reader(recipe.model, sizes[0], classes(recipe.model, max(1, sizes[1])), key)

    @overload
    def classify(self, text: str, threshold: float | None = None) -> Verdict: ...
    @overload
    def classify(self, text: list[str], threshold: float | None = None) -> list[Verdict]: ...
    def classify(self, text: str | list[str], threshold: float | None = None) -> Verdict | list[Verdict]:
        """What the model says of a text, or of each text of a list.

        A text longer than the model ever saw is read in windows that overlap; their scores are averaged. Of a text that
        is empty, or blank, nothing is said (:data:`~regard.tasks.verdicts.NOTHING`), as nothing was learned from such.

        Args:
            text: one text or several.
            threshold: the probability from which on a label is believed; default: the recipe's, else the fitted one.
        """
        if isinstance(text, str):
            return self.classify([text], threshold)[0]
        refuse_others(text)
        said = iter(self.judge(threshold).verdicts(self.scores([one for one in text if one.strip()])))
        return [next(said) if one.strip() else NOTHING for one in text]

    def evaluate(self, corpus: Corpus, threshold: float | None = None) -> ClassEvaluation:
        """How well the model does on labelled texts that it was not taught."""
        return evaluated(self.judge(threshold), self.scores, corpus)

    def scores(self, texts: Sequence[str]) -> Scores:
        """``score_BC``: the scores of every label before temperature and softmax; of a regression the number."""
        pieces = self.assets.tokenizer.ids_batch(list(texts))
        windows = [[window.ids for window in self.frame.windows(ids)] for ids in pieces]
        rows = read(self.model, [one for group in windows for one in group], self.device, each=False)
        score_WC = np.array(rows).reshape(len(rows), len(self.assets.labels))
        return averaged(score_WC, np.array(list(map(len, windows)), np.int64))

    def verdicts(self, score_BC: Scores) -> list[Verdict]:
        """Scores as labels and probabilities."""
        return self.judge().verdicts(score_BC)

    def judge(self, threshold: float | None = None) -> Judge:
        """What turns scores into labels and probabilities."""
        return Judge(self.recipe.classification, self.assets.labels, self.assets.fitted, threshold)
