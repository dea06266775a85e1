"""A text as hashed n-grams: words and pairs of neighbours, and 2 to 5 characters within a word [Joachims98].

An n-gram is a string, and its number is a hash, so that nothing has to be learned from a corpus or stored. Each kind is
weighed by the logarithm of how often it occurs, and the weights of a kind have the length one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from regard.text.word_vectors import WordVectors

Bag = tuple[NDArray[np.int64], NDArray[np.float32]]
"""``(buckets_N, weights_N)``: the numbers of n-grams, and how much of each there is."""
SIZES = (2, 3, 4, 5)
"""Characters of an n-gram within a word, the spaces around the word among them."""
KEPT = 100_000
"""Words whose n-grams are remembered."""
_WORD = re.compile(r"\w+|[^\w\s]")
_ENDS = ("\x02", "\x03")
"""Stand before the first and behind the last word."""


@dataclass(frozen=True)
class Bags:
    """The n-grams of texts, end to end.

    Args:
        starts_B1: where each text begins in the others, and where the last ends.
        buckets_N: the numbers of the n-grams.
        weights_N: their weights.
    """

    starts_B1: NDArray[np.int64]
    buckets_N: NDArray[np.int64]
    weights_N: NDArray[np.float32]

    def __iter__(self) -> Iterator[Bag]:
        for begin, end in pairwise(self.starts_B1.tolist()):
            yield self.buckets_N[begin:end], self.weights_N[begin:end]

    def some(self, texts: NDArray[np.int64]) -> Bags:
        """The bags of some of the texts, by their numbers."""
        counts_B = np.diff(self.starts_B1)[texts]
        starts_B1 = np.append(0, counts_B.cumsum())
        places_N = np.arange(starts_B1[-1]) + np.repeat(self.starts_B1[texts] - starts_B1[:-1], counts_B)
        return Bags(starts_B1, self.buckets_N[places_N], self.weights_N[places_N])


class NGrams:
    """Counts the n-grams of texts.

    Args:
        buckets: how many different numbers there are.
        words: vectors of words; a text's own then stands behind its n-grams, its entries numbered from ``buckets`` on.
    """

    def __init__(self, buckets: int, words: WordVectors | None = None) -> None:
        self.buckets, self.words = buckets, words
        self._known: dict[str, list[int]] = {}

    def bags(self, texts: Iterable[str]) -> Bags:
        """The n-grams of each text, in lower case."""
        found = [self.bag(text) for text in texts]
        starts_B1 = np.cumsum([0, *(len(buckets_N) for buckets_N, _ in found)])
        buckets_N = np.concatenate([np.zeros(0, np.int64), *(buckets_N for buckets_N, _ in found)])
        weights_N = np.concatenate([np.zeros(0, np.float32), *(weights_N for _, weights_N in found)])
        return Bags(starts_B1, buckets_N, weights_N)

    def bag(self, text: str) -> Bag:
        """``(buckets_N, weights_N)`` of one text."""
        words = words_of(text)
        kinds = [_log_weights(one) for one in self._kinds(words)]
        if self.words is not None:
            kinds.append(self._entries(self.words.text_vector(list(map(self.hash, words)))))
        return np.concatenate([one for one, _ in kinds]), np.concatenate([one for _, one in kinds])

    def bags_of_words(self, text: str) -> list[Bag]:
        """The bag of a text divided among its words: ``(buckets_N, weights_N)`` of each.

        An n-gram that occurs several times gives each occurrence the same part of its weight, and a pair of words gives
        each of the two half of that.
        """
        words = words_of(text)
        bags = self._divide(words)
        if self.words is None:
            return bags
        vectors = [self._entries(one) for one in self.words.parts(list(map(self.hash, words)))]
        return [(np.append(bag[0], one[0]), np.append(bag[1], one[1])) for bag, one in zip(bags, vectors, strict=True)]

    def _entries(self, vector_D: NDArray[np.float32]) -> Bag:
        return self.buckets + np.arange(len(vector_D)), vector_D

    def _divide(self, words: Sequence[str]) -> list[Bag]:
        found: list[dict[int, float]] = [{} for _ in words]
        owners = [_owners(len(words)), [[place] for place, word in enumerate(words) for _ in character_ngrams(word)]]
        for buckets, owned in zip(self._kinds(words), owners, strict=True):
            kept_N, weights_N = _log_weights(buckets)
            times = Counter(buckets)
            each = {bucket: weight / times[bucket] for bucket, weight in zip(kept_N.tolist(), weights_N, strict=True)}
            for bucket, places in zip(buckets, owned, strict=True):
                for place in places:
                    found[place][bucket] = found[place].get(bucket, 0.0) + each[bucket] / len(places)
        return [(np.array([*one], np.int64), np.array([*one.values()], np.float32)) for one in found]

    def _kinds(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """The n-grams of words and those of characters, as often as they occur."""
        of_words = [self.hash(one) for one in word_ngrams(words)]
        return of_words, [bucket for word in words for bucket in self._characters(word)]

    def _characters(self, word: str) -> list[int]:
        if word not in self._known:
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[word] = [self.hash(one) for one in character_ngrams(word)]
        return self._known[word]

    def hash(self, ngram: str) -> int:
        """The number of an n-gram."""
        return crc32(ngram.encode("utf-8", "surrogatepass")) % self.buckets


def words_of(text: str) -> list[str]:
    """The words of a text and its other signs, in lower case."""
    return _WORD.findall(text.lower())


def _owners(words: int) -> list[list[int]]:
    """The words that each of :func:`word_ngrams` consists of; the ends of the text are none."""
    pairs = ([place for place in (left, left + 1) if 0 <= place < words] for left in range(-1, words))
    return [*([place] for place in range(words)), *pairs]


def word_ngrams(words: Sequence[str]) -> list[str]:
    """The words, and each pair of neighbours, the ends of the text among them."""
    ends = [_ENDS[0], *words, _ENDS[1]]
    return [*words, *(f"{left} {right}" for left, right in pairwise(ends))]


def character_ngrams(word: str) -> list[str]:
    """The n-grams of a word between spaces, each with a mark before it; of a short word the whole, once."""
    spaced = f" {word} "
    found: list[str] = []
    for size in SIZES:
        if len(spaced) <= size:
            return [*found, "\x01" + spaced]
        found += ["\x01" + spaced[begin : begin + size] for begin in range(len(spaced) - size + 1)]
    return found


def _log_weights(buckets: list[int]) -> Bag:
    """Each bucket once, with its weight."""
    buckets_N, counts_N = np.unique(np.array(buckets, np.int64), return_counts=True)
    weights_N = 1.0 + np.log(counts_N)
    return buckets_N, (weights_N / max(float(np.linalg.norm(weights_N)), 1e-12)).astype(np.float32)
