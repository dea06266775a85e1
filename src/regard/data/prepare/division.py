"""Blocks of examples become bytes of shards, here or divided among processes; the bytes are the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.corpora.blocks import Block, Noted
from regard.data.prepare.encoders import Encoder, RefusedExample
from regard.data.prepare.shards import narrowest_type
from regard.data.prepare.split import SHARED, VALIDATION
from regard.system.map_reduce import MapReduce, join_parts, split_parts
from regard.text.seen_words import WordCounter

PARTS = ("train", "validation")
Refusal = tuple[int, str, int]
"""The place of an example in its block, why it is left out, and which side of it."""


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
    windows_B: NDArray[np.int64]
    sides: Sequence[tuple[NDArray[Any], NDArray[np.int64]]]
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
            self._count(kept, [ids for ids, _ in found.sides])
        types = map(narrowest_type, self._encoder.sizes(part))
        sides = [(ids.astype(kind), lengths) for kind, (ids, lengths) in zip(types, found.sides, strict=True)]
        reasons = [(int(places[place]), refused[place].kind, refused[place].side) for place in sorted(refused)]
        texts = _texts(kept) if part == "validation" and self._encoder.keeps_validation else ()
        return EncodedPart(len(chosen), reasons, found.windows_B, sides, texts)

    def _count(self, examples: Sequence[Any], sides: Sequence[NDArray[np.int64]]) -> None:
        """Count the words of examples that are learned from, and the pieces of both sides."""
        self.words.add(text for example in examples for text in self._encoder.read_texts(example))
        for counts_V, ids in zip(self.counts, sides, strict=False):
            counts_V += np.bincount(ids, minlength=len(counts_V))

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


def _texts(examples: Sequence[Any]) -> list[bytes]:
    sides = zip(*(example.sides() for example in examples), strict=True)
    return ["".join(f"{text}\n" for text in side).encode() for side in sides]


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
