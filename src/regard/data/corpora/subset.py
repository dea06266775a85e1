"""Seeded random subset of a corpus, e.g. to measure the effect of training size."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator

from regard.data.corpora.corpus import Corpus, TextPair
from regard.system.errors import UsageError
from regard.text.lines import InvalidLines


class Subset:
    """The pairs of a corpus whose number between 0 and 1, drawn by seed from their text, is below ``share``.

    So the pairs of a smaller share are among those of a larger one, equal pairs stay together, and the order of the
    lines does not matter. Streamed; of each pair that is kept its place is remembered (8 bytes).

    Args:
        corpus: all pairs.
        share: above 0, at most 1: the fraction kept, about.
        seed: another one keeps others.

    Raises:
        UsageError: it is no share.
    """

    def __init__(self, corpus: Corpus[TextPair], share: float, seed: int) -> None:
        if not 0 < share <= 1:
            raise UsageError(f"{share:g} is no share of the data; give more than 0, at most 1", "--fraction")
        self.corpus, self.share, self.seed = corpus, share, seed
        self._places = array("q")

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"{self.share:g} of {self.corpus.name}"

    @property
    def notes(self) -> tuple[InvalidLines, ...]:
        """Lines with invalid UTF-8 in the latest pass, by file; of the whole corpus."""
        return self.corpus.notes

    def examples(self) -> Iterator[TextPair]:
        """The kept pairs, in order."""
        kept = 0
        for place, pair in enumerate(self.corpus.examples()):
            if uniform_hash(pair, self.seed) < self.share:
                if kept == len(self._places):  # a later pass finds the same again
                    self._places.append(place)
                kept += 1
                yield pair

    def where(self, number: int, side: int = 0) -> str:
        """``file:line`` of a pair that a pass has come by, counted among the kept from 0."""
        return self.corpus.where(self._places[number], side)


def uniform_hash(pair: TextPair, seed: int) -> float:
    """A number from 0 to below 1, a pure function of a pair's text and a seed."""
    text = f"{seed}\n{pair[0]}\n{pair[1]}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") / 2**64
