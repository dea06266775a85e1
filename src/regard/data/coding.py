"""How an example, two strings, becomes ids on two sides: a text's pieces, and what is to be said of it."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.data.corpora import Pair
from regard.data.documents import MORE
from regard.data.framing import Frame
from regard.data.labels import Kind, number_of, split_labels
from regard.text.marked import Words
from regard.text.vocabulary import AnyTokenizer

Ids = NDArray[np.int64]
Coded = list[tuple[Ids, Ids]]
"""An example as ids of both sides; a text that is too long gives several."""
TOKENIZER = "tokenizer.json"


class Coding(Protocol):
    """What preparation asks."""

    @property
    def tokenizer(self) -> AnyTokenizer:
        """Text to pieces."""
        ...

    @property
    def sizes(self) -> tuple[int, int]:
        """Ids of each side are below these."""
        ...

    @property
    def own(self) -> dict[str, Any]:
        """What the index of the prepared data keeps of it, plain values."""
        ...

    def coded(self, pairs: Sequence[Pair]) -> list[Coded]:
        """The ids of each example."""
        ...


def sha256(coding: Coding) -> str:
    """One fingerprint of a coding."""
    rests = json.dumps([coding.tokenizer.sha256, coding.own], sort_keys=True)
    return hashlib.sha256(rests.encode()).hexdigest()


def save(coding: Coding, folder: Path) -> None:
    """Its tokenizer as a file."""
    coding.tokenizer.save(folder / TOKENIZER)


class ClassCoding:
    """A text and its label, its labels, or its number.

    A number is kept as the bits of its float32. A label that is not known has the id behind the last.
    """

    def __init__(self, tokenizer: AnyTokenizer, frame: Frame, kind: Kind, labels: Sequence[str]) -> None:
        self.tokenizer, self.frame, self.kind, self.labels = tokenizer, frame, kind, tuple(labels)
        self._ids = {label: place for place, label in enumerate(labels)}

    @property
    def sizes(self) -> tuple[int, int]:
        return self.tokenizer.size, (1 << 32) if self.kind == "regression" else len(self.labels) + 1

    @property
    def own(self) -> dict[str, Any]:
        return {"labels": list(self.labels)}

    def coded(self, pairs: Sequence[Pair]) -> list[Coded]:
        texts = self.tokenizer.ids_batch([text for text, _ in pairs])
        said = [self._said(label) for _, label in pairs]
        return [
            [(window.ids, label) for window in self.frame.windows(pieces)]
            for pieces, label in zip(texts, said, strict=True)
        ]

    def _said(self, label: str) -> Ids:
        if self.kind == "regression":
            return np.array([number_of(label) or 0.0], np.float32).view(np.uint32).astype(np.int64)
        labels = split_labels(label) if self.kind == "multi" else [label]
        return np.array([self._ids.get(one, len(self.labels)) for one in labels], np.int64)


class TagCoding:
    """A text and the tags of its words: the first piece of a word carries its tag, the others none.

    Words are encoded one by one, each with the white space before it, so that no piece belongs to two.
    """

    def __init__(self, tokenizer: AnyTokenizer, frame: Frame, tags: Sequence[str]) -> None:
        self.tokenizer, self.frame, self.tags = tokenizer, frame, tuple(tags)
        self._ids = {tag: place for place, tag in enumerate(tags)}

    @property
    def sizes(self) -> tuple[int, int]:
        return self.tokenizer.size, len(self.tags) + 1

    @property
    def own(self) -> dict[str, Any]:
        return {"labels": list(self.tags)}

    @property
    def nothing(self) -> int:
        """The id of a piece without a tag, and of a tag that is not known."""
        return len(self.tags)

    def coded(self, pairs: Sequence[Pair]) -> list[Coded]:
        marked = [Words.parse(text, places) for text, places in pairs]
        return [self._windows(words, pieces) for words, pieces in zip(marked, self.pieces(marked), strict=True)]

    def pieces(self, texts: Sequence[Words]) -> list[list[Ids]]:
        """The pieces of each word of each text, those of what stands before it included."""
        parts = [part for words in texts for part in _parts(words)]
        encoded = iter(self.tokenizer.ids_batch(parts))
        return [[next(encoded) for _ in words.places] for words in texts]

    def _windows(self, words: Words, pieces: list[Ids]) -> Coded:
        ids = np.concatenate([np.zeros(0, np.int64), *pieces])
        tags = np.full(len(ids), self.nothing, np.int64)
        first = np.cumsum([0, *map(len, pieces)])[:-1]
        known = [self._ids.get(tag, self.nothing) for tag in words.tags]
        filled = np.array([len(part) > 0 for part in pieces], np.bool_)
        tags[first[filled]] = np.array(known, np.int64)[filled]
        return [
            (window.ids, self.frame.aligned(tags, window.start, self.nothing)) for window in self.frame.windows(ids)
        ]


class DocumentCoding:
    """Running text, of which nothing is to be said but itself.

    Args:
        tokenizer: text to pieces.
        ended: whether ``</s>`` stands behind each document.
    """

    def __init__(self, tokenizer: AnyTokenizer, ended: bool) -> None:
        self.tokenizer, self.ended = tokenizer, ended

    @property
    def sizes(self) -> tuple[int, int]:
        return self.tokenizer.size, 1

    @property
    def own(self) -> dict[str, Any]:
        return {"ended": self.ended}

    def coded(self, pairs: Sequence[Pair]) -> list[Coded]:
        nothing = np.zeros(0, np.int64)
        texts = self.tokenizer.ids_batch([text for text, _ in pairs])
        ends = [
            np.array([self.tokenizer.end], np.int64) if self.ended and more != MORE else nothing for _, more in pairs
        ]
        return [[(np.concatenate([pieces, end]), nothing)] for pieces, end in zip(texts, ends, strict=True)]


def _parts(words: Words) -> list[str]:
    """Each word with what stands between it and the word before."""
    ends = [0, *(end for _, end in words.places)]
    return [words.text[before:end] for before, end in itertools.pairwise(ends)]
