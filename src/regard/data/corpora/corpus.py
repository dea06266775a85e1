"""The corpus protocol, the examples that corpora yield, and the base of corpora read from one file record by record."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

from regard.system.errors import Option, RegardError, UsageError
from regard.text.counts import counted
from regard.text.lines import MAGIC, InvalidLines, lines, replace_surrogates

Progress = Callable[[str, int], None]
"""Called now and then with what is being done and how many examples of it are."""

_BREAKS = re.compile("[\r\n]+")


def no_progress(stage: str, examples: int) -> None:
    """Progress callback that does nothing."""


class Example(Protocol):
    """What a corpus yields."""

    def sides(self) -> tuple[str, str]:
        """Its two sides as text; fingerprints, hashes and excerpts are taken of these."""


class TextPair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str

    def sides(self) -> tuple[str, str]:
        """Itself."""
        return self


class LabelledText(NamedTuple):
    """A text and its label as written: of several labels all, of a regression the number."""

    text: str
    label: str

    @property
    def is_empty(self) -> bool:
        """Whether there is no text."""
        return not self.text.strip()

    @property
    def texts(self) -> tuple[str, ...]:
        """The text alone."""
        return (self.text,)

    def sides(self) -> tuple[str, str]:
        """Itself."""
        return self


ExampleT = TypeVar("ExampleT", bound=Example)
ExampleT_co = TypeVar("ExampleT_co", bound=Example, covariant=True)


class Corpus(Protocol[ExampleT_co]):
    """Examples that can be streamed as often as needed."""

    @property
    def name(self) -> str:
        """Name for messages."""

    @property
    def notes(self) -> tuple[InvalidLines, ...]:
        """Lines with invalid UTF-8 in the latest pass, by file."""

    def examples(self) -> Iterator[ExampleT_co]:
        """Every example in order, empty ones too."""

    def where(self, number: int, side: int = 0) -> str:
        """``file:line`` of an example, counted from 0; of a pair in two files that of its source (0) or target (1)."""


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
class Records(ABC, Generic[ExampleT]):
    """One file as a :class:`Corpus`, streamed as often as needed."""

    path: Path
    notes: tuple[InvalidLines, ...] = field(default=(), compare=False, kw_only=True)
    left_out: int = field(default=0, compare=False, kw_only=True)
    """Records that the latest pass passed over: they are no example."""
    _places: RecordOffsets = field(default_factory=RecordOffsets, compare=False, repr=False, kw_only=True)

    @property
    def name(self) -> str:
        return str(self.path)

    def where(self, number: int, side: int = 0) -> str:
        """``file:line`` of the line a record begins in; a record not yet read is searched for."""
        if number >= self._places.seen:
            for place, (line, _) in zip(range(number + 1), self.records(InvalidLines()), strict=False):
                self._places.note(place, line)
        return f"{self.path}:{self._places.line(number)}" if number < self._places.seen else f"{self.path}:0"

    def examples(self) -> Iterator[ExampleT]:
        """Every record in order.

        Raises:
            RegardError: a record cannot be read; with its line.
        """
        notes = InvalidLines(self.path)
        self.notes = (notes,)
        for number, (line, example) in enumerate(self.records(notes)):
            self._places.note(number, line)
            yield example

    @abstractmethod
    def records(self, notes: InvalidLines) -> Iterator[tuple[int, ExampleT]]:
        """Every record with the line it begins in, from 1."""

    def at(self, line: int) -> str:
        """``file:line``, for messages."""
        return f"{self.path}:{line}"

    def json_objects(self, notes: InvalidLines) -> Iterator[tuple[int, dict[str, object]]]:
        """The JSON object of each line of a JSONL file, with its line; empty lines are passed over.

        Raises:
            RegardError: a line is no JSON, or no object.
        """
        for number, line in enumerate(lines(self.path, notes), 1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
            except json.JSONDecodeError as error:
                if number == 1 and line.lstrip().startswith("["):
                    raise RegardError("is one JSON array; an object a line is needed (JSONL)", self.at(1)) from None
                raise RegardError(f"is not JSON: {error.msg} at character {error.pos + 1}", self.at(number)) from None
            except ValueError:
                raise RegardError("holds a number with too many digits", self.at(number)) from None
            except RecursionError:
                raise RegardError("is nested too deeply", self.at(number)) from None
            if not isinstance(entry, dict):
                raise RegardError("is JSON, but no object with keys", self.at(number))
            yield number, entry

    def json_value(self, entry: Mapping[str, object], key: str, line: int) -> object:
        """The value under a key.

        Raises:
            RegardError: there is no such key; names those there are.
        """
        if key not in entry:
            raise RegardError(f"has no key {key!r}; {_quote_keys(entry)}", self.at(line))
        return entry[key]

    def json_text(self, entry: Mapping[str, object], key: str, line: int) -> str:
        """The text under a key, line breaks in it as blanks.

        Raises:
            RegardError: there is none.
        """
        value = self.json_value(entry, key, line)
        if not isinstance(value, str):
            raise RegardError(f"{key!r} is not a text", self.at(line))
        return one_line(replace_surrogates(value))

    def find_keys(self, entry: Mapping[str, object], known: Mapping[str, Sequence[str]], line: int) -> tuple[str, ...]:
        """For each kind of value the first of its known keys that an object has, in any case.

        Raises:
            RegardError: a kind has none.
        """
        names = {name.casefold(): name for name in entry}
        found = {kind: next((names[name] for name in keys if name in names), None) for kind, keys in known.items()}
        if missing := [kind for kind, key in found.items() if key is None]:
            raise RegardError(f"no key says {missing[0]!r}; {_quote_keys(entry)}", self.at(line))
        return tuple(key for key in found.values() if key is not None)


def _quote_keys(entry: Mapping[str, object]) -> str:
    there = ", ".join(repr(name[:30]) for name in list(entry)[:5]) or "none"
    return f"its keys are {there}: name two by {Option('columns')}"


def find_column(wanted: str, names: Sequence[str], where: str, hint: str = "") -> int:
    """The column, from 0, that a number from 1 or a name of the first line stands for.

    Raises:
        UsageError: a number below 1.
        RegardError: there is no such column.
    """
    if not wanted.isdecimal():
        if wanted.casefold() not in names:
            there = ", ".join(repr(name[:30]) for name in names[:8])
            raise RegardError(f"the first line names no column {wanted!r}; it has {there}", where)
        return names.index(wanted.casefold())
    number = int(wanted[:12])
    if number < 1:
        raise UsageError(f"columns count from 1, not {wanted}", Option("columns"))
    if number > len(names):
        raise RegardError(f"has {counted(len(names), 'column')}, but column {wanted[:12]} is needed{hint}", where)
    return number - 1


def one_line(text: str) -> str:
    """The text with its line breaks as blanks."""
    return _BREAKS.sub(" ", text) if "\n" in text or "\r" in text else text


def plain_name(path: Path) -> str:
    """A file's name in small letters, without the ending of its compression."""
    name = path.name.lower()
    for ending in MAGIC:
        name = name.removesuffix(ending)
    return name


def text_hash(text: str) -> int:
    """A hash of a text, ignoring case and surrounding white space; in another process another one."""
    return hash(text.strip().casefold()) & 0xFFFFFFFFFFFFFFFF


EMPTY_HASH = text_hash("")
