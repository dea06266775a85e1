"""The words of a sample of pairs counted, in several processes where asked for, before vocabularies are learned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from regard.config import Text
from regard.data.corpora.blocks import Block, Noted
from regard.data.corpora.corpus import TextPair
from regard.data.prepare.split import TRAIN, SplitCorpora
from regard.system.map_reduce import MapReduce, divide
from regard.text.tokenizers.vocabulary import PairCounter, sample

COUNTED, GIVEN = 1, 2
"""Marks of pairs: their words are counted; they are given back, too."""
CountedBlock = tuple[list[TextPair], Noted]
"""Pairs that are given back, and what is to be noted of the files."""


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
    marks = _draw(examples.train_count, text.sample, given, seed)
    for block, (pairs, noted) in divide(work, _mark(examples.train_blocks(_characters), marks), lambda: processes):
        block.note(noted)
        found += pairs
    return work.counter, found


def _characters(pair: TextPair) -> int:
    return len(pair.source) + len(pair.target)


def _draw(total: int, count: int, given: int, seed: int) -> NDArray[np.int8]:
    """The mark of each pair that is learned from."""
    drawn = np.array(sample(range(total), count, seed) if total > count else range(total), np.int64)
    marks = np.zeros(total, np.int8)
    marks[drawn] = COUNTED
    marks[drawn[:: 1 + len(drawn) // given]] = GIVEN
    return marks


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
