"""Parallel text: two files line by line, or one with both sides; plain or gz, xz, zst; streamed; seeded subsets."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from regard.data.corpora.corpus import Corpus, Records, TextPair, plain_name
from regard.data.corpora.scan import LineBlock, add_notes
from regard.system.errors import Option, RegardError, UsageError
from regard.text.counts import counted
from regard.text.language_tokens import Direction
from regard.text.languages import CODES, UNKNOWN, language_of, primary
from regard.text.lines import InvalidLines, line_pieces, row_lines, without_mark

MISALIGNED = "line i must translate line i"
"""How the message of files with other numbers of lines ends."""
MOST = 3
"""Columns of a table of which the first two are taken without a choice."""
BLOCK = 1 << 18
"""Bytes of a file that are taken at once, about."""
_LINE_FEED = ord("\n")


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
        for block in self.line_blocks():
            pairs, noted = block.read()
            add_notes(self.notes, noted, block)
            yield from pairs

    def line_blocks(self) -> Iterator[LineBlock]:
        """Every pair in order, undecoded, some thousand at a time; who reads them adds to :attr:`notes`.

        Raises:
            RegardError: as :meth:`examples`.
        """
        self.notes = (InvalidLines(self.source), InvalidLines(self.target))
        sides = source, target = _Lines(self.source), _Lines(self.target)
        number = 0
        while True:
            for side in sides:
                side.fill()
            if not (count := min(source.count, target.count)):
                break
            yield LineBlock(number, count, source.take(count), target.take(count))
            number += count
        for side in sides:
            if side.error and not side.count:
                raise side.error
        if longer := next((side for side in sides if side.count), None):
            total = number + longer.count_all()
            counts = (total, number) if longer is source else (number, total)
            message = f"has {counted(counts[0], 'line')}, but {self.target} has {counts[1]}; {MISALIGNED}"
            raise RegardError(message, str(self.source))


class _Lines:
    """A file's whole lines that are not taken yet, as bytes; an error of reading waits until those before it are."""

    def __init__(self, path: Path) -> None:
        self._pieces = without_mark(line_pieces(path))
        self._held = b""
        self.count = 0
        self.error: RegardError | None = None

    def fill(self) -> None:
        """Hold :data:`BLOCK` bytes or more, or all there are."""
        found = [self._held]
        size = len(self._held)
        while size < BLOCK and (piece := self._next()):
            found.append(piece)
            size += len(piece)
        self._held = b"".join(found)

    def take(self, count: int) -> bytes:
        """The first lines."""
        end = len(self._held)
        if count < self.count:
            end = int(np.flatnonzero(np.frombuffer(self._held, np.uint8) == _LINE_FEED)[count - 1]) + 1
        taken, self._held = self._held[:end], self._held[end:]
        self.count -= count
        return taken

    def count_all(self) -> int:
        """How many lines there are from here to the end of the file."""
        while self._next():
            pass
        if self.error:
            raise self.error
        return self.count

    def _next(self) -> bytes:
        try:
            piece = next(self._pieces, b"")
        except RegardError as error:
            self.error, piece = error, b""
        self.count += piece.count(b"\n") + (not piece.endswith(b"\n") if piece else 0)
        return piece


@dataclass
class PairTable(Records[TextPair]):
    """A TSV file: a pair a row, its sides in two columns, counted from 1 as ``cut -f`` does.

    Without a choice these are the first two, of three at most: the third may say where a pair is from.
    """

    columns: tuple[int, int] | None = None

    def records(self, notes: InvalidLines) -> Iterator[tuple[int, TextPair]]:
        """Every row.

        Raises:
            RegardError: a row has too few columns.
            UsageError: nobody has chosen two of more than three columns.
        """
        left, right = self.columns or (1, 2)
        if min(left, right) < 1:
            raise UsageError(f"columns count from 1, not {min(left, right)}", self.name)
        for number, line in enumerate(row_lines(self.path, notes), 1):
            cells = line.split("\t")
            if number == 1 and self.columns is None and (count := len(cells)) > MOST:
                last = Option("columns", f"{count - 1},{count}")
                raise UsageError(f"has {count} columns; say which hold source and target, such as {last}", self.name)
            if len(cells) < max(left, right):
                missing = f"has {counted(len(cells), 'column')}, but column {max(left, right)} is asked for"
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
    columns: tuple[int, int] | None = None,
    keys: tuple[str, str] | None = None,
) -> Corpus[TextPair]:
    """The corpus that options name: two files, or one ``.tsv``, ``.jsonl`` or memory (plain or compressed).

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
        return PairJsonLines(source, keys or PairJsonLines.keys)
    from regard.data.corpora.memories import MEMORIES

    if kind := MEMORIES.get(Path(name).suffix):
        return kind(source, keys)
    raise UsageError(
        f"one file alone must be .tsv, .jsonl, {', '.join(MEMORIES)}; else name the target file too", str(source)
    )


Files = Sequence[Path | str]


def open_corpora(source: Files, target: Files, pairs: Files = (), columns: str | None = None) -> list[Corpus[TextPair]]:
    """The corpora that options name: pairs of files, then files that hold both sides.

    Raises:
        UsageError: not as many targets as sources, nothing at all, or columns that are no two.
    """
    if len(source) != len(target):
        message = f"{len(source)} given, but of {Option('target')} {len(target)}; they go in pairs"
        raise UsageError(message, Option("source"))
    if not source and not pairs:
        two = f"{Option('source', 'FILE')} and {Option('target', 'FILE')}"
        raise UsageError(f"nothing to learn from: give {two}, or {Option('pairs', 'FILE')}")
    if columns is not None and not pairs:
        message = f"are those of {Option('pairs', 'FILE')}; the other files hold a sentence a line"
        raise UsageError(message, Option("columns"))
    for path in (*source, *target, *pairs):
        if not Path(path).exists():
            raise UsageError("no such file", str(path))
        if Path(path).is_dir():
            raise UsageError("is a folder; a file is needed", str(path))
    files = [open_pairs(one, other) for one, other in zip(source, target, strict=True)]
    return files + [_table(path, columns) for path in pairs]


def direction_of(corpus: Corpus[TextPair]) -> Direction:
    """The languages of a corpus, as its files, keys or units name them; of units once they were read."""
    if isinstance(corpus, TwoFiles):
        return language_of(corpus.source), language_of(corpus.target)
    from regard.data.corpora.memories import Memory

    named = corpus.found if isinstance(corpus, Memory) else corpus.keys if isinstance(corpus, PairJsonLines) else None
    first, second = (code if code in CODES else UNKNOWN for code in map(primary, named or ("", "")))
    return first, second


def _table(path: Path | str, columns: str | None) -> Corpus[TextPair]:
    if columns is None:
        return open_pairs(path)
    names = [name.strip() for name in columns.split(",")]
    if len(names) != 2 or not all(names):
        wanted = "two columns like 1,2, or two keys or languages like en,de"
        raise UsageError(f"{columns!r} must be {wanted}", Option("columns"))
    numbers = [int(name) for name in names if name.isdecimal() and len(name) < 10 and int(name) > 0]
    columned = (numbers[0], numbers[1]) if len(numbers) == 2 else None
    found = open_pairs(path, columns=columned, keys=(names[0], names[1]))
    if isinstance(found, PairTable) and len(numbers) != 2:
        raise UsageError(f"{columns!r} must be two columns like 1,2, as {path} is a TSV", Option("columns"))
    return found


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
            raise UsageError(f"{share:g} is no share of the data; give more than 0, at most 1", Option("fraction"))
        self.corpus, self.share, self.seed = corpus, share, seed
        self._places = array("q")
        self.name = f"{share:g} of {corpus.name}"

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
