"""One pass over a corpus: its size, a fingerprint of its content, and hashes by which equal examples are found."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.data.corpora.corpus import Corpus, ExampleT, Progress, no_progress, text_hash
from regard.system.errors import RegardError

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
        self._content = hashlib.sha256()
        self._hashes = array("Q")

    def run(self, progress: Progress = no_progress) -> Self:
        """Read every example; an error is kept in :attr:`error`."""
        for _ in self.stream(progress):
            pass
        return self

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

    def add(self, example: ExampleT) -> None:
        """Record the next example."""
        first, second = example.sides()
        self._content.update(f"{first}\n{second}\n".encode())
        self._hashes.append(text_hash(first))
        self._hashes.append(self.hash_second(example, second))
        self.count += 1
        self.look(example, first, second)

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
        return self._content.hexdigest()


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
