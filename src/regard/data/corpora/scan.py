"""One pass over a corpus: its size, a fingerprint of its content, and hashes by which equal examples are found."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.data.corpora.blocks import LineBlock, LineCorpus, Noted
from regard.data.corpora.corpus import Corpus, ExampleT, Progress, no_progress, text_hash
from regard.system.errors import RegardError
from regard.system.forks import LostWorker
from regard.system.map_reduce import MapReduce, Processes, alone, divide, join_parts, split_parts

EVERY = 10_000
"""Examples between two calls of a progress callback."""


class Scan(Generic[ExampleT]):
    """What one pass over a corpus finds; 16 bytes of memory an example.

    Args:
        corpus: read by :meth:`stream` or :meth:`run`.
    """

    def __init__(self, corpus: Corpus[ExampleT]) -> None:
        self.corpus, self.count = corpus, 0
        self.error: RegardError | None = None
        """Why the pass broke off, if it did."""
        self._content: _Sum | _Contents = hashlib.sha256()
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
                    for note, (invalid, numbers) in zip(corpus.notes, noted, strict=True):
                        note.add(invalid, numbers, block.first + block.count)
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
        self._content.update(f"{first}\n{second}\n".encode())
        self._hashes.append(text_hash(first))
        self._hashes.append(self.hash_second(example, second))
        self.count += 1
        self.look(example, first, second)

    def add_content(self, content: str, texts: Sequence[str]) -> None:
        """Record the content of examples: each side a line; and the sides in turns."""
        self._content.update(content.encode())
        self._hashes.extend(map(text_hash, texts))

    def blank(self, first: int) -> Self:
        """The same scan with nothing read, to begin with example ``first``; only good for :meth:`pack`."""
        found = type(self)(self.corpus)
        found.count, found._content = first, _Contents()
        return found

    def pack(self) -> bytes:
        """What a blank scan has found, for :meth:`merge`."""
        assert isinstance(self._content, _Contents)
        return join_parts(self.count.to_bytes(8, "little"), b"".join(self._content.parts), self._hashes.tobytes())

    def merge(self, packed: bytes) -> None:
        """Add what a blank scan has found in the next examples."""
        count, content, hashes = split_parts(packed)
        self.count = int.from_bytes(count, "little")
        self._content.update(content)
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
        assert not isinstance(self._content, _Contents)
        return self._content.hexdigest()


class _Sum(Protocol):
    """A sha256."""

    def update(self, content: bytes, /) -> None:
        """Add the next bytes."""

    def hexdigest(self) -> str:
        """The sum of all of them."""
        ...


class _Contents:
    """The content that a sum is to be made of: another process makes it."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def update(self, content: bytes) -> None:
        """Add the next bytes."""
        self.parts.append(content)


class _BlockScan(MapReduce[LineBlock, tuple[bytes, Noted]]):
    """Scans blocks of lines, each by a blank scan."""

    def __init__(self, scan: Scan[Any]) -> None:
        self._scan = scan

    def do(self, item: LineBlock) -> tuple[bytes, Noted]:
        pairs, noted = item.read_alone()
        found = self._scan.blank(item.first)
        found.add_all(pairs)
        return found.pack(), noted

    def pack_item(self, item: LineBlock) -> bytes:
        return item.pack()

    def unpack_item(self, content: bytes) -> LineBlock:
        return LineBlock.unpack(content)

    def pack_found(self, found: tuple[bytes, Noted]) -> bytes:
        return join_parts(found[0], json.dumps(found[1]).encode())

    def unpack_found(self, content: bytes) -> tuple[bytes, Noted]:
        found, noted = split_parts(content)
        return found, json.loads(noted)


ScanT_co = TypeVar("ScanT_co", bound=Scan[Any], covariant=True)


@dataclass(frozen=True)
class DataScan(Generic[ScanT_co]):
    """The scanned data of a run.

    Args:
        learned: the scans of the training corpora.
        validation: of the corpus to validate on, if it is not split off.
    """

    learned: Sequence[ScanT_co]
    validation: ScanT_co | None = None

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
    def every(self) -> list[ScanT_co]:
        """All scans, that of the validation data last."""
        return [*self.learned, *([self.validation] if self.validation else [])]

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
        return DataScan([self.validation]).fingerprint if self.validation else None
