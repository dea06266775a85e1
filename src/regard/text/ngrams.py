"""A text as hashed n-grams: words and pairs of neighbours, and 2 to 5 characters within a word [Joachims98].

An n-gram is a string, and its number is a hash, so that nothing has to be learned from a corpus or stored. Each kind is
weighed by the logarithm of how often it occurs, and the weights of a kind have the length one. Two texts also have the
n-grams that both contain.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, Literal, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Bag = tuple[NDArray[np.int64], NDArray[np.float32]]
"""``(buckets_N, weights_N)``: the numbers of n-grams, and how much of each there is."""
SIZES = (2, 3, 4, 5)
"""Characters of an n-gram within a word, the spaces around the word among them."""
KEPT = 100_000
"""Words whose n-grams are remembered."""
OWN = 0.3
"""What n-grams of one of two texts count beside those of both, which tell more: of 0.15 to 1 the best of three sets."""
WORDS = 10.0
"""A text of so many words has the length one."""
Form = Literal["text", "number", "pair"]
"""What a bag is made of: a text, one that a number belongs to, or two texts."""
T = TypeVar("T")
Pair = tuple[str, str]
_WORD = re.compile(r"\w+|[^\w\s]")
_ENDS = ("\x02", "\x03")
"""Stand before the first and behind the last word."""
_FACTORS = (1, 0x9E3779B1, 0x85EBCA77)
"""Of the numbers of n-grams: of the first text, of the second, of both."""


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


class Vectorizer(ABC, Generic[T]):
    """Makes bags of texts, or of pairs of them; entries that are no n-grams are numbered from ``buckets`` on."""

    @abstractmethod
    def bag(self, text: T) -> Bag:
        """``(buckets_N, weights_N)`` of one."""

    @abstractmethod
    def words(self, text: T) -> list[str]:
        """Its words, in lower case."""

    @abstractmethod
    def bags_of_words(self, text: T) -> list[Bag]:
        """Its bag divided among its words: ``(buckets_N, weights_N)`` of each.

        An n-gram that occurs several times gives each occurrence the same part of its weight, and a pair of words gives
        each of the two half of that.
        """

    def bags(self, texts: Iterable[T]) -> Bags:
        """The bags of several."""
        found = [self.bag(text) for text in texts]
        starts_B1 = np.cumsum([0, *(len(buckets_N) for buckets_N, _ in found)])
        buckets_N = np.concatenate([np.zeros(0, np.int64), *(buckets_N for buckets_N, _ in found)])
        weights_N = np.concatenate([np.zeros(0, np.float32), *(weights_N for _, weights_N in found)])
        return Bags(starts_B1, buckets_N, weights_N)


class NGrams(Vectorizer[str]):
    """Counts the n-grams of texts, in lower case.

    Args:
        buckets: how many different numbers there are.
    """

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets
        self._known: dict[str, list[int]] = {}

    def bag(self, text: str) -> Bag:
        return _join([*self.kinds(text), *self.entries(self.words(text))])

    def words(self, text: str) -> list[str]:
        return words_of(text)

    def bags_of_words(self, text: str) -> list[Bag]:
        words = self.words(text)
        entries = self.word_entries(words)
        return [_join([_bag_of(one), *more]) for one, more in zip(self.divide(words), entries, strict=True)]

    def kinds(self, text: str) -> tuple[Bag, Bag]:
        """The bag of words and their pairs, and that of characters."""
        words, characters = self._kinds(words_of(text))
        return _log_weights(words), _log_weights(characters)

    def entries(self, words: Sequence[str]) -> list[Bag]:
        """What a text has beside n-grams."""
        return []

    def word_entries(self, words: Sequence[str]) -> list[list[Bag]]:
        """The same divided among its words."""
        return [[] for _ in words]

    def divide(self, words: Sequence[str]) -> list[dict[int, float]]:
        """The n-grams of a text divided among its words."""
        found: list[dict[int, float]] = [{} for _ in words]
        owners = [_owners(len(words)), [[place] for place, word in enumerate(words) for _ in character_ngrams(word)]]
        for buckets, owned in zip(self._kinds(words), owners, strict=True):
            kept_N, weights_N = _log_weights(buckets)
            times = Counter(buckets)
            each = {bucket: weight / times[bucket] for bucket, weight in zip(kept_N.tolist(), weights_N, strict=True)}
            for bucket, places in zip(buckets, owned, strict=True):
                for place in places:
                    found[place][bucket] = found[place].get(bucket, 0.0) + each[bucket] / len(places)
        return found

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


class NumberNGrams(NGrams):
    """Also how long a text is: the number of its words and its logarithm, which many numbers follow."""

    def entries(self, words: Sequence[str]) -> list[Bag]:
        return [_entries(self.buckets, np.array([len(words) / WORDS, np.log1p(len(words))], np.float32))]

    def word_entries(self, words: Sequence[str]) -> list[list[Bag]]:
        return [
            [(bucket_N, weight_N / np.float32(len(words))) for bucket_N, weight_N in self.entries(words)] for _ in words
        ]


class PairNGrams(Vectorizer[Pair]):
    """Counts the n-grams of each of two texts, those that both contain, and how similar the texts are by them.

    An n-gram of both has the geometric mean of its weights in each, so that for each kind (words, characters) the
    squares of all of these add up to the cosine of the two texts, which is an entry of its own.

    Args:
        buckets: as of :class:`NGrams`.
    """

    def __init__(self, buckets: int) -> None:
        self.buckets, self._ngrams = buckets, NGrams(buckets)

    def bag(self, text: Pair) -> Bag:
        found = list[Bag]()
        for kind, (first, second) in enumerate(zip(*map(self._ngrams.kinds, text), strict=True)):
            both_N, first_N, second_N = np.intersect1d(first[0], second[0], return_indices=True)
            product_N = first[1][first_N] * second[1][second_N]
            found += [
                (self._number(one[0], side), np.float32(OWN) * one[1]) for side, one in enumerate((first, second))
            ]
            found += [(self._number(both_N, 2), np.sqrt(product_N))]
            found += [(np.array([self.buckets + kind]), product_N.sum(keepdims=True))]
        return _join(found)

    def words(self, text: Pair) -> list[str]:
        return [word for one in text for word in words_of(one)]

    def bags_of_words(self, text: Pair) -> list[Bag]:
        """As of a single text; what an n-gram of both adds belongs to each by half."""
        sides = [[dict(zip(*kind, strict=True)) for kind in self._ngrams.kinds(one)] for one in text]
        return [
            self._word_bag(word, side, sides[side], sides[1 - side])
            for side, one in enumerate(text)
            for word in self._ngrams.divide(words_of(one))
        ]

    def _word_bag(
        self, word: dict[int, float], side: int, own: list[dict[int, Any]], other: list[dict[int, Any]]
    ) -> Bag:
        """Of a word's n-grams, which are parts of those of its text, beside those of the other text."""
        buckets_N = np.array([*word], np.int64)
        found = [(self._number(buckets_N, side), np.array([OWN * part for part in word.values()], np.float32))]
        for kind, (mine, others) in enumerate(zip(own, other, strict=True)):
            both_N = np.array([bucket for bucket in word if bucket in mine and bucket in others], np.int64)
            part_N = np.array([word[bucket] for bucket in both_N.tolist()], np.float32) / 2
            mine_N, other_N = (
                np.array([of[bucket] for bucket in both_N.tolist()], np.float32) for of in (mine, others)
            )
            found += [(self._number(both_N, 2), part_N * np.sqrt(other_N / mine_N))]
            found += [(np.array([self.buckets + kind]), (part_N * other_N).sum(keepdims=True))]
        return _join(found)

    def _number(self, buckets_N: NDArray[np.int64], place: int) -> NDArray[np.int64]:
        """Other numbers for the n-grams of the second text and for those of both: an odd factor keeps them apart."""
        return buckets_N * _FACTORS[place] % self.buckets


FORMS: dict[Form, type[NGrams] | type[PairNGrams]] = {"text": NGrams, "number": NumberNGrams, "pair": PairNGrams}


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


def _entries(begin: int, weights_D: NDArray[np.float32]) -> Bag:
    """Weights that are of no n-gram, numbered on."""
    return begin + np.arange(len(weights_D)), weights_D


def _bag_of(weights: dict[int, float]) -> Bag:
    return np.array([*weights], np.int64), np.array([*weights.values()], np.float32)


def _join(bags: Sequence[Bag]) -> Bag:
    return np.concatenate([one for one, _ in bags]), np.concatenate([one for _, one in bags])
