"""Texts without labels: what a classifier learns from them, and what it does not."""

import numpy as np
import pytest

from regard.tasks.classification.ngrams import self_training
from regard.tasks.classification.ngrams.fit import fit
from regard.tasks.classification.ngrams.linear import BUCKETS
from regard.tasks.classification.ngrams.self_training import _surest, fit_with_unlabelled
from regard.text.ngrams import NGrams

SIGNS = [["red", "rose", "ruby", "rust"], ["blue", "sea", "sky", "ink"]]


def drawn(count: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Texts of two of the words of a class each, among others that say nothing."""
    draw = np.random.default_rng(seed)
    of_B = draw.integers(2, size=count)
    said = [[*draw.choice(SIGNS[one], 2, replace=False), *draw.choice(["the", "a", "of"], 3)] for one in of_B]
    return [" ".join(draw.permutation(words)) for words in said], of_B


def test_words_that_no_labelled_text_has_are_learned() -> None:
    texts, targets_BC = ["the red a", "of blue the"], np.eye(2, dtype=np.bool_)
    unlabelled, _ = drawn(400, 1)
    held, wanted_B = drawn(200, 2)
    labels = fit(NGrams(BUCKETS).bags(texts), targets_BC).scores(held).argmax(1)
    both = fit_with_unlabelled(texts, targets_BC, unlabelled).scores(held).argmax(1)
    assert (both == wanted_B).mean() > 0.95 > 0.85 > (labels == wanted_B).mean()


def test_the_surest_of_each_class() -> None:
    score_BC = np.array([[3.0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 0.1, 0], [0, 0, 5]])
    assert _surest(score_BC, score_BC.argmax(1), 0.67).tolist() == [0, 2, 3, 4]
    assert _surest(np.array([[1.0], [2.0]]), np.zeros(2, np.int64), 0.5).tolist() == [0, 1]


def test_it_is_the_same_every_time() -> None:
    texts, of_B = drawn(40, 1)
    unlabelled, _ = drawn(60, 2)
    one, two = (fit_with_unlabelled(texts, np.eye(2, dtype=np.bool_)[of_B], unlabelled) for _ in range(2))
    assert one.content == two.content


@pytest.mark.parametrize("unlabelled", [["x"], ["the", "a"]])
def test_few_unlabelled_texts_do_no_harm(unlabelled: list[str]) -> None:
    texts, of_B = drawn(60, 1)
    found = fit_with_unlabelled(texts, np.eye(2, dtype=np.bool_)[of_B], unlabelled)
    assert (found.scores(texts).argmax(1) == of_B).mean() > 0.95


def test_so_many_texts_and_characters_are_labelled(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, of_B = drawn(20, 1)
    targets_BC = np.eye(2, dtype=np.bool_)[of_B]
    unlabelled, _ = drawn(60, 2)
    asked: list[int] = []

    def counted(score_BC: np.ndarray, said_B: np.ndarray, share: float) -> np.ndarray:
        asked.append(len(score_BC))
        return _surest(score_BC, said_B, share)

    monkeypatch.setattr(self_training, "_surest", counted)
    fit_with_unlabelled(texts, targets_BC, unlabelled)
    monkeypatch.setattr(self_training, "CHARACTERS", sum(map(len, unlabelled[:7])))
    fit_with_unlabelled(texts, targets_BC, unlabelled)
    monkeypatch.setattr(self_training, "MOST", 5)
    fit_with_unlabelled(texts, targets_BC, unlabelled)
    assert asked == [60] * 3 + [7] * 3 + [5] * 3
