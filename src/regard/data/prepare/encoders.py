"""Encoders of examples: a text and its label, tags or continuation mark become ids on two sides."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.data.corpora.documents import MORE
from regard.data.corpora.labels import Kind, parse_number, split_labels
from regard.data.corpora.pairs import Pair
from regard.data.prepare.windowing import Frame
from regard.data.prepare.word_tags import CONTINUES, INSIDE, NEIGHBOUR, TAGS, most_central
from regard.text.tags import Scheme, TaggedWords, convert_tags
from regard.text.tokenizers.vocabulary import AnyTokenizer

Ids = NDArray[np.int64]
Coded = list[tuple[Ids, Ids]]
"""An example as ids of both sides; a text that is too long gives several."""
TOKENIZER = "tokenizer.json"
UNKNOWN, OUTSIDE = 0, 1
"""Offsets from the number of labels: the ids of an unknown label, and of what belongs to no class."""


class ExampleEncoder(Protocol):
    """The interface of example encoders for preparation."""

    @property
    def tokenizer(self) -> AnyTokenizer | None:
        """Text to pieces; None if examples are not texts."""
        ...

    @property
    def sizes(self) -> tuple[int, int]:
        """Ids of each side are below these."""
        ...

    @property
    def own(self) -> dict[str, Any]:
        """Plain values for the index of the prepared data."""
        ...

    def encode(self, pairs: Sequence[Pair]) -> list[Coded]:
        """The ids of each example; empty for an example without a label."""
        ...


def sha256(coding: ExampleEncoder) -> str:
    """One fingerprint of a coding."""
    tokenizer = coding.tokenizer.sha256 if coding.tokenizer else None
    rests = json.dumps([tokenizer, coding.own], sort_keys=True)
    return hashlib.sha256(rests.encode()).hexdigest()


def save(coding: ExampleEncoder, folder: Path) -> None:
    """Its tokenizer as a file, if it has one."""
    if coding.tokenizer:
        coding.tokenizer.save(folder / TOKENIZER)


class LabelIds:
    """A label, the labels, or the number of an example as ids.

    A number is kept as the bits of its float32. A label that is not known has the id behind the last, and ``outside``,
    that of what belongs to no class, the one behind that; of several labels it is as if not known.
    """

    def __init__(self, kind: Kind, labels: Sequence[str], outside: str = "") -> None:
        self.kind, self.labels = kind, tuple(labels)
        self._ids = {label: place for place, label in enumerate(labels)}
        if outside and kind == "single":
            self._ids[outside] = len(labels) + OUTSIDE

    @property
    def size(self) -> int:
        """Ids are below it."""
        return (1 << 32) if self.kind == "regression" else len(self.labels) + 2

    def there(self, label: str) -> bool:
        """Whether an example is labelled; an empty set of several labels counts."""
        return bool(label) or self.kind == "multi"

    def of(self, label: str) -> Ids:
        """The label ids of one example."""
        if self.kind == "regression":
            return np.array([parse_number(label) or 0.0], np.float32).view(np.uint32).astype(np.int64)
        labels = split_labels(label) if self.kind == "multi" else [label]
        return np.array([self._ids.get(one, len(self.labels) + UNKNOWN) for one in labels], np.int64)


class ClassEncoder:
    """Encodes a text and its label ids (:class:`LabelIds`)."""

    def __init__(self, tokenizer: AnyTokenizer, frame: Frame, labels: LabelIds) -> None:
        self.tokenizer, self.frame, self.labels = tokenizer, frame, labels

    @property
    def sizes(self) -> tuple[int, int]:
        return self.tokenizer.size, self.labels.size

    @property
    def own(self) -> dict[str, Any]:
        return {"labels": list(self.labels.labels)}

    def encode(self, pairs: Sequence[Pair]) -> list[Coded]:
        texts = self.tokenizer.ids_batch([text for text, _ in pairs])
        return [self._windows(pieces, label) for pieces, (_, label) in zip(texts, pairs, strict=True)]

    def _windows(self, pieces: Ids, label: str) -> Coded:
        if not self.labels.there(label):
            return []
        said = self.labels.of(label)
        return [(window.ids, said) for window in self.frame.windows(pieces)]


class TagEncoder:
    """A text and the tags of its words, as the marks of their first pieces (:mod:`~regard.data.prepare.word_tags`).

    Words are encoded one by one, each with the white space before it, so that no piece belongs to two. In a text of
    several windows each word counts in that one only in which it is most central.

    Args:
        tokenizer: text to pieces.
        frame: of a window.
        scheme: tags of any scheme are converted to it.
        tags: those that are learned.
        others: those that occur in validation texts only; they are never predicted.
    """

    def __init__(
        self, tokenizer: AnyTokenizer, frame: Frame, scheme: Scheme, tags: Sequence[str], others: Sequence[str] = ()
    ) -> None:
        self.tokenizer, self.frame, self.scheme = tokenizer, frame, scheme
        self.tags, self.others = tuple(tags), tuple(others)
        self._marks = {tag: TAGS + place for place, tag in enumerate((*tags, *others))}

    @property
    def sizes(self) -> tuple[int, int]:
        return self.tokenizer.size, TAGS + len(self._marks)

    @property
    def own(self) -> dict[str, Any]:
        return {"labels": list(self.tags), "others": list(self.others), "scheme": self.scheme}

    def encode(self, pairs: Sequence[Pair]) -> list[Coded]:
        marked = [TaggedWords.parse(text, places) for text, places in pairs]
        marks = [[self._marks[tag] for tag in convert_tags(words.tags, self.scheme)] for words in marked]
        return [self._windows(*both) for both in zip(self.pieces(marked), marks, strict=True)]

    def encode_texts(self, texts: Sequence[TaggedWords]) -> list[Coded]:
        """The windows of texts whose tags are not known; words that a window counts are marked by the first tag."""
        return [self._windows(pieces, [TAGS] * len(pieces)) for pieces in self.pieces(texts)]

    def pieces(self, texts: Sequence[TaggedWords]) -> list[list[Ids]]:
        """The pieces of each word of each text, including those of the text before it; at least one."""
        encoded = iter(self.tokenizer.ids_batch([part for words in texts for part in word_parts(words)]))
        unknown = np.array([self.tokenizer.unknown], np.int64)
        return [[_some(next(encoded)[: self.frame.room], unknown) for _ in words.places] for words in texts]

    def _windows(self, pieces: list[Ids], marks: list[int]) -> Coded:
        ids = np.concatenate([np.zeros(0, np.int64), *pieces])
        lengths_R = np.array([len(part) for part in pieces], np.int64)
        first_R = lengths_R.cumsum() - lengths_R
        windows = list(self.frame.windows(ids))
        starts = [window.start for window in windows]
        window_R = most_central(first_R, first_R + lengths_R - 1, starts, self.frame.room)
        ends = np.searchsorted(window_R, np.arange(len(windows) + 1))
        marks_R = np.array(marks, np.int64)
        found: Coded = []
        for window, begin, end in zip(windows, ends[:-1], ends[1:], strict=True):
            marks_T = np.full(len(window.ids), INSIDE, np.int64)
            shift = len(self.frame.begin) - window.start
            inside = slice(*np.searchsorted(first_R, [window.start, window.start + self.frame.room]))
            marks_T[first_R[inside] + shift] = NEIGHBOUR
            marks_T[first_R[begin:end] + shift] = marks_R[begin:end]
            marks_T[-1] = CONTINUES if window is not windows[-1] else INSIDE
            found.append((window.ids, marks_T))
        return found


class DocumentEncoder:
    """Encodes running text, which has no labels.

    Args:
        tokenizer: text to pieces.
        ended: whether ``</s>`` ends each document.
    """

    def __init__(self, tokenizer: AnyTokenizer, ended: bool) -> None:
        self.tokenizer, self.ended = tokenizer, ended

    @property
    def sizes(self) -> tuple[int, int]:
        return self.tokenizer.size, 1

    @property
    def own(self) -> dict[str, Any]:
        return {"ended": self.ended}

    def encode(self, pairs: Sequence[Pair]) -> list[Coded]:
        nothing = np.zeros(0, np.int64)
        texts = self.tokenizer.ids_batch([text for text, _ in pairs])
        ends = [
            np.array([self.tokenizer.end], np.int64) if self.ended and more != MORE else nothing for _, more in pairs
        ]
        return [[(np.concatenate([pieces, end]), nothing)] for pieces, end in zip(texts, ends, strict=True)]


def word_parts(words: TaggedWords) -> list[str]:
    """Each word with the text between it and the previous word; a word that shares its place stands alone."""
    ends = [0, *(end for _, end in words.places)]
    return [
        words.text[before if before <= begin else begin : end]
        for before, (begin, end) in zip(ends, words.places, strict=False)
    ]


def _some(pieces: Ids, unknown: Ids) -> Ids:
    """The pieces of a word; a tokenizer may drop all that a word has."""
    return pieces if len(pieces) else unknown


class WordEncoder(DocumentEncoder):
    """Documents without their ends; on the other side a 1 for each token that begins a word, a 0 for the others.

    Found once, not in each batch: it would take a twentieth of a small model's step.
    """

    def __init__(self, tokenizer: AnyTokenizer) -> None:
        super().__init__(tokenizer, ended=False)

    @property
    def sizes(self) -> tuple[int, int]:
        return self.tokenizer.size, 2

    @property
    def own(self) -> dict[str, Any]:
        return {**super().own, "words": True}

    def encode(self, pairs: Sequence[Pair]) -> list[Coded]:
        return [
            [(ids, self.tokenizer.word_starts(ids.tolist()).astype(np.int64)) for ids, _ in windows]
            for windows in super().encode(pairs)
        ]
