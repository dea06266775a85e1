"""Base of corpora read from one file record by record, with the line of each record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from regard.data.corpora.pairs import Pair
from regard.text.languages import COMPRESSED
from regard.text.lines import InvalidLines

Record = tuple[int, Pair]
"""The line (from 1) that a record begins in, and its two texts."""


class RecordOffsets:
    """The line of every record, kept only where records and lines stop going together (16 bytes each time)."""

    def __init__(self) -> None:
        self.seen = 0
        self._numbers = array("q")
        self._ahead = array("q")

    def note(self, number: int, line: int) -> None:
        """Remember the line of a record; noted again, or out of order, nothing happens."""
        if number != self.seen:
            return
        self.seen += 1
        if not self._ahead or self._ahead[-1] != line - number:
            self._numbers.append(number)
            self._ahead.append(line - number)

    def line(self, number: int) -> int:
        """The line of a record that was noted."""
        return number + self._ahead[bisect_right(self._numbers, number) - 1]


@dataclass
class Records(ABC):
    """One file as a corpus (:class:`~regard.data.corpora.pairs.Corpus`), streamed as often as needed."""

    path: Path
    notes: tuple[InvalidLines, ...] = field(default=(), compare=False, kw_only=True)
    _places: RecordOffsets = field(default_factory=RecordOffsets, compare=False, repr=False, kw_only=True)

    @property
    def name(self) -> str:
        return str(self.path)

    def where(self, number: int, side: int = 0) -> str:
        """``file:line`` of the line a record begins in; a record not yet read is searched for."""
        if number >= self._places.seen:
            for _ in zip(range(number + 1), self._read(InvalidLines()), strict=False):
                pass
        return f"{self.path}:{self._places.line(number)}" if number < self._places.seen else f"{self.path}:0"

    def pairs(self) -> Iterator[Pair]:
        """Every record in order.

        Raises:
            RegardError: a record cannot be read; with its line.
        """
        self.notes = (InvalidLines(),)
        return self._read(self.notes[0])

    def _read(self, notes: InvalidLines) -> Iterator[Pair]:
        for number, (line, pair) in enumerate(self.records(notes)):
            self._places.note(number, line)
            yield pair

    @abstractmethod
    def records(self, notes: InvalidLines) -> Iterator[Record]:
        """Every record with its line."""

    def at(self, line: int) -> str:
        """``file:line``, for messages."""
        return f"{self.path}:{line}"


def plain_name(path: Path) -> str:
    """A file's name in small letters, without the ending of its compression."""
    name = path.name.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    return name
