"""Classification of sentence pairs with a trained encoder: a label, several, or a number for two texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from regard.config import Recipe
from regard.system.errors import UsageError
from regard.tasks.classification.classifier import NOTHING, Classification, Prediction, TextLabelTask
from regard.tasks.classification.pairs.corpus import join_pieces, kept_pieces
from regard.tasks.text.task import BETWEEN, Read, read_as

if TYPE_CHECKING:
    from regard.data.batches.batch import Ids
    from regard.models.rnn import Reader

Pair = tuple[str, str] | str
"""Two texts, or both on one line with a tab or ``[SEP]`` between them."""
_BETWEEN = re.compile(r"\s*(?:\t|\n|\[SEP\])\s*")


def split_pair(given: Pair, where: str = "text") -> tuple[str, str]:
    """The two texts.

    Raises:
        UsageError: there are not two.
    """
    found = _BETWEEN.split(given.strip(" ")) if isinstance(given, str) else list(given)
    if len(found) != 2 or not all(isinstance(text, str) for text in found):
        raise UsageError(f"is not two texts; put a tab or {BETWEEN.strip()} between them, once", where)
    return found[0], found[1]


class PairClassification(TextLabelTask):
    """A classifier of sentence pairs, ready to use; the second text is another segment [Devlin19 §3]."""

    marks = re.compile(re.escape(BETWEEN.strip()))

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Reader:
        """The encoder of a recipe with a head for n labels."""
        return Classification.build(recipe, sizes, key)

    @overload
    def classify(self, text: Pair, threshold: float | None = None) -> Prediction: ...
    @overload
    def classify(self, text: list[Pair], threshold: float | None = None) -> list[Prediction]: ...
    def classify(self, text: Pair | list[Pair], threshold: float | None = None) -> Prediction | list[Prediction]:
        """The prediction for a pair, or for each pair of a list.

        Of a pair longer than any in training the longer text is cut at its end, as in training. A pair that lacks a
        text has no prediction.

        Args:
            text: one pair or several.
            threshold: the lowest accepted probability; default: the recipe's, else the fitted one.

        Raises:
            UsageError: it is not two texts.
        """
        if not isinstance(text, list):
            return self.classify([text], threshold)[0]
        pairs = [split_pair(one, f"text {place}") for place, one in enumerate(text, 1)]
        whole = [all(part.strip() for part in pair) for pair in pairs]
        said = iter(
            self.predictor(threshold).predictions(
                self.scores([pair for pair, there in zip(pairs, whole, strict=True) if there])
            )
        )
        return [next(said) if there else NOTHING for there in whole]

    def parse_line(self, line: str, number: int) -> tuple[str, str] | None:
        """The two texts of a line; none where one is missing.

        Raises:
            UsageError: it does not hold two; with its number.
        """
        if not line.strip():
            return None
        pair = split_pair(line, f"line {number}")
        return pair if all(text.strip() for text in pair) else None

    def reads(self, text: str) -> tuple[str, list[Read]]:
        """The model's input for two texts and its characters, for inspection; for one text, while it is typed, too."""
        first, second = split_pair(text) if _BETWEEN.search(text) else (text, "")
        read = [read_as(self.assets.tokenizer, one, ()) for one in (first, second)]
        kept = kept_pieces(self.frame, len(read[0][1]), len(read[1][1]))
        shift, end = len(read[0][0]) + len(BETWEEN), self.frame.end
        known = BETWEEN.join(text for text, _ in read) if second else read[0][0]
        return known, [
            *((id, 0, 0) for id in self.frame.begin),
            *read[0][1][: kept[0]],
            (end, len(read[0][0]), len(read[0][0])),
            *((id, begin + shift, stop + shift) for id, begin, stop in read[1][1][: kept[1]]),
            (end, len(known), len(known)),
        ]

    def windows(self, pairs: Sequence[Pair]) -> list[list[Ids]]:
        """The one window of each pair."""
        texts = [text for pair in pairs for text in split_pair(pair)]
        pieces = iter(self.assets.tokenizer.ids_batch(texts))
        return [[join_pieces(self.frame, next(pieces), next(pieces))] for _ in pairs]
