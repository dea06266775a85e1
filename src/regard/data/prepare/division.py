"""Blocks of examples worked on here or divided among processes, with the same result.

The words of a sample of pairs are counted before vocabularies are learned; examples become the bytes of shards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.config import Text
from regard.data.corpora.corpus import TextPair
from regard.data.corpora.scan import Block, Noted
from regard.data.prepare.encoders import PARTS, Encoder, RefusedExample
from regard.data.prepare.shards import Ids, Numbers, narrowest_type
from regard.data.prepare.split import SHARED, TRAIN, VALIDATION, SplitCorpora
from regard.system.forks import MapReduce, divide, join_parts, split_parts
from regard.text.confidence import WordCounter
from regard.text.tokenizers.vocabulary import PairCounter, sample

COUNTED, GIVEN = 1, 2
"""Marks of pairs: their words are counted; they are given back, too."""
CountedBlock = tuple[list[TextPair], Noted]
"""Pairs that are given back, and what is to be noted of the files."""
Refusal = tuple[int, str, int]
"""The place of an example in its block, why it is left out, and which side of it."""


class BlockCounter(MapReduce[Block, CountedBlock]):
    """Counts the words of the marked pairs of blocks."""

    def __init__(self, text: Text) -> None:
        self.counter = PairCounter(text.joint, text.normalisation, text.units, text.lowercase)

    def do(self, item: Block) -> CountedBlock:
        pairs, noted = item.read()
        marked = list(zip(pairs, item.marks_B.tolist(), strict=False))
        self.counter.add([pair for pair, mark in marked if mark])
        return [pair for pair, mark in marked if mark == GIVEN], noted

    @property
    def content(self) -> bytes:
        return self.counter.content

    def merge(self, content: bytes) -> None:
        self.counter.merge(content)

    def pack_item(self, item: Block) -> bytes:
        return item.pack(list)

    def unpack_item(self, content: bytes) -> Block:
        return Block.unpack(content, lambda sides: TextPair(*sides))

    def pack_found(self, found: CountedBlock) -> bytes:
        return json.dumps(found).encode()

    def unpack_found(self, content: bytes) -> CountedBlock:
        pairs, noted = json.loads(content)
        return [TextPair(*pair) for pair in pairs], noted


def count_sample(
    examples: SplitCorpora[TextPair], text: Text, given: int, seed: int, processes: int
) -> tuple[PairCounter, list[TextPair]]:
    """Count the words of ``text.sample`` pairs that are learned from, drawn by seed; and about ``given`` of them."""
    work, found = BlockCounter(text), list[TextPair]()
    total = examples.train_count
    drawn = np.array(sample(range(total), text.sample, seed) if total > text.sample else range(total), np.int64)
    marks = np.zeros(total, np.int8)
    marks[drawn] = COUNTED
    marks[drawn[:: 1 + len(drawn) // given]] = GIVEN
    for block, (pairs, noted) in divide(work, _mark(examples.train_blocks(_characters), marks), lambda: processes):
        block.note(noted)
        found += pairs
    return work.counter, found


def _characters(pair: TextPair) -> int:
    return len(pair.source) + len(pair.target)


def _mark(blocks: Iterable[Block], marks: NDArray[np.int8]) -> Iterator[Block]:
    """The blocks with these marks of the pairs that are learned from; the others have none."""
    begin = 0
    for block in blocks:
        learned_B = block.marks_B == TRAIN
        end = begin + int(learned_B.sum())
        marks_B = np.zeros(len(learned_B), np.int8)
        marks_B[learned_B] = marks[begin:end]
        begin = end
        yield replace(block, marks_B=marks_B)


@dataclass(frozen=True)
class EncodedPart:
    """The examples of a block that are learned from, or validated on, as they are written.

    Args:
        seen: how many there are, those left out included.
        refused: those left out.
        windows_B: how many windows each of the others has.
        sides: of both sides the ids of all windows, as the files have them, and how many each has.
        texts: of both sides the texts of the others, a line each, where they are kept.
    """

    seen: int
    refused: Sequence[Refusal]
    windows_B: Ids
    sides: Sequence[tuple[Numbers, Ids]]
    texts: Sequence[bytes]


EncodedBlock = tuple[list[EncodedPart], Noted]
"""The training and the validation examples of a block, and what is to be noted of its files."""


class BlockEncoder(MapReduce[Block, EncodedBlock]):
    """Encodes blocks, and counts what training reads.

    Args:
        encoder: examples to ids.
        has_dropout: whether training draws other pieces than these, so that those seen are not known.
    """

    def __init__(self, encoder: Encoder[Any], has_dropout: bool) -> None:
        self._encoder, self.words = encoder, WordCounter()
        self.counts = [np.zeros(size, np.int64) for size in (() if has_dropout else encoder.piece_sizes)]

    def do(self, item: Block) -> EncodedBlock:
        examples, noted = item.read()
        held_B = item.marks_B[: len(examples)] == VALIDATION
        return [self._part(item, examples, name, held_B == number) for number, name in enumerate(PARTS)], noted

    def _part(self, block: Block, examples: Sequence[Any], part: str, here_B: NDArray[np.bool_]) -> EncodedPart:
        places = np.flatnonzero(here_B)
        chosen = examples if here_B.all() else [examples[place] for place in places.tolist()]
        flat = self._encoder.encode_flat(chosen, part)
        shared = np.flatnonzero(block.marks_B[places] == SHARED).tolist()
        refused = flat.refused | dict.fromkeys(shared, RefusedExample("shared with validation"))
        kept_B = np.ones(len(chosen), np.bool_)
        kept_B[list(refused)] = False
        found, kept = flat.keep(kept_B), [one for one, keep in zip(chosen, kept_B.tolist(), strict=True) if keep]
        if part == "train":
            self.words.add(text for example in kept for text in self._encoder.read_texts(example))
            for counts_V, (ids, _) in zip(self.counts, found.sides, strict=False):
                counts_V += np.bincount(ids, minlength=len(counts_V))
        types = map(narrowest_type, self._encoder.sizes(part))
        sides = [(ids.astype(kind), lengths) for kind, (ids, lengths) in zip(types, found.sides, strict=True)]
        reasons = [(int(places[place]), refused[place].kind, refused[place].side) for place in sorted(refused)]
        texts = list[bytes]()
        if part == "validation" and self._encoder.keeps_validation:
            for side in zip(*(example.sides() for example in kept), strict=True):
                texts.append("".join(f"{text}\n" for text in side).encode())
        return EncodedPart(len(chosen), reasons, found.windows_B, sides, texts)

    @property
    def content(self) -> bytes:
        return join_parts(self.words.content, *(counts_V.tobytes() for counts_V in self.counts))

    def merge(self, content: bytes) -> None:
        words, *counts = split_parts(content)
        self.words.merge(words)
        for counts_V, more in zip(self.counts, counts, strict=True):
            counts_V += np.frombuffer(more, np.int64)

    def pack_item(self, item: Block) -> bytes:
        return item.pack(self._encoder.plain)

    def unpack_item(self, content: bytes) -> Block:
        return Block.unpack(content, self._encoder.restore)

    def pack_found(self, found: EncodedBlock) -> bytes:
        parts, noted = found
        return join_parts(json.dumps(noted).encode(), *map(_pack_part, parts))

    def unpack_found(self, content: bytes) -> EncodedBlock:
        noted, *parts = split_parts(content)
        return [_unpack_part(part) for part in parts], json.loads(noted)


def _pack_part(part: EncodedPart) -> bytes:
    head = json.dumps([part.seen, part.refused, [ids.dtype.str for ids, _ in part.sides]]).encode()
    arrays = [part.windows_B, *(array for side in part.sides for array in side)]
    return join_parts(head, *(array.tobytes() for array in arrays), *part.texts)


def _unpack_part(content: bytes) -> EncodedPart:
    head, windows, first, first_lengths, second, second_lengths, *texts = split_parts(content)
    seen, refused, kinds = json.loads(head)
    sides = [
        (np.frombuffer(ids, kind), np.frombuffer(lengths, np.int64))
        for kind, ids, lengths in zip(kinds, (first, second), (first_lengths, second_lengths), strict=True)
    ]
    return EncodedPart(seen, [tuple(one) for one in refused], np.frombuffer(windows, np.int64), sides, texts)
