"""Examples of a corpus that follow each other: what a process is given to work on at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from regard.data.corpora.corpus import Corpus, TextPair
from regard.system.map_reduce import join_parts, split_parts
from regard.text.lines import InvalidLines, decode_piece

BATCH = 2000
"""Most examples of a block that was read already."""
CHARACTERS = 1 << 24
"""Most characters of such a block, but for its last example: fewer long ones are worked on together."""
Noted = list[tuple[int, list[int]]]
"""Of each file how many lines were not valid UTF-8, and which."""


@dataclass(frozen=True)
class LineBlock:
    """Lines of two files that belong together, as bytes.

    Args:
        first: how many lines of each file came before.
        count: how many are here.
        source, target: the lines.
    """

    first: int
    count: int
    source: bytes
    target: bytes

    def read(self, notes: Sequence[InvalidLines]) -> list[TextPair]:
        """The pairs; invalid UTF-8 is noted, of each file by its own."""
        sides = zip((self.source, self.target), notes, strict=True)
        found = [decode_piece(raw, self.first, note) for raw, note in sides]
        for note in notes:
            note.read = self.first + self.count
        return list(map(TextPair, *found))

    def pack(self) -> bytes:
        """The block as bytes."""
        return join_parts(json.dumps([self.first, self.count]).encode(), self.source, self.target)

    @classmethod
    def unpack(cls, packed: bytes) -> LineBlock:
        """The opposite."""
        head, source, target = split_parts(packed)
        first, count = json.loads(head)
        return cls(first, count, source, target)

    def read_alone(self) -> tuple[list[TextPair], Noted]:
        """The pairs, and what is to be noted of the files."""
        notes = (InvalidLines(), InvalidLines())
        return self.read(notes), [(note.invalid, note.invalid_lines) for note in notes]


@dataclass(frozen=True)
class ExampleBlock:
    """Examples that were read."""

    first: int
    examples: Sequence[Any]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.examples)

    def read_alone(self) -> tuple[Sequence[Any], Noted]:
        """Themselves; nothing is to be noted any more."""
        return self.examples, []


@runtime_checkable
class LineCorpus(Protocol):
    """A corpus of two files whose lines any process can decode."""

    notes: tuple[InvalidLines, ...]

    def line_blocks(self) -> Iterator[LineBlock]:
        """Every example in order, some thousand at a time; who reads them adds to ``notes``."""
        ...


Lines = LineBlock | ExampleBlock


@dataclass(frozen=True)
class Block:
    """Examples of a corpus, and a number for each: its part, or what else is to be done with it.

    Args:
        corpus: they are of.
        content: the examples.
        marks_B: the numbers; of fewer examples, where the corpus has grown since it was scanned.
    """

    corpus: Corpus[Any]
    content: Lines
    marks_B: NDArray[np.int8]

    def read(self) -> tuple[Sequence[Any], Noted]:
        """The examples that have a number, and what is to be noted of the files."""
        examples, noted = self.content.read_alone()
        return examples[: len(self.marks_B)], noted

    def note(self, noted: Noted) -> None:
        """Add what was noted to the notes of the corpus."""
        for note, (invalid, numbers) in zip(self.corpus.notes, noted, strict=False):
            note.add(invalid, numbers, self.content.first + self.content.count)

    def pack(self, plain: Callable[[Any], Any]) -> bytes:
        """The block as bytes, without its corpus; ``plain`` makes of an example what JSON can hold."""
        marks, content = self.marks_B.tobytes(), self.content
        if isinstance(content, LineBlock):
            return join_parts(marks, content.pack())
        values = json.dumps([plain(example) for example in content.examples], ensure_ascii=False)
        return join_parts(marks, b"", values.encode("utf-8", "surrogatepass"))

    @classmethod
    def unpack(cls, packed: bytes, restore: Callable[[Any], Any]) -> Block:
        """The opposite of :meth:`pack`; of no corpus."""
        marks, lines, *values = split_parts(packed)
        content: Lines = LineBlock.unpack(lines) if lines else _restored(values[0], restore)
        return cls(_NOWHERE, content, np.frombuffer(marks, np.int8))


def _restored(values: bytes, restore: Callable[[Any], Any]) -> ExampleBlock:
    found = json.loads(values.decode("utf-8", "surrogatepass"))
    return ExampleBlock(0, [restore(value) for value in found])


class _Nowhere:
    """The corpus of a block that was sent."""

    name = ""
    notes: tuple[InvalidLines, ...] = ()

    def examples(self) -> Iterator[Any]:
        """None."""
        return iter(())

    def where(self, number: int, side: int = 0) -> str:
        """Not known."""
        return ""


_NOWHERE = _Nowhere()


def blocks(corpus: Corpus[Any], marks_B: NDArray[np.int8], size: Callable[[Any], int]) -> Iterator[Block]:
    """The examples of a corpus in blocks.

    Args:
        corpus: read once.
        marks_B: a number for each example.
        size: characters of an example.
    """
    found = corpus.line_blocks() if isinstance(corpus, LineCorpus) else example_blocks(corpus.examples(), size)
    for content in found:
        yield Block(corpus, content, marks_B[content.first : content.first + content.count])


def example_blocks(examples: Iterator[Any], size: Callable[[Any], int]) -> Iterator[ExampleBlock]:
    """Examples in blocks of at most :data:`BATCH`, or of about :data:`CHARACTERS`."""
    first, waiting, characters = 0, list[Any](), 0
    for example in examples:
        waiting.append(example)
        characters += size(example)
        if len(waiting) == BATCH or characters >= CHARACTERS:
            yield ExampleBlock(first, waiting)
            first, waiting, characters = first + len(waiting), [], 0
    if waiting:
        yield ExampleBlock(first, waiting)
