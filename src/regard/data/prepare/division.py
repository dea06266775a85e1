"""Blocks of examples are encoded here, or divided among processes; the answers are the same, in the same order."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np

from regard.data.prepare.encoders import Encoded, Encoder, RefusedExample, Window
from regard.data.prepare.split import Placed
from regard.system.forks import SAFE, ForkedWorkers

BATCH = 2000
"""Most examples of a block."""
CHARACTERS = 1 << 24
"""Most characters of a block, but for its last example: fewer long ones are encoded together."""


@dataclass(frozen=True)
class Block:
    """Examples of one part that are encoded together.

    Args:
        part: ``train``, with examples that are left out, or ``validation``.
        placed: the examples.
    """

    part: str
    placed: list[Placed]

    @property
    def examples(self) -> list[Any]:
        """The examples alone."""
        return [placed.example for placed in self.placed]


def blocks(placed: Iterable[Placed], encoder: Encoder[Any]) -> Iterator[Block]:
    """The examples in blocks; each part keeps its order."""
    waiting: dict[str, list[Placed]] = {"train": [], "validation": []}
    characters = dict.fromkeys(waiting, 0)
    for one in placed:
        part = "validation" if one.part == "validation" else "train"
        waiting[part].append(one)
        characters[part] += encoder.characters(one.example)
        if len(waiting[part]) == BATCH or characters[part] >= CHARACTERS:
            yield Block(part, waiting[part])
            waiting[part], characters[part] = [], 0
    for part, rest in waiting.items():
        if rest:
            yield Block(part, rest)


def encode_blocks(
    encoder: Encoder[Any], given: Iterator[Block], processes: int
) -> Generator[tuple[Block, Sequence[Encoded]], None, None]:
    """Each block with the ids of its examples.

    Args:
        encoder: examples to ids.
        given: the blocks.
        processes: that encode them, where there are several and the encoder can be divided.
    """
    first = list(islice(given, 2))
    rest = chain(first, given)
    if processes == 1 or len(first) < 2 or not encoder.divisible or not SAFE:
        for block in rest:
            yield block, encoder.encode(block.examples, block.part)
        return

    def sent(block: Block) -> bytes:
        values = [encoder.plain(example) for example in block.examples]
        return json.dumps([block.part, values], ensure_ascii=False).encode("utf-8", "surrogatepass")

    def work(content: bytes) -> bytes:
        part, values = json.loads(content.decode("utf-8", "surrogatepass"))
        return pack(encoder.encode([encoder.restore(value) for value in values], part))

    with ForkedWorkers(work, processes) as workers:
        for block, answer in workers.pairs(rest, sent):
            yield block, unpack(answer())


def pack(coded: Sequence[Encoded]) -> bytes:
    """What an encoder gives, as bytes: refused examples, windows of each example, lengths, and all ids."""
    refused = [[place, one.kind, one.side] for place, one in enumerate(coded) if isinstance(one, RefusedExample)]
    windows = [() if isinstance(one, RefusedExample) else one for one in coded]
    sides = [ids for each in windows for window in each for ids in window]
    head = json.dumps(refused).encode()
    counts_B = np.array([len(each) for each in windows], np.int64)
    lengths = np.array([len(ids) for ids in sides], np.int64)
    ids = np.concatenate([np.zeros(0, np.int64), *sides])
    sizes = np.array([len(head), len(counts_B), len(lengths)], np.int64)
    return b"".join([sizes.tobytes(), counts_B.tobytes(), lengths.tobytes(), ids.tobytes(), head])


def unpack(content: bytes) -> list[Encoded]:
    """The opposite of :func:`pack`."""
    size, examples, sides = np.frombuffer(content, np.int64, 3).tolist()
    numbers = np.frombuffer(content[: len(content) - size], np.int64, offset=24)
    counts_B, lengths, ids = numbers[:examples], numbers[examples : examples + sides], numbers[examples + sides :]
    ends = lengths.cumsum()
    pieces = [ids[begin:end] for begin, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True)]
    pairs: Iterator[Window] = zip(pieces[0::2], pieces[1::2], strict=True)
    found: list[Encoded] = [list(islice(pairs, count)) for count in counts_B.tolist()]
    for place, kind, side in json.loads(content[len(content) - size :]):
        found[place] = RefusedExample(kind, side)
    return found
