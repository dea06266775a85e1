"""Encoders of examples: pairs, labelled texts, tagged words, documents and images become ids on two sides."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic

import numpy as np
from numpy.typing import NDArray

from regard.config import Recipe
from regard.data.corpora.corpus import ExampleT, LabelledText, Progress, TextPair
from regard.data.corpora.documents import DocumentPart
from regard.data.corpora.images import LARGEST, Image
from regard.data.corpora.labelled import Kind, parse_number, split_labels
from regard.data.prepare.bpe_dropout import Segmenter, WordTable
from regard.data.prepare.shards import Entry
from regard.data.prepare.windowing import CONTINUES, INSIDE, NEIGHBOUR, TAGS, Frame, most_central
from regard.text.tags import Scheme, TaggedWords, convert_tags
from regard.text.tokenizers.vocabulary import TOKENIZER, AnyTokenizer, Vocabularies

Ids = NDArray[np.int64]
Window = tuple[Ids, Ids]
"""The ids of both sides of an example; a text that is too long gives several windows."""
UNKNOWN, OUTSIDE = 0, 1
"""Offsets from the number of labels: the ids of an unknown label, and of what belongs to no class."""


@dataclass(frozen=True)
class RefusedExample:
    """Why an example is left out, and which side of it."""

    kind: str
    side: int = 0


Encoded = Sequence[Window] | RefusedExample


@dataclass(frozen=True)
class FlatWindows:
    """The windows of examples end to end.

    Args:
        refused: examples without windows, by place, and why.
        windows_B: how many each example has.
        sides: of both sides the ids of all windows, and how many each has.
    """

    refused: dict[int, RefusedExample]
    windows_B: Ids
    sides: tuple[tuple[Ids, Ids], tuple[Ids, Ids]]

    @classmethod
    def of(cls, coded: Sequence[Encoded]) -> FlatWindows:
        """Of what an encoder makes of each example."""
        refused = {place: one for place, one in enumerate(coded) if isinstance(one, RefusedExample)}
        windows = [() if isinstance(one, RefusedExample) else one for one in coded]
        first, second = ([window[side] for each in windows for window in each] for side in (0, 1))
        return cls(refused, np.array([len(each) for each in windows], np.int64), (_join(first), _join(second)))

    def keep(self, kept_B: NDArray[np.bool_]) -> FlatWindows:
        """Those of some of the examples."""
        if kept_B.all():
            return self
        kept_W = np.repeat(kept_B, self.windows_B)
        first, second = ((ids[np.repeat(kept_W, lengths)], lengths[kept_W]) for ids, lengths in self.sides)
        return FlatWindows({}, self.windows_B[kept_B], (first, second))


def _join(rows: list[Ids]) -> tuple[Ids, Ids]:
    return np.concatenate([np.zeros(0, np.int64), *rows]), np.fromiter(map(len, rows), np.int64, len(rows))


class Encoder(ABC, Generic[ExampleT]):
    """Examples to ids, for preparation."""

    sides: ClassVar[tuple[str, str]] = ("text", "labels")
    """How the files of both sides are named."""
    windowed: ClassVar[bool] = True
    """Whether an example may have several windows."""
    keeps_validation: ClassVar[bool] = False
    """Whether the validation examples are kept as text, too."""
    nothing: str = "every text is empty, or has no label"
    """Why no example may be left."""
    example: ClassVar[Callable[..., object]]
    """Makes an example of its values as JSON holds them, for an encoder that is divisible."""
    divisible: bool = False
    """Whether processes may encode the examples: no answer depends on those before."""
    piece_sizes: tuple[int, ...] = ()
    """Pieces of the vocabulary of the first side, and of the second, where the ids of training are pieces."""

    @abstractmethod
    def sizes(self, part: str) -> tuple[int, int]:
        """Ids of each side are below these."""

    def characters(self, example: ExampleT) -> int:
        """Characters of an example, or its pixels: what it takes of memory until it is encoded."""
        return sum(map(len, example.sides()))

    @abstractmethod
    def encode(self, examples: Sequence[ExampleT], part: str) -> list[Encoded]:
        """The ids of each example of the training or validation part."""

    def encode_flat(self, examples: Sequence[ExampleT], part: str) -> FlatWindows:
        """As :meth:`encode`, end to end."""
        return FlatWindows.of(self.encode(examples, part))

    def read_texts(self, example: ExampleT) -> Sequence[str]:
        """The texts of an example that the model reads: what may hold words that it never saw."""
        return example.sides()[:1]

    @abstractmethod
    def fields(self, counts: Sequence[int]) -> Entry:
        """Plain values for the index, given the number of examples of each corpus."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write its tokenizers."""

    @property
    @abstractmethod
    def sha256(self) -> str:
        """One fingerprint of the encoder."""

    def rests(self, fields: Entry) -> list[object]:
        """Which fields the fingerprint of the data depends on."""
        return []

    def write_tables(self, folder: Path, files: Entry, progress: Progress) -> Entry:
        """Write what is known only after all examples; its entries for the index."""
        return {}


class PairEncoder(Encoder[TextPair]):
    """Encodes sentence pairs; with BPE-dropout the words of training sentences, whose segmentations follow.

    Args:
        vocabularies: of both sides.
        recipe: its seed and the sections ``text`` and ``data`` are read.
    """

    example = TextPair
    sides = ("source", "target")
    windowed = False
    keeps_validation = True

    def __init__(self, vocabularies: Vocabularies, recipe: Recipe) -> None:
        text = recipe.text
        self.vocabularies, self.seed, self.max_tokens = vocabularies, recipe.seed, recipe.data.max_tokens
        self.nothing = f"all pairs are empty or over {self.max_tokens} tokens"
        self._tokenizers = (vocabularies.source, vocabularies.target)
        self._tables = [
            WordTable(one, Segmenter(one, text.bpe_dropout, self.seed), text.segmentations)
            for one in (self._tokenizers if text.bpe_dropout else ())
        ]
        self.divisible = not self._tables  # whose words are numbered as they come, and are the ids
        self.piece_sizes = () if self._tables else self.vocabularies.sizes

    def sizes(self, part: str) -> tuple[int, int]:
        words = self._tables and part == "train"
        return (1 << 32, 1 << 32) if words else self.vocabularies.sizes

    def encode(self, examples: Sequence[TextPair], part: str) -> list[Encoded]:
        if self._tables and part == "train":
            sides = [[table.words(pair[side]) for pair in examples] for side, table in enumerate(self._tables)]
        else:
            ids = [one.ids_batch([pair[side] for pair in examples], True) for side, one in enumerate(self._tokenizers)]
            sides = [[(row, len(row)) for row in rows] for rows in ids]
        return [
            self._refusal(pair, source[1], target[1]) or [(source[0], target[0])]
            for pair, source, target in zip(examples, *sides, strict=True)
        ]

    def encode_flat(self, examples: Sequence[TextPair], part: str) -> FlatWindows:
        if self._tables and part == "train":
            return super().encode_flat(examples, part)
        source, target = (
            one.flat_ids([pair[side] for pair in examples], True) for side, one in enumerate(self._tokenizers)
        )
        empty_B = np.fromiter((not (a.strip() and b.strip()) for a, b in examples), np.bool_, len(examples))
        suspect_B = empty_B | (np.maximum(source[1], target[1]) > self.max_tokens)
        refused = {
            place: self._refusal(examples[place], int(source[1][place]), int(target[1][place]))
            for place in np.flatnonzero(suspect_B).tolist()
        }
        return FlatWindows(
            {place: one for place, one in refused.items() if one}, np.ones(len(examples), np.int64), (source, target)
        )

    def _refusal(self, pair: TextPair, source: int, target: int) -> RefusedExample | None:
        """Why a pair of so many tokens is left out, if it is."""
        for side, text in enumerate(pair):
            if not text.strip():
                return RefusedExample("empty", side)
        if max(source, target) > self.max_tokens:
            return RefusedExample("too long", int(target > source))
        return None

    def save(self, folder: Path) -> None:
        self.vocabularies.save(folder)

    @property
    def sha256(self) -> str:
        return self.vocabularies.sha256

    def fields(self, counts: Sequence[int]) -> Entry:
        return {"sizes": list(counts), "seed": self.seed, "max_tokens": self.max_tokens}

    def rests(self, fields: Entry) -> list[object]:
        return [fields["sizes"]]

    def write_tables(self, folder: Path, files: Entry, progress: Progress) -> Entry:
        tables = {}
        for table, side in zip(self._tables, self.sides, strict=False):
            progress("segment", 0)
            tables[f"train.{side}"], written = table.write(folder, f"train.{side}")
            files |= written
        return {"tables": tables}


class TextEncoder(Encoder[ExampleT], Generic[ExampleT]):
    """Base of encoders with one tokenizer, or none.

    Args:
        tokenizer: text to pieces; None if examples are not texts.
        own: plain values for the index of the prepared data.
        second: ids of the other side are below it.
    """

    def __init__(self, tokenizer: AnyTokenizer | None, own: Entry, second: int) -> None:
        self.tokenizer, self.own, self._second = tokenizer, own, second
        self.divisible = tokenizer is not None  # texts are encoded each by itself
        self.piece_sizes = (tokenizer.size,) if tokenizer else ()

    def sizes(self, part: str) -> tuple[int, int]:
        return self.tokenizer.size if self.tokenizer else LARGEST + 1, self._second

    def fields(self, counts: Sequence[int]) -> Entry:
        return {"own": self.own}

    def save(self, folder: Path) -> None:
        if self.tokenizer:
            self.tokenizer.save(folder / TOKENIZER)

    @property
    def sha256(self) -> str:
        rests = json.dumps([self.tokenizer.sha256 if self.tokenizer else None, self.own], sort_keys=True)
        return hashlib.sha256(rests.encode()).hexdigest()


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

    def encode_texts(self, texts: Sequence[TaggedWords]) -> list[list[Window]]:
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

    def _windows(self, pieces: list[Ids], marks: list[int]) -> list[Window]:
        ids = np.concatenate([np.zeros(0, np.int64), *pieces])
        lengths_R = np.array([len(part) for part in pieces], np.int64)
        first_R = lengths_R.cumsum() - lengths_R
        windows = list(self.frame.windows(ids))
        starts = [window.start for window in windows]
        window_R = most_central(first_R, first_R + lengths_R - 1, starts, self.frame.room)
        ends = np.searchsorted(window_R, np.arange(len(windows) + 1))
        marks_R = np.array(marks, np.int64)
        found: list[Window] = []
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
