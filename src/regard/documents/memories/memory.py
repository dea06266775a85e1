"""Translations that are remembered: of the same text, or of one that is nearly the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.corpora.corpus import TextPair
from regard.data.corpora.memories import XmlMemory
from regard.data.corpora.pairs import open_pairs
from regard.system.errors import RegardError
from regard.text.languages import UNKNOWN
from regard.text.terms import comparable

POSTINGS = 20_000
"""Places of the rarest words of a text that are looked up, about."""
CANDIDATES = 8
"""Texts that are compared word by word, of those that have most words of a text."""
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class CloseMatch:
    """A remembered text that is nearly the same, its translation, and how much is the same, 0 to 1."""

    source: str
    target: str
    score: float


class TranslationMemory:
    """Pairs of texts; of the same text the last translation is taken.

    Args:
        pairs: texts with their translations.
    """

    def __init__(self, pairs: Iterable[TextPair]) -> None:
        self._targets = {comparable(pair.source): unicodedata.normalize("NFC", pair.target).strip() for pair in pairs}

    @classmethod
    def read(cls, path: Path, direction: tuple[str, str]) -> TranslationMemory:
        """That of a file: TMX and XLIFF by their languages, others in the direction that they have.

        Raises:
            RegardError: it holds nothing in this direction, or is no such file.
        """
        corpus = open_pairs(path)
        if isinstance(corpus, XmlMemory) and UNKNOWN not in direction:
            corpus.languages = direction
        try:
            return cls(corpus.examples())
        except RegardError as error:
            raise RegardError(error.message.partition(": name two")[0], error.where) from None

    def __len__(self) -> int:
        return len(self._targets)

    def exact(self, text: str) -> str | None:
        """The translation of a text that is the same but for white space; ``None`` where there is none."""
        return self._targets.get(comparable(text))

    def close(self, text: str, least: float = 0.7) -> CloseMatch | None:
        """The text most like another: twice the words in common, in order, by the words of both.

        Args:
            text: in any case.
            least: the score that it must have.
        """
        wanted, best = _words(text), None
        matcher = SequenceMatcher(None, b=wanted, autojunk=False)
        for number in self._index.most(wanted):
            source = self._index.texts[number]
            matcher.set_seq1(_words(source))
            if matcher.real_quick_ratio() >= least and matcher.quick_ratio() >= least:
                score = matcher.ratio()
                if score >= least and (best is None or score > best.score):
                    best, least = CloseMatch(source, self._targets[source], score), score
        return best

    @cached_property
    def _index(self) -> _Index:
        return _Index(list(self._targets))


class _Index:
    """In which texts each word stands."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        number, of_word, in_text, sizes = dict[str, int](), list[int](), list[int](), list[int]()
        for place, text in enumerate(texts):
            words = _words(text)
            sizes.append(len(words))
            for word in set(words):
                of_word.append(number.setdefault(word, len(number)))
                in_text.append(place)
        words_P, texts_P = np.array(of_word, np.int64), np.array(in_text, np.int64)
        self._numbers = number
        self._texts_P = texts_P[np.argsort(words_P, kind="stable")]
        self._ends_W = np.cumsum(np.bincount(words_P, minlength=len(number)))
        self._sizes_N = np.array(sizes)

    def most(self, words: list[str]) -> list[int]:
        """The texts that have most of some words, by what both have."""
        found = sorted((self._in(word) for word in set(words) & self._numbers.keys()), key=len)
        some, size = list[NDArray[np.int64]](), 0
        for places in found:
            if some and size + len(places) > POSTINGS:
                break
            some.append(places)
            size += len(places)
        if not some:
            return []
        common_N = np.bincount(np.concatenate(some), minlength=len(self.texts))
        texts_C = np.flatnonzero(common_N > 0)
        bound_C = common_N[texts_C] / (len(words) + self._sizes_N[texts_C])
        best_C = np.argpartition(-bound_C, CANDIDATES)[:CANDIDATES] if len(bound_C) > CANDIDATES else slice(None)
        return texts_C[best_C].tolist()

    def _in(self, word: str) -> NDArray[np.int64]:
        number = self._numbers[word]
        return self._texts_P[self._ends_W[number - 1] if number else 0 : self._ends_W[number]]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
