"""The simple thing that a classifier must beat: TF-IDF of n-grams and a linear SVM, two lines of scikit-learn."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from regard.tasks.metrics.labels import class_scores

MOST = 100_000
"""Texts to learn from; more would take minutes."""


@dataclass(frozen=True)
class Baseline:
    """What the simple classifier reaches.

    Args:
        accuracy, macro_f1: in percent.
        seconds: that it took.
    """

    accuracy: float
    macro_f1: float
    seconds: float

    @property
    def line(self) -> str:
        """A line of the card."""
        return (
            f"for comparison, a linear SVM on TF-IDF n-grams (scikit-learn, {self.seconds:.0f} s): "
            f"accuracy {self.accuracy:.2f}, f1 {self.macro_f1:.2f}"
        )


def available() -> bool:
    """Whether scikit-learn is installed (the extra ``baseline``)."""
    from importlib.util import find_spec

    return find_spec("sklearn") is not None


def score_baseline(
    texts: Sequence[str], labels: Sequence[int], held_out: Sequence[str], wanted: Sequence[int], classes: int
) -> Baseline | None:
    """Word 1-2-grams and character 2-5-grams within words, sublinear, and LinearSVC by its defaults.

    Args:
        texts, labels: to learn from.
        held_out, wanted: to score on.
        classes: labels are below it.

    Returns:
        ``None``: scikit-learn finds no word of two letters.
    """
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.svm import LinearSVC

    began = time.monotonic()
    features = make_union(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may not converge
        try:
            found = make_pipeline(features, LinearSVC(random_state=0)).fit(texts, labels).predict(held_out)
        except ValueError as error:
            if "empty vocabulary" not in str(error):
                raise
            return None
    scores = class_scores(np.array(wanted), np.array(found), list(map(str, range(classes))))
    return Baseline(scores.accuracy, scores.macro_f1, time.monotonic() - began)
