"""Examples of a corpus in blocks, and one pass over it: size, fingerprint, hashes by which equal ones are found."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from regard.data.corpora.corpus import Corpus, ExampleT, Progress, TextPair, no_progress, text_hash
from regard.system.errors import RegardError
from regard.system.forks import LostWorker, MapReduce, Processes, alone, divide, pack, unpack
from regard.text.lines import InvalidLines, decode_piece

BATCH = 2000
"""Most examples of a block that was read already."""
CHARACTERS = 1 << 24
"""Most characters of such a block, but for its last example: fewer long ones are worked on together."""
EVERY = 10_000
"""Examples between two calls of a progress callback."""
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

    def read(self) -> tuple[list[TextPair], Noted]:
        """The pairs, and what is to be noted of the files."""
        notes = (InvalidLines(), InvalidLines())
        sides = (
            decode_piece(raw, self.first, note) for raw, note in zip((self.source, self.target), notes, strict=True)
        )
        return list(map(TextPair, *sides)), [(note.invalid, note.invalid_lines) for note in notes]


@dataclass(frozen=True)
class ExampleBlock:
    """Examples that were read."""

    first: int
    examples: Sequence[Any]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.examples)

    def read(self) -> tuple[Sequence[Any], Noted]:
        """Themselves; nothing is to be noted any more."""
        return self.examples, []


@runtime_checkable
class LineCorpus(Protocol):
    """A corpus of two files whose lines any process can decode."""

    notes: tuple[InvalidLines, ...]

    def line_blocks(self) -> Iterator[LineBlock]:
        """Every example in order, some thousand at a time; who reads them adds to ``notes``."""


Lines = LineBlock | ExampleBlock
Size = Callable[[Any], int]
"""Characters of an example."""


def add_notes(notes: Iterable[InvalidLines], noted: Noted, block: Lines) -> None:
    """Add what was noted of the files in a block."""
    for note, (invalid, numbers) in zip(notes, noted, strict=False):
        note.add(invalid, numbers, block.first + block.count)


@dataclass(frozen=True)
class Block:
    """Examples of a corpus, and a number for each: its part, or what else is to be done with it.

    Args:
        corpus: they are of; ``None`` in a process that they were sent to.
        content: the examples.
        marks_B: the numbers; of fewer examples, where the corpus has grown since it was scanned.
        languages: that they are in and are translated into, where those of a run differ.
    """

    corpus: Corpus[Any] | None
    content: Lines
    marks_B: NDArray[np.int8]
    languages: tuple[str, ...] = ()

    def read(self) -> tuple[Sequence[Any], Noted]:
        """The examples that have a number, and what is to be noted of the files."""
        examples, noted = self.content.read()
        return examples[: len(self.marks_B)], noted

    def note(self, noted: Noted) -> None:
        """Add what was noted to the notes of the corpus."""
        add_notes(self.corpus.notes if self.corpus else (), noted, self.content)

    def where(self, place: int, side: int) -> str:
        """``file:line`` of the example at a place of the block."""
        return self.corpus.where(self.content.first + place, side) if self.corpus else ""

    def pack(self) -> bytes:
        """The block as bytes, without its corpus; of examples that JSON can hold."""
        one = self.content
        own = [one.count, one.source, one.target] if isinstance(one, LineBlock) else [one.examples]
        content = [isinstance(one, LineBlock), one.first, *own]
        return pack([content, self.marks_B, self.languages])

    @classmethod
    def unpack(cls, packed: bytes, example: Callable[..., Any]) -> Block:
        """The opposite of :meth:`pack`; of no corpus. ``example`` makes one of its values."""
        (lines, first, *rest), marks_B, languages = unpack(packed)
        content = LineBlock(first, *rest) if lines else ExampleBlock(first, [example(*one) for one in rest[0]])
        return cls(None, content, marks_B, tuple(languages))


def blocks(
    corpus: Corpus[Any], marks_B: NDArray[np.int8], size: Size, languages: tuple[str, ...] = ()
) -> Iterator[Block]:
    """The examples of a corpus in blocks.

    Args:
        corpus: read once.
        marks_B: a number for each example.
        size: characters of an example.
        languages: of them, as a block has them.
    """
    found = corpus.line_blocks() if isinstance(corpus, LineCorpus) else example_blocks(corpus.examples(), size)
    for content in found:
        yield Block(corpus, content, marks_B[content.first : content.first + content.count], languages)


def example_blocks(examples: Iterator[Any], size: Size) -> Iterator[ExampleBlock]:
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


class Scan(Generic[ExampleT]):
    """What one pass over a corpus finds; 16 bytes of memory an example.

    Args:
        corpus: read by :meth:`stream` or :meth:`run`.
    """

    def __init__(self, corpus: Corpus[ExampleT]) -> None:
        self.corpus, self.count = corpus, 0
        self.error: RegardError | None = None
        """Why the pass broke off, if it did."""
        self._sum = hashlib.sha256()
        self._content: list[bytes] | None = None
        """What a blank scan has read, for the sum of another process."""
        self._hashes = array("Q")

    def run(self, progress: Progress = no_progress, processes: Processes = alone) -> Self:
        """Read every example; an error is kept in :attr:`error`.

        Args:
            progress: reports progress.
            processes: how many read, where the corpus has lines that each can decode.
        """
        if isinstance(self.corpus, LineCorpus):
            self._divide(self.corpus, progress, processes)
        else:
            for _ in self.stream(progress):
                pass
        return self

    def _divide(self, corpus: LineCorpus, progress: Progress, processes: Processes) -> None:
        try:
            with closing(divide(_BlockScan(self), corpus.line_blocks(), processes)) as scanned:
                for block, (found, noted) in scanned:
                    add_notes(corpus.notes, noted, block)
                    self.merge(found)
                    progress("read", self.count)
        except LostWorker:
            raise
        except RegardError as error:
            self.error = error

    def stream(self, progress: Progress = no_progress) -> Iterator[ExampleT]:
        """Every example, after it was recorded; ends at an error."""
        try:
            for example in self.corpus.examples():
                self.add(example)
                yield example
                if self.count % EVERY == 0:
                    progress("read", self.count)
        except RegardError as error:
            self.error = error
        progress("read", self.count)

    def add_all(self, examples: Sequence[ExampleT]) -> None:
        """Record the next examples."""
        for example in examples:
            self.add(example)

    def add(self, example: ExampleT) -> None:
        """Record the next example."""
        first, second = example.sides()
        self.add_content(f"{first}\n{second}\n")
        self._hashes.append(text_hash(first))
        self._hashes.append(self.hash_second(example, second))
        self.count += 1
        self.look(example, first, second)

    def add_content(self, content: str) -> None:
        """Record the content of examples: each side a line."""
        if self._content is None:
            self._sum.update(content.encode())
        else:
            self._content.append(content.encode())

    def blank(self, first: int) -> Self:
        """The same scan with nothing read, to begin with example ``first``; only good for :meth:`pack`."""
        found = type(self)(self.corpus)
        found.count, found._content = first, []
        return found

    def pack(self) -> bytes:
        """What a blank scan has found, for :meth:`merge`."""
        return pack([self.count, b"".join(self._content or ()), self._hashes.tobytes()])

    def merge(self, packed: bytes) -> None:
        """Add what a blank scan has found in the next examples."""
        self.count, content, hashes = unpack(packed)
        self._sum.update(content)
        self._hashes.frombytes(hashes)

    def hash_second(self, example: ExampleT, second: str) -> int:
        """A hash of the second side, equal where it means the same."""
        return text_hash(second)

    def look(self, example: ExampleT, first: str, second: str) -> None:
        """Count what a check reports of an example; a fingerprint alone needs nothing."""

    @property
    def hashes_B2(self) -> NDArray[np.uint64]:
        """The hashes of both sides of each example."""
        return np.frombuffer(self._hashes, np.uint64).reshape(-1, 2) if self.count else np.zeros((0, 2), np.uint64)

    @property
    def sha256(self) -> str:
        """Fingerprint of the content."""
        return self._sum.hexdigest()


class _BlockScan(MapReduce[LineBlock, tuple[bytes, Noted]]):
    """Scans blocks of lines, each by a blank scan."""

    def __init__(self, scan: Scan[Any]) -> None:
        self._scan = scan

    def do(self, item: LineBlock) -> tuple[bytes, Noted]:
        pairs, noted = item.read()
        found = self._scan.blank(item.first)
        found.add_all(pairs)
        return found.pack(), noted

    def pack_item(self, item: LineBlock) -> bytes:
        return pack([item.first, item.count, item.source, item.target])

    def unpack_item(self, content: bytes) -> LineBlock:
        return LineBlock(*unpack(content))


ScanT_co = TypeVar("ScanT_co", bound=Scan[Any], covariant=True)


@dataclass(frozen=True)
class DataScan(Generic[ScanT_co]):
    """The scanned data of a run.

    Args:
        learned: the scans of the training corpora.
        validation: of the corpus to validate on, if it is not split off.
        further: of further ones.
    """

    learned: Sequence[ScanT_co]
    validation: ScanT_co | None = None
    further: Sequence[ScanT_co] = ()

    @classmethod
    def of(
        cls,
        corpora: Sequence[Corpus[Any]],
        validation: Corpus[Any] | None = None,
        progress: Progress = no_progress,
        scan: Callable[[Corpus[Any]], ScanT_co] = Scan,  # type: ignore[assignment]
    ) -> Self:
        """Scan these corpora, each once, by this kind of scan."""
        held_out = None if validation is None else scan(validation).run(progress)
        return cls([scan(corpus).run(progress) for corpus in corpora], held_out)

    @property
    def held(self) -> list[ScanT_co]:
        """Those of the validation data that is not split off."""
        return [*([self.validation] if self.validation else []), *self.further]

    @property
    def every(self) -> list[ScanT_co]:
        """All scans, those of the validation data last."""
        return [*self.learned, *self.held]

    @property
    def name(self) -> str:
        """The training files, for messages."""
        return " and ".join(scan.corpus.name for scan in self.learned)

    @property
    def hashes_B2(self) -> NDArray[np.uint64]:
        """The hashes of both sides of every training example."""
        return np.concatenate([scan.hashes_B2 for scan in self.learned])

    def refuse_unreadable(self, what: str) -> None:
        """Raise the error that broke a scan off, or a RegardError for an empty corpus; ``what`` it should hold."""
        for scan in self.every:
            if scan.error:
                raise scan.error
            if not scan.count:
                raise RegardError(f"holds no {what}", scan.corpus.name)

    @property
    def fingerprint(self) -> str:
        """The sha256 over the content of all training corpora, in order."""
        return hashlib.sha256(" ".join(scan.sha256 for scan in self.learned).encode()).hexdigest()

    @property
    def validation_fingerprint(self) -> str | None:
        """The same of the validation data; None where it is split off."""
        return DataScan(self.held).fingerprint if self.held else None
