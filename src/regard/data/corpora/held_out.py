"""Train/validation split of running text: a tenth of the documents, or the end of the text where they are few."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regard.data.corpora.corpus import Corpus, Progress, no_progress
from regard.data.corpora.documents import DocumentPart
from regard.data.corpora.scan import EVERY
from regard.system.errors import RegardError
from regard.system.keys import generator
from regard.text.lines import InvalidLines

SHARE = 0.1
FEW = 20
"""With fewer documents than this, the end of the text is held out instead."""
MOST = 5_000_000
"""Most characters to hold out."""


@dataclass
class DocumentSeries:
    """The documents of several corpora as one; implements :class:`~regard.data.corpora.corpus.Corpus`."""

    corpora: Sequence[Corpus[DocumentPart]]

    @property
    def name(self) -> str:
        return " and ".join(corpus.name for corpus in self.corpora)

    @property
    def notes(self) -> tuple[InvalidLines, ...]:
        return tuple(note for corpus in self.corpora for note in corpus.notes)

    def where(self, number: int, side: int = 0) -> str:
        """The file; of documents of several files the names of all."""
        return self.corpora[side].name if side or len(self.corpora) == 1 else self.name

    def examples(self) -> Iterator[DocumentPart]:
        """Every document, or part of one."""
        for corpus in self.corpora:
            yield from corpus.examples()


@dataclass
class HeldOut(ABC):
    """Running text of which a part is held out."""

    text: DocumentSeries

    @abstractmethod
    def parts(self) -> Iterator[tuple[DocumentPart, bool]]:
        """Every document that is learned from or held out, or part of one, and whether it is held out."""


@dataclass
class HeldOutSpan(HeldOut):
    """The characters from ``cut`` on are held out, counted through all corpora.

    A document that is cut is marked as continued.
    """

    cut: int

    def parts(self) -> Iterator[tuple[DocumentPart, bool]]:
        seen = 0
        for text, continues in self.text.examples():
            here = min(max(0, self.cut - seen), len(text))
            if here:
                yield DocumentPart(text[:here], continues or here < len(text)), False
            if here < len(text):
                yield DocumentPart(text[here:], continues), True
            seen += len(text)


@dataclass
class HeldOutDocuments(HeldOut):
    """Some of the documents are held out, numbered through all corpora; the parts of one stay together."""

    held_D: NDArray[np.bool_] = field(compare=False)
    learned_D: NDArray[np.bool_] = field(compare=False)

    def parts(self) -> Iterator[tuple[DocumentPart, bool]]:
        number = 0
        for part in self.text.examples():
            if self.held_D[number] or self.learned_D[number]:
                yield part, bool(self.held_D[number])
            number += not part.continues


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


def measure_corpora(corpora: Sequence[Corpus[DocumentPart]], progress: Progress = no_progress) -> TextSize:
    """One pass over all documents.

    Raises:
        RegardError: a corpus is empty, or cannot be read.
    """
    characters, same = 0, array("Q")
    for corpus in corpora:
        before, content = len(same), hashlib.blake2b(digest_size=8)
        for text, continues in corpus.examples():
            characters += len(text)
            content.update(text.encode())
            if not continues:
                same.append(int.from_bytes(content.digest(), "little"))
                content = hashlib.blake2b(digest_size=8)
                if len(same) % EVERY == 0:
                    progress("read", len(same))
        if len(same) == before:
            raise RegardError("holds no text", corpus.name)
    return TextSize(characters, np.array(same, np.uint64))


def split_documents(corpora: Sequence[Corpus[DocumentPart]], found: TextSize, seed: int) -> HeldOut:
    """Hold out a seeded tenth of the documents, or the end of the text if they are few.

    Args:
        corpora: the documents.
        found: how many they are.
        seed: of the draw.

    Raises:
        RegardError: there is too little text for that.
    """
    text, share = DocumentSeries(corpora), min(SHARE, MOST / max(1, found.characters))
    if found.documents < FEW:
        cut = found.characters - int(found.characters * share)
        if cut == found.characters:
            said = "1 character is" if cut == 1 else f"{cut} characters are"
            raise RegardError(f"{said} too few to hold some out for validation; give --valid", text.name)
        return HeldOutSpan(text, cut)
    order = generator(seed, "split").permutation(found.documents)
    held_D = np.zeros(found.documents, np.bool_)
    held_D[order[: max(1, int(found.documents * share))]] = True
    learned_D = ~np.isin(found.same_D, found.same_D[held_D])  # a document that occurs again is on one side only
    if not learned_D.any():
        raise RegardError(f"all {found.documents:,} documents are alike; give --valid", text.name)
    return HeldOutDocuments(text, held_D, learned_D)
