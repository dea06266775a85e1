"""The simple thing that a classifier must beat: TF-IDF of n-grams and a linear SVM, two lines of scikit-learn."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence

from regard.tasks.metrics.labels import class_scores

MOST = 100_000
"""Texts to learn from; more would take minutes."""


def available() -> bool:
    """Whether scikit-learn is installed (the extra ``baseline``)."""
    from importlib.util import find_spec

    return find_spec("sklearn") is not None


def score_baseline(
    texts: Sequence[str], labels: Sequence[int], held_out: Sequence[str], wanted: Sequence[int], classes: int
) -> str | None:
    """What word 1-2-grams and character 2-5-grams within words, sublinear, and LinearSVC by its defaults reach.

    Args:
        texts, labels: to learn from.
        held_out, wanted: to score on.
        classes: labels are below it.

    Returns:
        A line of the card; ``None``: scikit-learn finds no word of two letters.
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
    return (
        f"for comparison, a linear SVM on TF-IDF n-grams (scikit-learn, {time.monotonic() - began:.0f} s): "
        f"accuracy {scores.accuracy:.2f}, f1 {scores.macro_f1:.2f}"
    )
