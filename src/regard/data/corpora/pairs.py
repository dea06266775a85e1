"""Parallel text: two files line by line, a TSV table or JSONL; plain or gz, xz, zst; streamed; seeded subsets."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from regard.data.corpora.corpus import Corpus, Records, TextPair, count_columns, plain_name
from regard.system.errors import RegardError, UsageError
from regard.text.counts import counted
from regard.text.lines import InvalidLines, lines, row_lines

MISALIGNED = "line i must translate line i"
"""How the message of files with other numbers of lines ends."""


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

    def examples(self) -> Iterator[TextPair]:
        """Every pair in order.

        Raises:
            RegardError: one file has more lines than the other; both counts are named.
        """
        self.notes = (InvalidLines(self.source), InvalidLines(self.target))
        left, right = lines(self.source, self.notes[0]), lines(self.target, self.notes[1])
        for number, (source, target) in enumerate(zip_longest(left, right)):
            if source is None or target is None:
                missing, rest = (0, right) if source is None else (1, left)
                counts = [number, number]
                counts[1 - missing] += 1 + sum(1 for _ in rest)
                message = f"has {counted(counts[0], 'line')}, but {self.target} has {counts[1]}; {MISALIGNED}"
                raise RegardError(message, str(self.source))
            yield TextPair(source, target)


@dataclass
class PairTable(Records[TextPair]):
    """A TSV file: a pair a row, its sides in two columns, counted from 1 as ``cut -f`` does."""

    columns: tuple[int, int] = (1, 2)

    def records(self, notes: InvalidLines) -> Iterator[tuple[int, TextPair]]:
        """Every row.

        Raises:
            RegardError: a row has too few columns.
        """
        left, right = self.columns
        if min(self.columns) < 1:
            raise UsageError(f"columns count from 1, not {min(self.columns)}", self.name)
        for number, line in enumerate(row_lines(self.path, notes), 1):
            cells = line.split("\t")
            if len(cells) < max(left, right):
                missing = f"has {count_columns(len(cells))}, but column {max(left, right)} is asked for"
                raise RegardError(f"{missing}; are tabs between them?", self.at(number))
            yield number, TextPair(cells[left - 1], cells[right - 1])


@dataclass
class PairJsonLines(Records[TextPair]):
    """A JSONL file: an object a line, its sides under two keys. Line breaks inside a sentence become spaces."""

    keys: tuple[str, str] = ("source", "target")

    def records(self, notes: InvalidLines) -> Iterator[tuple[int, TextPair]]:
        """Every object's two texts.

        Raises:
            RegardError: a line is no JSON object, or lacks a key.
        """
        for number, entry in self.json_objects(notes):
            yield number, TextPair(*(self.json_text(entry, key, number) for key in self.keys))


def open_pairs(
    source: Path | str,
    target: Path | str | None = None,
    columns: tuple[int, int] = (1, 2),
    keys: tuple[str, str] = ("source", "target"),
) -> Corpus[TextPair]:
    """The corpus that options name: two files, or one ``.tsv`` or ``.jsonl`` (plain or compressed).

    Raises:
        UsageError: one file of another kind.
    """
    source = Path(source)
    if target is not None:
        return TwoFiles(source, Path(target))
    name = plain_name(source)
    if name.endswith((".tsv", ".tab")):
        return PairTable(source, columns)
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return PairJsonLines(source, keys)
    raise UsageError("one file alone must be .tsv or .jsonl; else name the target file too", str(source))


class Subset:
    """The pairs of a corpus whose number between 0 and 1, drawn by seed from their text, is below ``share``.

    So the pairs of a smaller share are among those of a larger one, equal pairs stay together, and the order of the
    lines does not matter. Streamed; of each pair that is kept its place is remembered (8 bytes).

    Args:
        corpus: all pairs.
        share: above 0, at most 1: the fraction kept, about.
        seed: another one keeps others.

    Raises:
        UsageError: it is no share.
    """

    def __init__(self, corpus: Corpus[TextPair], share: float, seed: int) -> None:
        if not 0 < share <= 1:
            raise UsageError(f"{share:g} is no share of the data; give more than 0, at most 1", "--fraction")
        self.corpus, self.share, self.seed = corpus, share, seed
        self._places = array("q")

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"{self.share:g} of {self.corpus.name}"

    @property
    def notes(self) -> tuple[InvalidLines, ...]:
        """Lines with invalid UTF-8 in the latest pass, by file; of the whole corpus."""
        return self.corpus.notes

    def examples(self) -> Iterator[TextPair]:
        """The kept pairs, in order."""
        kept = 0
        for place, pair in enumerate(self.corpus.examples()):
            if uniform_hash(pair, self.seed) < self.share:
                if kept == len(self._places):  # a later pass finds the same again
                    self._places.append(place)
                kept += 1
                yield pair

    def where(self, number: int, side: int = 0) -> str:
        """``file:line`` of a pair that a pass has come by, counted among the kept from 0."""
        return self.corpus.where(self._places[number], side)


def uniform_hash(pair: TextPair, seed: int) -> float:
    """A number from 0 to below 1, a pure function of a pair's text and a seed."""
    text = f"{seed}\n{pair[0]}\n{pair[1]}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") / 2**64
