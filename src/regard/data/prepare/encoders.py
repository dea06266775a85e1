"""Encoders of examples, which become ids on two sides: of sentence pairs, and what all others have in common."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Self

import numpy as np
from numpy.typing import NDArray

from regard.config import Recipe
from regard.data.corpora.corpus import ExampleT, Progress, TextPair
from regard.data.prepare.bpe_dropout import Segmenter, WordTable, require_merges
from regard.data.prepare.shards import Entry
from regard.text.language_tokens import Direction
from regard.text.tokenizers.vocabulary import TOKENIZER, AnyTokenizer, Vocabularies

if TYPE_CHECKING:
    from regard.data.prepare.placeholders import PairPlaceholders

Ids = NDArray[np.int64]
Sides = tuple[Ids, Ids]
"""The ids of both sides of an example; a text that is too long gives several windows."""


@dataclass(frozen=True)
class RefusedExample:
    """Why an example is left out, and which side of it."""

    kind: str
    side: int = 0


Encoded = Sequence[Sides] | RefusedExample


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

    def between(self, languages: Sequence[str]) -> Self:
        """The encoder of examples of these languages, of as many processes as this one; nothing: those of all."""
        return self

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

    Of a translator of several languages each side begins with the tokens of the recipe's: those that begin a
    translation are learned as any other piece, as fairseq and Hugging Face do [Fan21 §2.1.4].

    Args:
        vocabularies: of both sides.
        recipe: its seed and the sections ``text`` and ``data`` are read.
        directions: the languages of each corpus that is learned from, where they differ.
        placeholders: puts them into pairs that are learned from.
    """

    example = TextPair
    sides = ("source", "target")
    windowed = False
    keeps_validation = True

    def __init__(
        self,
        vocabularies: Vocabularies,
        recipe: Recipe,
        directions: Sequence[Direction] = (),
        placeholders: PairPlaceholders | None = None,
    ) -> None:
        text, self._directions, self._placeholders = recipe.text, directions, placeholders
        self.vocabularies, self.seed, self.max_tokens = vocabularies, recipe.seed, recipe.data.max_tokens
        self.nothing = f"all pairs are empty or over {self.max_tokens} tokens"
        self._tokenizers = (vocabularies.source, vocabularies.target)
        tokens, frame = vocabularies.languages, vocabularies.frame
        named = text.source_language, text.target_language
        self.frame = tokens.frame(*named) if tokens else (frame.before, frame.prefix)
        self._ended = (frame.ended, True)
        self._tables = [
            WordTable(Segmenter(one, text.bpe_dropout, self.seed, text.segmentations))
            for one in (map(require_merges, self._tokenizers) if text.bpe_dropout else ())
        ]
        self.divisible = not self._tables  # whose words are numbered as they come, and are the ids
        self.piece_sizes = () if self._tables else self.vocabularies.sizes

    def between(self, languages: Sequence[str]) -> PairEncoder:
        """The same encoder for pairs of these languages."""
        if not languages or not self.vocabularies.languages:
            return self
        other, (source, target) = copy(self), languages
        other.frame = self.vocabularies.languages.frame(source, target)
        return other

    def sizes(self, part: str) -> tuple[int, int]:
        words = self._tables and part == "train"
        return (1 << 32, 1 << 32) if words else self.vocabularies.sizes

    def encode(self, examples: Sequence[TextPair], part: str) -> list[Encoded]:
        examples = self._read(examples, part)
        if self._tables and part == "train":
            sided = enumerate(zip(self._tables, self.frame, strict=True))
            sides = [[table.words(pair[side], before) for pair in examples] for side, (table, before) in sided]
        else:
            both = enumerate(zip(self._tokenizers, self._ended, strict=True))
            ids = [one.ids_batch([pair[side] for pair in examples], ended) for side, (one, ended) in both]
            firsts = [np.array(tokens, np.int64) for tokens in self.frame]
            ids = [[np.append(first, row) for row in rows] for first, rows in zip(firsts, ids, strict=True)]
            sides = [[(row, len(row)) for row in rows] for rows in ids]
        return [
            self._refusal(pair, source[1], target[1]) or [(source[0], target[0])]
            for pair, source, target in zip(examples, *sides, strict=True)
        ]

    def encode_flat(self, examples: Sequence[TextPair], part: str) -> FlatWindows:
        if any(self.frame) or (self._tables and part == "train"):
            return super().encode_flat(examples, part)
        examples = self._read(examples, part)
        source, target = (
            one.flat_ids([pair[side] for pair in examples], ended)
            for side, (one, ended) in enumerate(zip(self._tokenizers, self._ended, strict=True))
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

    def _read(self, examples: Sequence[TextPair], part: str) -> Sequence[TextPair]:
        """The pairs as the model reads them."""
        return self._placeholders(examples) if self._placeholders and part == "train" else examples

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
        found: Entry = {"sizes": list(counts), "seed": self.seed, "max_tokens": self.max_tokens}
        return found | ({"directions": list(map(list, self._directions))} if self._directions else {})

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
        return self.piece_sizes[0], self._second

    def fields(self, counts: Sequence[int]) -> Entry:
        return {"own": self.own}

    def save(self, folder: Path) -> None:
        if self.tokenizer:
            self.tokenizer.save(folder / TOKENIZER)

    @property
    def sha256(self) -> str:
        rests = json.dumps([self.tokenizer.sha256 if self.tokenizer else None, self.own], sort_keys=True)
        return hashlib.sha256(rests.encode()).hexdigest()
