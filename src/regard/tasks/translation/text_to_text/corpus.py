"""Prefixed pairs of texts (CSV, TSV, JSONL, plain or gz, xz, zst; streamed), and running text as pairs: their ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regard.config import Recipe
from regard.data.batches.language_modelling import SpanWindows, Windows
from regard.data.checks.findings import excerpt
from regard.data.corpora.corpus import Corpus, Records, TextPair, find_column, one_line
from regard.data.corpora.labelled import LabelledRows, open_columns
from regard.data.prepare.encoders import Encoded, Ids, RefusedExample, TextEncoder
from regard.data.prepare.folder import PreparedExamples
from regard.data.prepare.shards import Side
from regard.system.errors import Option, RegardError
from regard.tasks.assets import AnswerAssets
from regard.tasks.text.task import decode_with_symbols, sentinel_gaps
from regard.text.lines import InvalidLines, lines
from regard.text.tokenizers.vocabulary import AnyTokenizer, start_of

PREFIXES = ("prefix", "task", "instruction")
SOURCES = ("source", "input", "inputs", "text", "question", "document", "article")
TARGETS = ("target", "output", "outputs", "answer", "summary", "label", "translation")
"""Column names that are recognised, the likeliest first."""
COLUMNS = ("prefix", "source", "target")
MOST = 1_000
"""Different prefixes that are names of tasks; more are instructions, of which new ones are expected."""
NAMED = 10
"""Prefixes named in a sentence, at most."""


def with_prefix(source: str, prefix: str = "") -> str:
    """What the encoder reads [Raffel20 §2.4]: ``prefix: source``, or the source alone."""
    return f"{prefix}: {source}" if prefix else source


def task_prefixes(prefixes: Iterable[str]) -> tuple[str, ...]:
    """Each prefix once, in order; none where they name no tasks: all are empty, or there are over :data:`MOST`."""
    found = tuple(dict.fromkeys(prefixes))
    return found if any(found) and len(found) <= MOST else ()


def prefix_list(prefixes: Iterable[str]) -> str:
    """The first :data:`NAMED` of them for a sentence."""
    found = [excerpt(prefix) or "(no prefix)" for prefix in islice(prefixes, NAMED + 1)]
    return ", ".join(found[:NAMED]) + (", …" if len(found) > NAMED else "")


class PrefixedPair(NamedTuple):
    """A text to read, the text to write, and the prefix that names the task, or none."""

    prefix: str
    source: str
    target: str

    @property
    def is_empty(self) -> bool:
        """Whether a text is missing."""
        return not (self.source.strip() and self.target.strip())

    def sides(self) -> tuple[str, str]:
        """Prefix and source with a tab between, and the target."""
        return ("" if self.is_empty else f"{self.prefix}\t{self.source}"), self.target


def _pair(prefix: str, source: str, target: str) -> PrefixedPair:
    return PrefixedPair(" ".join(prefix.split()), one_line(source), one_line(target))


@dataclass
class PrefixedRows(Records[PrefixedPair]):
    """A table with a source, a target and maybe a prefix in its columns.

    Where the first row names them (:data:`PREFIXES`, :data:`SOURCES`, :data:`TARGETS`, in any case), it is a header;
    else no row is one, and the last two columns of two or three are source and target.

    Args:
        table: the rows.
        columns: names of source and target, or of all three, or their numbers from 1.
    """

    table: LabelledRows
    columns: tuple[str, ...] | None = None

    def records(self, notes: InvalidLines) -> Iterator[tuple[int, PrefixedPair]]:
        """Every pair; empty rows are passed over.

        Raises:
            RegardError: a row has another number of columns than the first, or a column is not there.
        """
        for line, cells, chosen in self.table.choose(notes, self._choose_columns):
            yield line, _pair(*("" if place is None else cells[place] for place in chosen))

    def _choose_columns(self, cells: Sequence[str], line: int) -> tuple[list[int | None], bool]:
        """Prefix, source and target from 0, and whether these cells of the first row are a header."""
        names = [cell.strip().casefold() for cell in cells]
        known: list[int | None] = [
            next((names.index(name) for name in group if name in names), None) for group in (PREFIXES, SOURCES, TARGETS)
        ]
        header = known[1] is not None and known[2] is not None
        if self.columns is None and header:
            return known, True
        if self.columns is None and len(cells) not in (2, 3):
            message = f"has {len(cells)} columns; two are source and target, three prefix, source and target"
            raise RegardError(f"{message}; {self.table.hint} Else name them by {Option('columns')}", self.at(line))
        wanted = self.columns or tuple(map(str, range(1, len(cells) + 1)))
        found = [find_column(one, names, self.at(line), f"; {self.table.hint}") for one in wanted]
        places: list[int | None] = [*([None] if len(found) == 2 else []), *found]
        return places, not all(map(str.isdecimal, wanted)) or (header and places[1:] == known[1:])


@dataclass
class PrefixedJsonLines(Records[PrefixedPair]):
    """JSONL: an object a line, with a source, a target and maybe a prefix.

    Args:
        keys: of source and target, or of all three; default: the first of :data:`PREFIXES`, :data:`SOURCES` and
            :data:`TARGETS`.
    """

    keys: tuple[str, ...] | None = None

    def records(self, notes: InvalidLines) -> Iterator[tuple[int, PrefixedPair]]:
        """Every object's texts.

        Raises:
            RegardError: a line is no JSON object, lacks a key, or its values are no texts.
        """
        keys = self.keys
        for number, entry in self.json_objects(notes):
            keys = keys or self._find(entry, number)
            texts = [self.json_text(entry, key, number) for key in keys]
            yield number, _pair(*(texts if len(texts) == 3 else ["", *texts]))

    def _find(self, entry: Mapping[str, Any], line: int) -> tuple[str, ...]:
        prefix = next((name for name in PREFIXES if name in entry), None)
        pair = self.find_keys(entry, {"source": SOURCES, "target": TARGETS}, line)
        return pair if prefix is None else (prefix, *pair)


def open_prefixed(path: Path | str, columns: str | None = None) -> Corpus[PrefixedPair]:
    """The prefixed pairs of a file; its name's ending tells the form: ``.csv``, ``.tsv``, ``.jsonl``.

    Args:
        path: the file, plain or compressed.
        columns: the columns or keys of source and target, or of prefix, source and target, e.g. ``"question,answer"``
            or ``"1,2,3"``.

    Raises:
        UsageError: neither the ending nor ``columns`` tells the form.
    """
    wanted = f"source and target, or {', '.join(COLUMNS)}: such as 1,2 or task,input,output"
    hint = f"where tabs are between columns, say {Option('columns', '1,2')}"
    return open_columns(path, columns, (2, 3), wanted, hint, PrefixedRows, PrefixedJsonLines)


class PrefixedEncoder(TextEncoder[PrefixedPair]):
    """Encodes what is read, ``prefix: source``, and what is written, each with its end; a longer one is left out.

    Args:
        tokenizer: text to pieces.
        max_tokens: of a side, with its end.
        prefixes: those that are learned, for the index; the data determine them, so the fingerprint is without them.
    """

    example = PrefixedPair
    tokenizer: AnyTokenizer
    keeps_validation = True
    windowed = False

    def __init__(self, tokenizer: AnyTokenizer, max_tokens: int, prefixes: tuple[str, ...] = ()) -> None:
        super().__init__(tokenizer, {"prefixed": True}, tokenizer.size)
        self.max_tokens, self.prefixes = max_tokens, prefixes
        self.piece_sizes = self.sizes("train")
        self.gaps = sentinel_gaps(tokenizer)
        self.nothing = f"all pairs are empty or over {max_tokens} tokens"

    def fields(self, counts: Sequence[int]) -> dict[str, Any]:
        return {"own": {**self.own, "prefixes": list(self.prefixes)}}

    def encode(self, examples: Sequence[PrefixedPair], part: str) -> list[Encoded]:
        texts = [text for one in examples for text in (with_prefix(one.source, one.prefix), one.target)]
        pieces = iter(self.gaps.ids_batch(texts))
        return [self._window(example, next(pieces), next(pieces)) for example in examples]

    def read_texts(self, example: PrefixedPair) -> Sequence[str]:
        return (with_prefix(example.source, example.prefix),)

    def _window(self, example: PrefixedPair, source: Ids, target: Ids) -> Encoded:
        if example.is_empty:
            return RefusedExample("empty", int(bool(example.source.strip())))
        if (longest := max(len(source), len(target))) >= self.max_tokens:
            return RefusedExample("too long", int(len(target) == longest > len(source)))
        end = self.tokenizer.end
        return [(np.append(source, end), np.append(target, end))]


class PreparedPrefixed(PreparedExamples):
    """Prepared prefixed pairs: both sides as a translator has them."""

    source: Side
    target: Side
    validation_source: Side
    validation_target: Side

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.source, self.target = self.text, self.labels
        self.validation_source, self.validation_target = self.validation_text, self.validation_labels
        self.pairs = self.count
        self.sizes: tuple[int, ...] = (self.count,)
        self.tokenizer = AnswerAssets.load(folder).tokenizer
        self.start = start_of(self.tokenizer)
        self.prefixes: tuple[str, ...] = tuple(self.own.get("prefixes", ()))

    def validation_examples(self) -> list[PrefixedPair]:
        """The validation examples as texts, in the order of their ids."""
        source, target = (lines(self.folder / f"validation.{side}.txt") for side in PrefixedEncoder.sides)
        cells = (line.partition("\t") for line in source)
        return [PrefixedPair(prefix, text, said) for (prefix, _, text), said in zip(cells, target, strict=True)]

    def validation_pairs(self) -> list[TextPair]:
        """The same as what is read and what is to be written."""
        found = self.validation_examples()
        return [TextPair(with_prefix(one.source, one.prefix), one.target) for one in found]


class PreparedSpans(PreparedPrefixed):
    """Prepared running text, its windows as pairs; of the validation text ``data.validation`` windows at most."""

    def __init__(self, folder: Path, recipe: Recipe) -> None:
        super().__init__(folder)
        tokenizer, length = self.tokenizer, max(1, recipe.data.max_tokens - 2)  # both sides then fit into max_tokens

        def sides(windows: Windows, most: int | None = None) -> list[SpanWindows]:
            given = tokenizer, recipe.text_to_text, recipe.seed, most
            return [SpanWindows(windows, target, *given) for target in (False, True)]

        self.source, self.target = sides(Windows(self.text, length, recipe.seed))
        held = Windows(self.validation_text, length, None)
        self.validation_source, self.validation_target = sides(held, recipe.data.validation)
        self.pairs = self.source.count
        self.sizes = (self.pairs,)
        self.start = tokenizer.start

    def validation_examples(self) -> list[PrefixedPair]:
        """The validation windows as texts."""

        def texts(side: Side) -> list[str]:
            ids, lengths_B = side.gather(0, np.arange(side.count))
            sentinels, rows = frozenset(self.tokenizer.sentinels), np.split(ids, lengths_B.cumsum()[:-1])
            return [one_line(decode_with_symbols(self.tokenizer, row.tolist(), sentinels)) for row in rows]

        both = zip(texts(self.validation_source), texts(self.validation_target), strict=True)
        return [PrefixedPair("", source, target) for source, target in both]
