"""Texts with what is said of them, packed: none, one or several labels a text, or one a token."""

import numpy as np
import pytest

from regard.config import Recipe
from regard.data.batches.batch import Position
from regard.data.batches.texts import Examples


class Lists:
    """A side in memory."""

    def __init__(self, sentences: list[list[int]]) -> None:
        self._sentences = [np.array(one, np.int64) for one in sentences]
        self.count = len(sentences)
        self.tokens = sum(map(len, sentences))
        self.longest = max(map(len, sentences), default=0)

    def lengths(self, epoch, sentences_B):
        return np.array([len(self._sentences[place]) for place in sentences_B], np.int64)

    def gather(self, epoch, sentences_B):
        ids = [self._sentences[place] for place in sentences_B]
        return np.concatenate([np.zeros(0, np.int64), *ids]), self.lengths(epoch, sentences_B)


TEXTS = [[5, 6, 7, 0], [8, 0], [9, 9, 9, 9, 9, 0], [5, 0], [6, 7, 8, 0]]


@pytest.mark.parametrize(
    "labels", [[[2], [0], [1], [1], [3]], [[2, 1], [], [0, 1, 2], [], [3]], [[1] * len(text) for text in TEXTS]]
)
def test_labels_lie_end_to_end_as_their_texts_do(labels: list[list[int]]) -> None:
    examples = Examples.of(Lists(TEXTS), Lists(labels), 16)
    batch = examples.batch(np.array([4, 0, 1]))
    assert batch.text.ids_T[:10].tolist() == TEXTS[4] + TEXTS[0] + TEXTS[1]
    assert batch.labels_X.tolist() == labels[4] + labels[0] + labels[1]
    assert batch.counts_B.tolist() == [len(labels[4]), len(labels[0]), len(labels[1])]
    assert (batch.tokens, batch.room, batch.text.count) == (10, 16, 3)
    every = examples.all()
    assert np.concatenate([one.labels_X for one in every]).tolist() == [one for some in labels for one in some]
    assert np.concatenate([one.sentences for one in every]).tolist() == [0, 1, 2, 3, 4]


def feed(seed: int = 1, make=None):
    labels = Lists([[place % 4] for place in range(len(TEXTS))])
    examples = Examples.of(Lists(TEXTS), labels, 16)
    recipe = Recipe.model_validate({"task": "classification", "seed": seed, "data": {"max_tokens": 8}})
    return examples, examples.feed(recipe, "data", make(examples) if make else examples.plain, prefetch=0)


def test_a_position_is_a_batch() -> None:
    first = [batch for (batch, _), _ in zip(feed()[1].iterate(), range(9), strict=False)]
    _, position = next(feed()[1].iterate())
    again = [batch for (batch, _), _ in zip(feed()[1].iterate(position), range(8), strict=False)]
    for one, other in zip(first[1:], again, strict=True):
        assert one.sentences.tolist() == other.sentences.tolist()
        assert one.text.ids_T.tolist() == other.text.ids_T.tolist()
    others = [batch.sentences.tolist() for (batch, _), _ in zip(feed(seed=2)[1].iterate(), range(9), strict=False)]
    assert others != [batch.sentences.tolist() for batch in first]


def test_what_makes_a_batch_is_told_its_position() -> None:
    asked = []

    def make(examples: Examples):
        def one(place: Position, sentences_B):
            asked.append((place, sentences_B.tolist()))
            return examples.plain(place, sentences_B)

        return one

    batches = feed(make=make)[1].iterate()
    _, second = next(batches)
    next(batches)
    assert [place for place, _ in asked[:2]] == [Position(), second]
