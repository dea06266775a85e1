"""The end of running text kept back to validate on, where there are too few documents to draw some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from regard.data.corpora import Corpus, Pair
from regard.text.lines import Notes


@dataclass
class Stretch:
    """The characters of corpora from ``begin`` to before ``end``, counted through all of them; a corpus itself."""

    corpora: Sequence[Corpus]
    begin: int
    end: float
    notes: tuple[Notes, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        return " and ".join(corpus.name for corpus in self.corpora)

    def where(self, number: int, side: int = 0) -> str:
        return self.corpora[0].where(0) if self.begin == 0 else self.name

    def pairs(self) -> Iterator[Pair]:
        """The documents, or parts of them, between the two places."""
        seen = 0
        for corpus in self.corpora:
            for text, more in corpus.pairs():
                first, last = max(0, self.begin - seen), min(len(text), self.end - seen)
                if first < last:
                    yield text[first : int(last)], more
                seen += len(text)


def halves(corpora: Sequence[Corpus], share: float = 0.1) -> tuple[Stretch, Stretch]:
    """What is learned from, and the last ``share`` of the characters, to validate on."""
    characters = sum(len(text) for corpus in corpora for text, _ in corpus.pairs())
    cut = characters - int(characters * share)
    return Stretch(corpora, 0, cut), Stretch(corpora, cut, float("inf"))
