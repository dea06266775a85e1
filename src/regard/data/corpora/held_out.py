"""Train/validation split of running text: a tenth of the documents, or the end of the text where they are few."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regard.data.corpora.documents import MORE
from regard.data.corpora.pairs import Corpus, Pair
from regard.data.corpora.passes import Progress, no_progress
from regard.system.errors import RegardError
from regard.system.keys import generator
from regard.text.lines import InvalidLines

SHARE = 0.1
FEW = 20
"""With fewer documents than this, the end of the text is held out instead."""
MOST = 5_000_000
"""Most characters to hold out."""
EVERY = 10_000


@dataclass
class Excerpt(ABC):
    """A part of some corpora, itself a corpus."""

    corpora: Sequence[Corpus]

    @property
    def name(self) -> str:
        return " and ".join(corpus.name for corpus in self.corpora)

    @property
    def notes(self) -> tuple[InvalidLines, ...]:
        return tuple(note for corpus in self.corpora for note in corpus.notes)

    def where(self, number: int, side: int = 0) -> str:
        """The file; of documents of several files the names of all."""
        return self.corpora[side].name if side or len(self.corpora) == 1 else self.name

    @abstractmethod
    def pairs(self) -> Iterator[Pair]:
        """The documents, or parts of them."""


@dataclass
class DocumentRange(Excerpt):
    """The characters from ``begin`` to before ``end``, counted through all corpora.

    A document that continues after the end is marked as continued.
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
class ChosenDocuments(Excerpt):
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
class TextSize:
    """Size of running text.

    Args:
        characters: of all documents.
        same_D: a number for each document, which two share if they are equal.
    """

    characters: int
    same_D: NDArray[np.uint64]

    @property
    def documents(self) -> int:
        """Number of documents."""
        return len(self.same_D)


def measure_corpora(corpora: Sequence[Corpus], progress: Progress = no_progress) -> TextSize:
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
    return TextSize(characters, np.array(same, np.uint64))


def split_documents(corpora: Sequence[Corpus], found: TextSize, seed: int) -> tuple[Excerpt, Excerpt]:
    """Split into training and validation: a seeded tenth of the documents, or the end of the text if they are few.

    Args:
        corpora: the documents.
        found: how many they are.
        seed: of the draw.

    Raises:
        RegardError: there is too little text for that.
    """
    share = min(SHARE, MOST / max(1, found.characters))
    if found.documents < FEW:
        return split_half(corpora, found.characters, share)
    order = generator(seed, "split").permutation(found.documents)
    kept_D = np.zeros(found.documents, np.bool_)
    kept_D[order[: max(1, int(found.documents * share))]] = True
    learned_D = ~np.isin(found.same_D, found.same_D[kept_D])  # a document that occurs again is on one side only
    if not learned_D.any():
        raise RegardError(f"all {found.documents:,} documents are alike; give --valid", as_one_corpus(corpora).name)
    return ChosenDocuments(corpora, learned_D), ChosenDocuments(corpora, kept_D)


def as_one_corpus(corpora: Sequence[Corpus]) -> Corpus:
    """All documents as one corpus."""
    return corpora[0] if len(corpora) == 1 else DocumentRange(corpora, 0, float("inf"))


def split_half(corpora: Sequence[Corpus], characters: int, share: float = SHARE) -> tuple[DocumentRange, DocumentRange]:
    """Split off the last ``share`` of the characters for validation.

    Raises:
        RegardError: no character would be held out.
    """
    cut = characters - int(characters * share)
    if cut == characters:
        said = "1 character is" if characters == 1 else f"{characters} characters are"
        raise RegardError(f"{said} too few to hold some out for validation; give --valid", as_one_corpus(corpora).name)
    return DocumentRange(corpora, 0, cut), DocumentRange(corpora, cut, float("inf"))
