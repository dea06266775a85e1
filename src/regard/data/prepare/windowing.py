"""Encoders of labelled texts, tagged words, documents and images; symbols around a text, windows of a long one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from regard.data.corpora.corpus import LabelledText
from regard.data.corpora.documents import DocumentPart
from regard.data.corpora.images import LARGEST, Image
from regard.data.corpora.labelled import Kind, parse_number, split_labels
from regard.data.prepare.encoders import Encoded, Ids, RefusedExample, Sides, TextEncoder
from regard.data.prepare.shards import CONTINUES, INSIDE, NEIGHBOUR, TAGS, Entry
from regard.text.tags import Scheme, TaggedWords, convert_tags
from regard.text.tokenizers.vocabulary import AnyTokenizer

UNKNOWN, OUTSIDE = 0, 1
"""Offsets from the number of labels: the ids of an unknown label, and of what belongs to no class."""


@dataclass(frozen=True)
class Window:
    """A part of a text, from piece ``start`` on, framed."""

    start: int
    ids: Ids


@dataclass(frozen=True)
class Frame:
    """Symbols around texts, and the maximum length of a window.

    Args:
        begin, end: the symbols before and after a text.
        max_tokens: of a window, the symbols counted.
        stride: pieces that neighbouring windows of one text have in common.
        ends_between: how often the symbol after a text stands between two.
    """

    begin: tuple[int, ...]
    end: int
    max_tokens: int
    stride: int = 64
    ends_between: int = 1

    @classmethod
    def of(cls, tokenizer: AnyTokenizer, max_tokens: int, stride: int = 64) -> Frame:
        """The frame of a tokenizer."""
        return cls(tuple(tokenizer.begin), tokenizer.end, max_tokens, stride)

    @property
    def room(self) -> int:
        """Pieces of a text that fit into a window."""
        return max(1, self.max_tokens - len(self.begin) - 1)

    @property
    def step(self) -> int:
        """Pieces from the start of a window to that of the next; the last one may begin sooner."""
        return max(1, self.room - min(self.stride, self.room // 2))

    def add_symbols(self, pieces: Ids) -> Ids:
        """The pieces with the symbols around them."""
        return np.concatenate([np.array(self.begin, np.int64), pieces, np.array([self.end], np.int64)])

    def starts(self, pieces: int) -> list[int]:
        """Starts of the windows of a text of ``pieces`` pieces; the last window ends with the text."""
        if pieces <= self.room:
            return [0]
        return [*range(0, pieces - self.room, self.step), pieces - self.room]

    def windows(self, pieces: Ids) -> Iterator[Window]:
        """The text whole, or in windows that overlap."""
        for start in self.starts(len(pieces)):
            yield Window(start, self.add_symbols(pieces[start : start + self.room]))

    def join(self, windows: Sequence[Ids]) -> Ids:
        """The pieces of a text from all its windows, in order and with their symbols.

        The last window begins somewhere in the one before it: where all that follows is the same.
        """
        *before, last = [window[len(self.begin) : -1] for window in windows]
        if not before:
            return last
        close = before[-1]
        own = next(s for s in range(1, self.step + 1) if np.array_equal(close[s:], last[: len(close) - s]))
        return np.concatenate([*(part[: self.step] for part in before[:-1]), close[:own], last])


def most_central(first_R: Ids, last_R: Ids, starts: Sequence[int], room: int) -> Ids:
    """For each word the window in which it stands farthest from an edge that cuts the text; later words, later windows.

    Args:
        first_R, last_R: the first and last piece of each word, counted in the text.
        starts: where the windows begin.
        room: pieces of a window.
    """
    window_R, best_R = np.zeros(len(first_R), np.int64), np.full(len(first_R), -np.inf)
    for number, start in enumerate(starts):
        begin, end = np.searchsorted(first_R, [start, start + room])
        before_R = first_R[begin:end] - (start if number else -np.inf)
        behind_R = (start + room - 1 if number < len(starts) - 1 else np.inf) - last_R[begin:end]
        central_R = np.minimum(before_R, behind_R)
        better = begin + np.flatnonzero(central_R > best_R[begin:end])
        window_R[better], best_R[better] = number, central_R[better - begin]
    return window_R


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


class ClassEncoder(TextEncoder[LabelledText]):
    """Encodes a text and its label ids (:class:`LabelIds`)."""

    example = LabelledText
    tokenizer: AnyTokenizer

    def __init__(self, tokenizer: AnyTokenizer, frame: Frame, labels: LabelIds) -> None:
        super().__init__(tokenizer, {"labels": list(labels.labels)}, labels.size)
        self.frame, self.labels = frame, labels

    def encode(self, examples: Sequence[LabelledText], part: str) -> list[Encoded]:
        texts = self.tokenizer.ids_batch([text for text, _ in examples])
        return [self._windows(pieces, *example) for pieces, example in zip(texts, examples, strict=True)]

    def _windows(self, pieces: Ids, text: str, label: str) -> Encoded:
        if not text.strip():
            return RefusedExample("empty")
        if not self.labels.there(label):
            return RefusedExample("no label")
        ids = self.labels.of(label)
        return [(window.ids, ids) for window in self.frame.windows(pieces)]


class ImageEncoder(TextEncoder[Image]):
    """Encodes an image and its label: its pixel values as they are, which are the ids of its side.

    Args:
        labels: the labels of each image.
        largest: the largest pixel value of the training data.
    """

    nothing = "no image has a label"

    def __init__(self, labels: LabelIds, largest: int) -> None:
        super().__init__(None, {"labels": list(labels.labels), "largest": largest}, labels.size)
        self.labels = labels

    def sizes(self, part: str) -> tuple[int, int]:
        return LARGEST + 1, self.labels.size

    def characters(self, example: Image) -> int:
        return len(example.pixels)

    def read_texts(self, example: Image) -> Sequence[str]:
        return ()

    def encode(self, examples: Sequence[Image], part: str) -> list[Encoded]:
        return [
            [(pixels, self.labels.of(label))] if self.labels.there(label) else RefusedExample("no label")
            for pixels, label in examples
        ]


class TagEncoder(TextEncoder[TaggedWords]):
    """A text and the tags of its words, as the marks of their first pieces (:mod:`~regard.data.prepare.windowing`).

    Words are encoded one by one, each with the white space before it, so that no piece belongs to two. In a text of
    several windows each word counts in that one only in which it is most central.

    Args:
        tokenizer: text to pieces.
        frame: of a window.
        scheme: tags of any scheme are converted to it.
        tags: those that are learned.
        others: those that occur in validation texts only; they are never predicted.
    """

    example = TaggedWords
    tokenizer: AnyTokenizer

    def __init__(
        self, tokenizer: AnyTokenizer, frame: Frame, scheme: Scheme, tags: Sequence[str], others: Sequence[str] = ()
    ) -> None:
        self._marks = {tag: TAGS + place for place, tag in enumerate((*tags, *others))}
        own: Entry = {"labels": list(tags), "others": list(others), "scheme": scheme}
        super().__init__(tokenizer, own, TAGS + len(self._marks))
        self.frame, self.scheme, self.tags = frame, scheme, tuple(tags)

    def characters(self, example: TaggedWords) -> int:
        """Characters of the text."""
        return len(example.text)

    def encode(self, examples: Sequence[TaggedWords], part: str) -> list[Encoded]:
        marks = [[self._marks[tag] for tag in convert_tags(words.tags, self.scheme)] for words in examples]
        return [
            self._windows(pieces, of_words) if words.text.strip() else RefusedExample("empty")
            for words, pieces, of_words in zip(examples, self.pieces(examples), marks, strict=True)
        ]

    def encode_texts(self, texts: Sequence[TaggedWords]) -> list[list[Sides]]:
        """The windows of texts whose tags are not known; words that a window counts are marked by the first tag."""
        return [self._windows(pieces, [TAGS] * len(pieces)) for pieces in self.pieces(texts)]

    def pieces(self, texts: Sequence[TaggedWords]) -> list[list[Ids]]:
        """The pieces of each word of each text, including those of the text before it; at least one."""
        encoded = iter(self.tokenizer.ids_batch([part for words in texts for part in word_parts(words)]))
        unknown = np.array([self.tokenizer.unknown], np.int64)  # a tokenizer may drop all that a word has
        return [
            [pieces[: self.frame.room] if len(pieces := next(encoded)) else unknown for _ in words.places]
            for words in texts
        ]

    def _windows(self, pieces: list[Ids], marks: list[int]) -> list[Sides]:
        ids = np.concatenate([np.zeros(0, np.int64), *pieces])
        lengths_R = np.array([len(part) for part in pieces], np.int64)
        first_R = lengths_R.cumsum() - lengths_R
        windows = list(self.frame.windows(ids))
        starts = [window.start for window in windows]
        window_R = most_central(first_R, first_R + lengths_R - 1, starts, self.frame.room)
        ends = np.searchsorted(window_R, np.arange(len(windows) + 1))
        marks_R = np.array(marks, np.int64)
        found: list[Sides] = []
        for window, begin, end in zip(windows, ends[:-1], ends[1:], strict=True):
            marks_T = np.full(len(window.ids), INSIDE, np.int64)
            shift = len(self.frame.begin) - window.start
            inside = slice(*np.searchsorted(first_R, [window.start, window.start + self.frame.room]))
            marks_T[first_R[inside] + shift] = NEIGHBOUR
            marks_T[first_R[begin:end] + shift] = marks_R[begin:end]
            marks_T[-1] = CONTINUES if window is not windows[-1] else INSIDE
            found.append((window.ids, marks_T))
        return found


class DocumentEncoder(TextEncoder[DocumentPart]):
    """Encodes running text, which has no labels.

    Args:
        tokenizer: text to pieces.
        ended: whether ``</s>`` ends each document.
        words: whether the other side has a 1 for each token that begins a word, a 0 for the others. Found once, not in
            each batch: it would take a twentieth of a small model's step.
    """

    example = DocumentPart
    tokenizer: AnyTokenizer
    nothing = "that part is nothing but white space"

    def __init__(self, tokenizer: AnyTokenizer, ended: bool = False, words: bool = False) -> None:
        super().__init__(tokenizer, {"ended": ended} | ({"words": True} if words else {}), 2 if words else 1)
        self.ended, self.words = ended, words

    def encode(self, examples: Sequence[DocumentPart], part: str) -> list[Encoded]:
        texts = self.tokenizer.ids_batch([text for text, _ in examples])
        return [self._window(pieces, *example) for pieces, example in zip(texts, examples, strict=True)]

    def _window(self, pieces: Ids, text: str, continues: bool) -> Encoded:
        if not text.strip():
            return RefusedExample("empty")
        if self.ended and not continues:
            pieces = np.append(pieces, self.tokenizer.end)
        starts = self.tokenizer.word_starts(pieces.tolist()).astype(np.int64) if self.words else np.zeros(0, np.int64)
        return [(pieces, starts)]


def word_parts(words: TaggedWords) -> list[str]:
    """Each word with the text between it and the previous word; a word that shares its place stands alone."""
    ends = [0, *(end for _, end in words.places)]
    return [
        words.text[before if before <= begin else begin : end]
        for before, (begin, end) in zip(ends, words.places, strict=False)
    ]
