"""Learning from unlabelled texts: what words mean there, and texts that the classifier itself labels [Scudder65].

The classifier is fitted to the labelled texts, labels the others, and is fitted again to those it is surest of, class
by class, each round to more of them. They count less than labelled ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.tasks.classification.ngrams.fit import fit
from regard.tasks.classification.ngrams.linear import BUCKETS, LinearNGrams
from regard.tasks.classification.ngrams.vectors import learn_vectors
from regard.text.ngrams import NGrams

SHARES = (0.3, 0.55, 0.8)
"""Of the texts that are given a class the part that is learned from, in each round."""
IMPORTANCE = 0.3
"""What an error on such a text counts."""
MOST, CHARACTERS = 20_000, 2_000_000
"""Unlabelled texts that are labelled, and characters of them together: the first ones, so that it takes seconds with
long texts too. Vectors of words are learned from all."""


def fit_with_unlabelled(
    texts: Sequence[str], targets_BC: NDArray[np.bool_], unlabelled: Sequence[str], data: str = ""
) -> LinearNGrams:
    """A classifier that learns from labelled and unlabelled texts.

    Args:
        texts, targets_BC: labelled ones, and which class each is of.
        unlabelled: texts of the same kind.
        data: the fingerprint of all of them.
    """
    words = learn_vectors([*texts, *unlabelled], NGrams(BUCKETS).hash)
    bags = NGrams(BUCKETS, words).bags([*texts, *_first(unlabelled)])
    labelled, others = np.split(np.arange(len(bags.starts_B1) - 1), [len(texts)])
    unknown = bags.some(others)
    found = fit(bags.some(labelled), targets_BC, data, words=words)
    for share in SHARES:
        score_BC = found.scores_of(unknown)
        said_B = score_BC.argmax(1)
        chosen = _surest(score_BC, said_B, share)
        guessed_BC = np.zeros((len(chosen), targets_BC.shape[1]), np.bool_)
        guessed_BC[np.arange(len(chosen)), said_B[chosen]] = True
        importance_B = np.repeat(np.array([1, IMPORTANCE], np.float32), [len(texts), len(chosen)])
        every = bags.some(np.append(labelled, others[chosen]))
        targets = np.concatenate([targets_BC, guessed_BC])
        found = fit(every, targets, data, words=words, importance_B=importance_B)
    return found


def _first(texts: Sequence[str]) -> list[str]:
    """Those that are labelled."""
    ends_B = np.cumsum([len(text) for text in texts[:MOST]])
    return list(texts[: int(np.searchsorted(ends_B, CHARACTERS, side="right"))])


def _surest(score_BC: NDArray[np.float64], said_B: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """Of the texts given each class the share with the largest distance to the next class, in order."""
    if score_BC.shape[1] < 2:
        return np.arange(len(score_BC))
    best_B2 = np.sort(score_BC, axis=1)[:, -2:]
    margin_B = best_B2[:, 1] - best_B2[:, 0]
    found = [np.zeros(0, np.int64)]
    for one in np.unique(said_B):
        there = np.flatnonzero(said_B == one)
        found.append(there[np.argsort(-margin_B[there], kind="stable")][: round(share * len(there))])
    return np.sort(np.concatenate(found))
