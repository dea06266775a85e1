"""Texts packed with labels: none, one or several a text, or one a token; word dropout leaves the labels."""

import numpy as np
import pytest

from regard.data.batches.batch import Capacity, Position
from regard.data.batches.texts import Examples
from regard.data.prepare.bpe_dropout import Ragged

TEXTS = [[5, 6, 7, 0], [8, 0], [9, 9, 9, 9, 9, 0], [5, 0], [6, 7, 8, 0]]


@pytest.mark.parametrize(
    "labels", [[[2], [0], [1], [1], [3]], [[2, 1], [], [0, 1, 2], [], [3]], [[1] * len(text) for text in TEXTS]]
)
def test_labels_lie_end_to_end_as_their_texts_do(labels: list[list[int]]) -> None:
    examples = Examples.of(Ragged(TEXTS), Ragged(labels), 16)
    batch = examples.batch(np.array([4, 0, 1]))
    assert batch.text.ids_T[:10].tolist() == TEXTS[4] + TEXTS[0] + TEXTS[1]
    assert batch.labels_X.tolist() == labels[4] + labels[0] + labels[1]
    assert batch.counts_B.tolist() == [len(labels[4]), len(labels[0]), len(labels[1])]
    assert (batch.tokens, batch.room, batch.text.count) == (10, 16, 3)
    every = examples.all()
    assert np.concatenate([one.labels_X for one in every]).tolist() == [one for some in labels for one in some]
    assert np.concatenate([one.sentences for one in every]).tolist() == [0, 1, 2, 3, 4]


def long_texts() -> Examples:
    """All of whose tokens are none of those that hide."""
    return Examples(Ragged([range(2, 12), range(5, 30), range(2, 40)]), Ragged([[0], [1], [2]]), Capacity(128, 128, 8))


def test_word_dropout_hides_a_share_anew_at_every_position() -> None:
    every = np.arange(3)
    make = long_texts().with_word_dropout(0.5, 1, seed=3)
    plain = long_texts().batch(every)
    first, again, other = (make(Position(0, 0, n), every) for n in (0, 0, 1))
    assert np.array_equal(first.text.ids_T, again.text.ids_T)
    assert not np.array_equal(first.text.ids_T, other.text.ids_T)
    hidden_T = first.text.ids_T == 1
    real = int(plain.text.lengths_B.sum())
    assert 0.3 < hidden_T[:real].mean() < 0.7
    assert np.array_equal(first.text.ids_T[~hidden_T], plain.text.ids_T[~hidden_T])
    assert np.array_equal(first.labels_X, plain.labels_X)


def test_word_dropout_of_no_share_hides_nothing() -> None:
    every = np.arange(3)
    batch = long_texts().with_word_dropout(0.0, 1, seed=3)(Position(), every)
    assert np.array_equal(batch.text.ids_T, long_texts().batch(every).text.ids_T)
