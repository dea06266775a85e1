"""Parallel text: two files line by line, a TSV table or JSONL; plain or gz, xz, zst; streamed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol

from regard.system.errors import RegardError, UsageError
from regard.text.languages import COMPRESSED
from regard.text.lines import InvalidLines, lines
from regard.text.tokenizers.byte_pieces import replace_surrogates

Pair = tuple[str, str]
_BREAKS = re.compile("[\r\n]+")


class Corpus(Protocol):
    """Sentence pairs that can be streamed as often as needed."""

    @property
    def name(self) -> str:
        """Name for messages."""
        ...

    @property
    def notes(self) -> tuple[InvalidLines, ...]:
        """Lines with invalid UTF-8 in the latest pass, by file."""
        ...

    def pairs(self) -> Iterator[Pair]:
        """Every pair in order, empty ones too."""
        ...

    def where(self, number: int, side: int = 0) -> str:
        """``file:line`` of the source (0) or target (1) of a pair, counted from 0."""
        ...


@dataclass
class TwoFiles:
    """Line *i* of one file translates line *i* of the other."""

    source: Path
    target: Path
    notes: tuple[InvalidLines, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        return f"{self.source} and {self.target}"

    def where(self, number: int, side: int = 0) -> str:
        return f"{(self.source, self.target)[side]}:{number + 1}"

    def pairs(self) -> Iterator[Pair]:
        """Every pair in order.

        Raises:
            RegardError: one file has more lines than the other; both counts are named.
        """
        self.notes = (InvalidLines(), InvalidLines())
        left, right = lines(self.source, self.notes[0]), lines(self.target, self.notes[1])
        for number, (source, target) in enumerate(zip_longest(left, right)):
            if source is None or target is None:
                missing, rest = (0, right) if source is None else (1, left)
                counts = [number, number]
                counts[1 - missing] += 1 + sum(1 for _ in rest)
                message = f"has {counts[0]} lines, but {self.target} has {counts[1]}; line i must translate line i"
                raise RegardError(message, str(self.source))
            yield source, target


@dataclass
class Table:
    """A TSV file: a pair a row, its sides in two columns, counted from 1 as ``cut -f`` does."""

    path: Path
    columns: tuple[int, int] = (1, 2)
    notes: tuple[InvalidLines, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        return str(self.path)

    def where(self, number: int, side: int = 0) -> str:
        return f"{self.path}:{number + 1}"

    def pairs(self) -> Iterator[Pair]:
        """Every pair in order.

        Raises:
            RegardError: a row has too few columns.
        """
        self.notes = (InvalidLines(),)
        left, right = self.columns
        if min(self.columns) < 1:
            raise UsageError(f"columns count from 1, not {min(self.columns)}", self.name)
        for number, line in enumerate(lines(self.path, self.notes[0])):
            cells = line.split("\t")
            if len(cells) < max(left, right):
                message = (
                    f"has {len(cells)} columns, but column {max(left, right)} is asked for; are tabs between them?"
                )
                raise RegardError(message, self.where(number))
            yield cells[left - 1], cells[right - 1]


@dataclass
class JsonLines:
    """A JSONL file: an object a line, its sides under two keys. Line breaks inside a sentence become spaces."""

    path: Path
    keys: tuple[str, str] = ("source", "target")
    notes: tuple[InvalidLines, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        return str(self.path)

    def where(self, number: int, side: int = 0) -> str:
        return f"{self.path}:{number + 1}"

    def pairs(self) -> Iterator[Pair]:
        """Every pair in order.

        Raises:
            RegardError: a line is no JSON object, or lacks a key.
        """
        self.notes = (InvalidLines(),)
        for number, line in enumerate(lines(self.path, self.notes[0])):
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise RegardError(f"is not JSON: {error}", self.where(number)) from None
            yield self._text(entry, 0, number), self._text(entry, 1, number)

    def _text(self, entry: Any, side: int, number: int) -> str:
        key = self.keys[side]
        if not isinstance(entry, dict):
            raise RegardError("is JSON, but no object with keys", self.where(number))
        if key not in entry:
            there = ", ".join(repr(name[:30]) for name in list(entry)[:5]) or "none"
            raise RegardError(f"has no key {key!r}; its keys are {there}: name two by --columns", self.where(number))
        if not isinstance(entry[key], str):
            raise RegardError(f"{key!r} is not a text", self.where(number))
        return _BREAKS.sub(" ", replace_surrogates(entry[key]))


def open_pairs(
    source: Path | str,
    target: Path | str | None = None,
    columns: tuple[int, int] = (1, 2),
    keys: tuple[str, str] = ("source", "target"),
) -> Corpus:
    """The corpus that options name: two files, or one ``.tsv`` or ``.jsonl`` (plain or compressed).

    Raises:
        UsageError: one file of another kind.
    """
    source = Path(source)
    if target is not None:
        return TwoFiles(source, Path(target))
    name = source.name.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    if name.endswith((".tsv", ".tab")):
        return Table(source, columns)
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return JsonLines(source, keys)
    raise UsageError("one file alone must be .tsv or .jsonl; else name the target file too", str(source))
