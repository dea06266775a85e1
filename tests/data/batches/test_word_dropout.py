"""Word dropout: another share of the tokens is hidden at every position, by key, and labels stay."""

from __future__ import annotations

import numpy as np

from regard.data.batches.batch import Capacity, Position
from regard.data.batches.texts import Examples


class Lists:
    """A side in memory."""

    def __init__(self, rows: list[np.ndarray]) -> None:
        self.rows, self.count = rows, len(rows)
        self.tokens, self.longest = sum(map(len, rows)), max(map(len, rows))

    def lengths(self, epoch: int, sentences_B: np.ndarray) -> np.ndarray:
        return np.array([len(self.rows[place]) for place in sentences_B], np.int64)

    def gather(self, epoch: int, sentences_B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.concatenate([self.rows[place] for place in sentences_B]), self.lengths(epoch, sentences_B)


TEXTS = [np.arange(2, 12), np.arange(5, 30), np.arange(2, 40)]


def examples() -> Examples:
    labels = [np.array([n]) for n in range(len(TEXTS))]
    return Examples(Lists(TEXTS), Lists(labels), Capacity(128, 128, 8))


def test_a_share_is_hidden_anew_at_every_position() -> None:
    every = np.arange(3)
    make = examples().with_word_dropout(0.5, 1, seed=3)
    plain = examples().batch(every)
    first, again, other = (make(Position(0, 0, n), every) for n in (0, 0, 1))
    assert np.array_equal(first.text.ids_T, again.text.ids_T)
    assert not np.array_equal(first.text.ids_T, other.text.ids_T)
    hidden_T = first.text.ids_T == 1
    real = int(plain.text.lengths_B.sum())
    assert 0.3 < hidden_T[:real].mean() < 0.7
    assert np.array_equal(first.text.ids_T[~hidden_T], plain.text.ids_T[~hidden_T])
    assert np.array_equal(first.labels_X, plain.labels_X)


def test_no_share_hides_nothing() -> None:
    every = np.arange(3)
    batch = examples().with_word_dropout(0.0, 1, seed=3)(Position(), every)
    assert np.array_equal(batch.text.ids_T, examples().batch(every).text.ids_T)
