"""Baselines for the demonstration: nearest training sentence, and majority gender of the pronoun."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from regard.data.demo.grammar.lexicon.declension import PRONOUN
from regard.data.demo.grammar.pair import Pair, words_of

CANDIDATES = 20
"""How many sentences with the most words in common are compared word by word."""


class NearestSentence:
    """Translates by looking up: the translation of the training sentence most like the source.

    An inverted index finds the sentences with the largest overlap of words, 2·common / (words + words); among the
    best of these the smallest edit distance over words decides, then the order in training.
    """

    def __init__(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        self._words = [words_of(source.lower()) for source in sources]
        self._targets = targets
        self._lengths_B = np.array([len(words) for words in self._words], dtype=np.float32)
        found: dict[str, list[int]] = {}
        for sentence, words in enumerate(self._words):
            for word in set(words):
                found.setdefault(word, []).append(sentence)
        self._sentences = {word: np.array(sentences, dtype=np.int64) for word, sentences in found.items()}

    def translate(self, sources: Iterable[str]) -> list[str]:
        """The translation of the nearest training sentence, for each source."""
        return [self._targets[self.nearest(source)] for source in sources]

    def nearest(self, source: str) -> int:
        """The index of the nearest training sentence."""
        words = words_of(source.lower())
        common_B = np.zeros(len(self._words), dtype=np.float32)
        for word in set(words):
            if word in self._sentences:
                common_B[self._sentences[word]] += 1
        overlap_B = 2 * common_B / (self._lengths_B + len(words))
        count = min(CANDIDATES, len(self._words))
        candidates = np.argpartition(-overlap_B, count - 1)[:count]
        return min((edit_distance(words, self._words[place]), int(place)) for place in candidates)[1]


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """The least number of words to insert, delete or replace."""
    row = list(range(len(second) + 1))
    for place, word in enumerate(first, 1):
        diagonal, row[0] = row[0], place
        for column, other in enumerate(second, 1):
            changed = diagonal + (word != other)
            diagonal = row[column]
            row[column] = min(changed, diagonal + 1, row[column - 1] + 1)
    return row[-1]


def majority_pronoun(train: Iterable[Pair]) -> str:
    """The German pronoun most frequent in training, *er*, *sie* or *es*, where the antecedents differ in gender."""
    genders = Counter(pair.pronoun.antecedent_gender for pair in train if pair.pronoun and pair.pronoun.decides)
    return PRONOUN[max(sorted(genders), key=genders.__getitem__)]
