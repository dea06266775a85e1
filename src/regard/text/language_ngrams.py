"""Which language a text is in, among those of a translator's training: naive Bayes over n-grams of letters [Dunning94].

A word stands between two blanks, in lower case. Of each language the most frequent n-grams are kept, some dozen kB.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.config import FORMAT, checksum
from regard.system import disk
from regard.system.errors import RegardError

LONGEST, KEPT = 4, 2000
"""Letters of an n-gram, and n-grams of a language, at most."""
MOST = 1 << 53
"""More than any n-gram was read."""
READ = 2000
"""Characters of a text by which its language is told."""
_LETTERS = re.compile(r"[^\W\d_]+")


class LanguagePrediction(NamedTuple):
    """A language, and how probable it is among those known."""

    language: str
    confidence: float


@dataclass(frozen=True)
class LanguageNgrams:
    """How often the n-grams of each language were read.

    Args:
        counts: by code, of the most frequent n-grams.
        totals: by code, of all of them.
    """

    counts: Mapping[str, Mapping[str, int]]
    totals: Mapping[str, int]

    @classmethod
    def of(cls, words: Mapping[str, Mapping[str, int]]) -> LanguageNgrams:
        """From the counts of the words of each language."""
        counts, totals = dict[str, dict[str, int]](), dict[str, int]()
        for code, those in words.items():
            found = Counter[str]()
            for word, count in those.items():
                for gram in _ngrams(word):
                    found[gram] += count
            ordered = sorted(found, key=lambda gram: (-found[gram], gram))[:KEPT]
            counts[code], totals[code] = {gram: found[gram] for gram in ordered}, found.total()
        return cls(counts, totals)

    @cached_property
    def _scores(self) -> dict[str, NDArray[np.float64]]:
        """Of each n-gram its log-probability in every language; one that was not kept is half as frequent as the last.

        Overlapping n-grams tell the same several times: their evidence is divided by the lengths there are.
        """
        every = {gram for those in self.counts.values() for gram in those}
        least = [(those, min(those.values(), default=1) / 2) for those in self.counts.values()]
        totals = np.array([max(1, self.totals[code]) for code in self.counts])
        return {gram: np.log([those.get(gram, few) for those, few in least] / totals) / LONGEST for gram in every}

    def guess(self, text: str) -> LanguagePrediction:
        """The most probable language of a text; of one without any known letters all are alike."""
        found = [
            self._scores[gram] for word in words_of([text[:READ]]) for gram in _ngrams(word) if gram in self._scores
        ]
        scores = np.sum(found, axis=0) if found else np.zeros(len(self.counts))
        shares = np.exp(scores - scores.max())
        best = int(shares.argmax())
        return LanguagePrediction([*self.counts][best], float(shares[best] / shares.sum()))

    @property
    def content(self) -> bytes:
        """The bytes of its JSON file."""
        values = {"format": FORMAT, "totals": dict(self.totals), "counts": {c: dict(n) for c, n in self.counts.items()}}
        return (json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def words_of(texts: Iterable[str]) -> Iterator[str]:
    """The words of texts in lower case, of letters alone."""
    return (word for text in texts for word in _LETTERS.findall(text.lower()))


def _ngrams(word: str) -> Iterator[str]:
    framed = f" {word} "
    for length in range(1, LONGEST + 1):
        for begin in range(1 if length == 1 else 0, len(framed) - length + (length > 1)):
            yield framed[begin : begin + length]


def read_ngrams(path: Path) -> LanguageNgrams:
    """The n-grams of a file of a model folder.

    Raises:
        RegardError: the file is damaged, or a newer Regard wrote it.
    """
    values = disk.json_of(path)
    try:
        checksum.refuse_newer(values, path)
        counts, totals = values["counts"], values["totals"]
        numbers = [*totals.values(), *(count for those in counts.values() for count in those.values())]
        sound = (
            counts and counts.keys() == totals.keys() and all(type(one) is int and 0 < one < MOST for one in numbers)
        )
    except (KeyError, TypeError, AttributeError):
        sound = False
    if not sound:
        raise RegardError("is damaged: counts of n-grams were expected", str(path))
    return LanguageNgrams(counts, totals)
