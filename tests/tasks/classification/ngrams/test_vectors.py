"""Vectors of words: words of like surroundings are near, as numpy's singular values have it."""

import numpy as np
import pytest
import torch

from regard.tasks.classification.ngrams import vectors
from regard.tasks.classification.ngrams.vectors import learn_vectors
from regard.text.ngrams import NGrams, words_of
from regard.text.word_vectors import WordVectors

DAYS, FRUIT = ["monday", "friday", "sunday"], ["apple", "pear", "plum"]


def texts(count: int = 200) -> list[str]:
    draw = np.random.default_rng(0)
    days = [f"we meet on {draw.choice(DAYS)} at {draw.integers(9)}" for _ in range(count)]
    return [*days, *(f"she eats a ripe {draw.choice(FRUIT)} today" for _ in range(count))]


def near(found: WordVectors, word: str, other: str) -> float:
    of = NGrams(1 << 24).hash
    rows = [found.vector_WD[np.searchsorted(found.hashes_W, of(one))].astype(float) for one in (word, other)]
    return float(rows[0] @ rows[1] / np.linalg.norm(rows[0]) / np.linalg.norm(rows[1]))


def test_words_of_like_surroundings_are_near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "SIZE", 6)
    found = learn_vectors(texts(), NGrams(1 << 24).hash)
    assert near(found, "monday", "friday") > 0.9
    assert near(found, "apple", "plum") > 0.9
    assert abs(near(found, "monday", "apple")) < 0.3


def test_they_are_the_singular_vectors_of_the_mutual_information(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "SIZE", 4)
    monkeypatch.setattr(vectors, "FREQUENT", 1e9)
    said = [words_of(one) for one in texts(50)]
    kept = sorted({word for words in said for word in words})
    count = np.zeros((len(kept), len(kept)))
    for words in said:
        for i, left in enumerate(words):
            for j, right in enumerate(words):
                if i != j and abs(i - j) <= vectors.WINDOW:
                    count[kept.index(left), kept.index(right)] += 1 / abs(i - j)
    times = {word: sum(words.count(word) for words in said) for word in kept}
    there = [place for place, word in enumerate(kept) if times[word] >= vectors.LEAST]
    count = count[np.ix_(there, there)]
    total = count.sum(1)
    smooth = total**vectors.SMOOTHING
    share = count / (total[:, None] * (smooth / smooth.sum()))
    left, value, _ = np.linalg.svd(np.log(np.maximum(share, 1)))
    wanted = left[:, :4] * np.sqrt(value[:4])
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    found = learn_vectors(texts(50), NGrams(1 << 24).hash)
    of = NGrams(1 << 24).hash
    rows = [np.searchsorted(found.hashes_W, of(kept[place])) for place in there]
    mine = found.vector_WD[rows].astype(float)
    assert mine @ mine.T == pytest.approx(wanted @ wanted.T, abs=5e-3)


def test_the_bits_do_not_depend_on_threads() -> None:
    one = learn_vectors(texts(), NGrams(1 << 24).hash)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        two = learn_vectors(texts(), NGrams(1 << 24).hash)
    finally:
        torch.set_num_threads(before)
    assert (one.vector_WD == two.vector_WD).all()


@pytest.mark.parametrize("given", [[], [""], ["one"], ["one two"], ["a a a a"]])
def test_hardly_any_text(given: list[str]) -> None:
    found = learn_vectors(given, NGrams(1 << 24).hash)
    assert len(found.hashes_W) == 0
    assert found.text_vector([1, 2]).shape == (1,)
