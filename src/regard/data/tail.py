"""What of running text is kept back to validate on: a tenth of its documents, or where they are few its end."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regard.data.corpora import Corpus, Pair
from regard.data.documents import MORE
from regard.data.survey import Progress, silent
from regard.errors import RegardError
from regard.keys import generator
from regard.text.lines import Notes

SHARE = 0.1
FEW = 20
"""Below so many documents none can be spared; the end of the text is kept back instead."""
MOST = 5_000_000
"""Characters that are kept back at most."""
EVERY = 10_000


@dataclass
class Excerpt(ABC):
    """A part of some corpora, itself a corpus."""

    corpora: Sequence[Corpus]

    @property
    def name(self) -> str:
        return " and ".join(corpus.name for corpus in self.corpora)

    @property
    def notes(self) -> tuple[Notes, ...]:
        return tuple(note for corpus in self.corpora for note in corpus.notes)

    def where(self, number: int, side: int = 0) -> str:
        """The file; of documents of several files the names of all."""
        return self.corpora[side].name if side or len(self.corpora) == 1 else self.name

    @abstractmethod
    def pairs(self) -> Iterator[Pair]:
        """The documents, or parts of them."""


@dataclass
class Stretch(Excerpt):
    """The characters from ``begin`` to before ``end``, counted through all corpora.

    A document that goes on behind the end is marked as one that goes on, so that it does not seem to end there.
    """

    begin: int
    end: float

    def pairs(self) -> Iterator[Pair]:
        seen = 0
        for corpus in self.corpora:
            for text, more in corpus.pairs():
                first, last = max(0, self.begin - seen), min(len(text), self.end - seen)
                if first < last:
                    yield text[first : int(last)], more if last == len(text) else MORE
                seen += len(text)
                if seen >= self.end:
                    return


@dataclass
class Chosen(Excerpt):
    """Some of the documents, numbered through all corpora; the parts of one stay together."""

    chosen_D: NDArray[np.bool_] = field(compare=False)

    def pairs(self) -> Iterator[Pair]:
        number = 0
        for corpus in self.corpora:
            for text, more in corpus.pairs():
                if self.chosen_D[number]:
                    yield text, more
                number += more != MORE


@dataclass(frozen=True)
class Extent:
    """How much running text there is.

    Args:
        characters: of all documents.
        same_D: a number for each document, which two share if they are equal.
    """

    characters: int
    same_D: NDArray[np.uint64]

    @property
    def documents(self) -> int:
        """How many there are."""
        return len(self.same_D)


def extent(corpora: Sequence[Corpus], progress: Progress = silent) -> Extent:
    """One pass over all documents.

    Raises:
        RegardError: a corpus is empty, or cannot be read.
    """
    characters, same = 0, array("Q")
    for corpus in corpora:
        before, content = len(same), hashlib.blake2b(digest_size=8)
        for text, more in corpus.pairs():
            characters += len(text)
            content.update(text.encode())
            if more != MORE:
                same.append(int.from_bytes(content.digest(), "little"))
                content = hashlib.blake2b(digest_size=8)
                if len(same) % EVERY == 0:
                    progress("read", len(same))
        if len(same) == before:
            raise RegardError("holds no text", corpus.name)
    return Extent(characters, np.array(same, np.uint64))


def kept_back(corpora: Sequence[Corpus], found: Extent, seed: int) -> tuple[Excerpt, Excerpt]:
    """What is learned from, and what is kept back: a seeded tenth of the documents, or where there are few the end.

    Args:
        corpora: the documents.
        found: how many they are.
        seed: of the draw.

    Raises:
        RegardError: there is too little text for that.
    """
    share = min(SHARE, MOST / max(1, found.characters))
    if found.documents < FEW:
        return halves(corpora, found.characters, share)
    order = generator(seed, "split").permutation(found.documents)
    kept_D = np.zeros(found.documents, np.bool_)
    kept_D[order[: max(1, int(found.documents * share))]] = True
    learned_D = ~np.isin(found.same_D, found.same_D[kept_D])  # a document that occurs again is on one side only
    if not learned_D.any():
        raise RegardError(f"all {found.documents:,} documents are alike; give --valid", whole(corpora).name)
    return Chosen(corpora, learned_D), Chosen(corpora, kept_D)


def whole(corpora: Sequence[Corpus]) -> Corpus:
    """All documents as one corpus."""
    return corpora[0] if len(corpora) == 1 else Stretch(corpora, 0, float("inf"))


def halves(corpora: Sequence[Corpus], characters: int, share: float = SHARE) -> tuple[Stretch, Stretch]:
    """What is learned from, and the last ``share`` of the characters, to validate on.

    Raises:
        RegardError: no character would be kept back.
    """
    cut = characters - int(characters * share)
    if cut == characters:
        said = "1 character is" if characters == 1 else f"{characters} characters are"
        raise RegardError(f"{said} too few to keep some back to validate on; give --valid", whole(corpora).name)
    return Stretch(corpora, 0, cut), Stretch(corpora, cut, float("inf"))
