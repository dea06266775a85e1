"""Labelled texts: CSV, TSV, JSONL, or one label and text per line; plain or gz, xz, zst; streamed."""

from __future__ import annotations

import csv
import json
import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, TypeVar

from regard.data.corpora.corpus import Corpus, ExampleT, LabelledText, Records, find_column, one_line, plain_name
from regard.system.errors import Option, RegardError, UsageError
from regard.text.counts import counted
from regard.text.lines import LONE_RETURNS, LONGEST, InvalidLines, refuse_binary, replace_surrogates, row_lines

LARGEST = 3.4028234e38
"""The largest number of single precision, in which numbers are kept."""
Kind = Literal["single", "multi", "regression"]
"""Whether a text has one label, any number of labels, or a number."""
SEPARATOR = "|"
"""Stands between the labels of a text that has several."""

TEXTS = ("text", "sentence", "utterance", "question", "review", "query", "tweet", "comment", "document", "content")
LABELS = ("label", "labels", "class", "classes", "category", "categories", "intent", "target", "sentiment", "score")
"""Column names that are recognised, the likeliest first."""

_PICTURE = re.compile(r"\s*label(:\w+)?\s+text\s*")
Row = tuple[int, list[str]]
Chosen = TypeVar("Chosen")
Choose = Callable[[Sequence[str], int], tuple[Chosen, bool]]
Columns = tuple[str, ...] | None


def split_labels(text: str) -> list[str]:
    """The labels of a text that may have several, each once: ``"a|b"`` → ``["a", "b"]``, ``""`` → ``[]``."""
    return list(dict.fromkeys(label for one in text.split(SEPARATOR) if (label := one.strip())))


def join_labels(labels: Sequence[str]) -> str:
    """Several labels as one string, for :func:`split_labels`.

    Raises:
        ValueError: a label is empty, or holds the sign between labels.
    """
    for label in labels:
        if SEPARATOR in label or not label.strip():
            raise ValueError(f"the label {label!r:.60} is empty or holds {SEPARATOR!r}, the sign between labels")
    return SEPARATOR.join(label.strip() for label in labels)


def parse_number(label: str) -> float | None:
    """The number in a label, with a decimal point; None if it is not a number, or not finite in single precision."""
    try:
        value = float(label)
    except ValueError:
        return None
    return value if abs(value) <= LARGEST and "_" not in label else None


@dataclass
class LabelledRows(Records[LabelledText]):
    """A table with a text and a label in two of its columns; ``columns`` names them, or counts them from 1.

    Without ``columns``: where the first row names a text and a label (:data:`TEXTS`, :data:`LABELS`, in any case), it
    is a header; else no row is one, and the text is in column 1 and the label in column 2.
    """

    hint: ClassVar[str]
    """Likely cause of a row with too many or too few columns."""

    columns: tuple[str, ...] | None = None

    def records(self, notes: InvalidLines) -> Iterator[tuple[int, LabelledText]]:
        """Every text and its label; empty rows are passed over.

        Raises:
            RegardError: a row has another number of columns than the first, or a column is not there.
        """
        for line, cells, (text, label) in self.choose(notes, self._choose_columns):
            yield line, LabelledText(one_line(cells[text]), one_line(cells[label]).strip())

    def choose(self, notes: InvalidLines, choose: Choose[Chosen]) -> Iterator[tuple[int, list[str], Chosen]]:
        """Every row but the header, with its line and the columns chosen by the first row.

        Args:
            notes: takes lines of invalid UTF-8.
            choose: of the first row's cells and its line the columns, and whether that row is a header.

        Raises:
            RegardError: a row has another number of columns than the first.
        """
        chosen, first = None, (0, 0)
        for line, cells in self.rows(notes):
            if chosen is None:
                chosen, header = choose(cells, line)
                first = line, len(cells)
                if header:
                    continue
            if len(cells) != first[1]:
                message = f"has {counted(len(cells), 'column')}, but line {first[0]} has {first[1]:,}; {self.hint}"
                raise RegardError(message, self.at(line))
            yield line, cells, chosen

    def _choose_columns(self, cells: Sequence[str], line: int) -> tuple[tuple[int, int], bool]:
        """The two columns from 0, and whether these cells of the first row are a header."""
        names = [cell.strip().casefold() for cell in cells]
        known = [next((names.index(name) for name in group if name in names), None) for group in (TEXTS, LABELS)]
        if self.columns is None and known[0] is not None and known[1] is not None:
            return (known[0], known[1]), True
        wanted = self.columns or ("1", "2")
        text, label = (find_column(one, names, self.at(line), f"; {self.hint}") for one in wanted)
        named = not all(map(str.isdecimal, wanted))
        return (text, label), named or (names[text] in TEXTS and names[label] in LABELS)

    @abstractmethod
    def rows(self, notes: InvalidLines) -> Iterator[Row]:
        """The cells of every row that is not empty, with the line it begins in."""


@dataclass
class LabelledTsv(LabelledRows):
    """TSV: a row a line, a tab between two cells, quotes are characters like any other."""

    hint: ClassVar[str] = "are tabs between the columns, and none inside a text?"

    def rows(self, notes: InvalidLines) -> Iterator[Row]:
        for number, line in enumerate(row_lines(self.path, notes), 1):
            if line.strip():
                yield number, line.split("\t")


@dataclass
class LabelledCsv(LabelledRows):
    """CSV, strictly: a cell with a comma, a quote or a line break in it stands in quotes, its own quotes doubled."""

    hint: ClassVar[str] = "are commas between the columns, and does every text with a comma stand in quotes?"

    def rows(self, notes: InvalidLines) -> Iterator[Row]:
        """The rows, each with the line it begins in.

        Raises:
            RegardError: a quote is not closed, or followed by something other than a comma.
        """
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST))
        reader = csv.reader((f"{line}\n" for line in row_lines(self.path, notes)), strict=True)
        while True:
            begin = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise RegardError(self._csv_error(str(error), begin, reader.line_num), self.at(begin)) from None
            if any(cell.strip() for cell in cells):
                yield begin, cells

    def _csv_error(self, error: str, begin: int, end: int) -> str:
        if "expected after" in error:
            until = "" if begin == end else f" (found in line {end})"
            return f"a quote is closed, but no comma follows{until}; a quote inside a quoted cell is written twice"
        if "unexpected end" in error:
            return "a quote is opened in this row and not closed"
        if "new-line character" in error:
            return f"a carriage return stands in a cell without quotes; where {LONE_RETURNS}"
        if "field limit" in error:
            return f"a cell is longer than {csv.field_size_limit():,} characters; is a quote opened and not closed?"
        return f"is not CSV: {error}"


@dataclass
class LabelledJsonLines(Records[LabelledText]):
    """JSONL: an object a line. A label is a text, a number, true or false, a list of texts (several labels), or null.

    ``keys`` names those of text and label; without it the first object's keys are looked through for :data:`TEXTS`
    and :data:`LABELS`.
    """

    keys: tuple[str, ...] | None = None

    def records(self, notes: InvalidLines) -> Iterator[tuple[int, LabelledText]]:
        """Every text and its label; several labels are joined by ``|``.

        Raises:
            RegardError: a line is no JSON object, lacks a key, or its values are of another kind.
        """
        keys = self.keys
        for number, entry in self.json_objects(notes):
            keys = keys or self.find_keys(entry, {"text": TEXTS, "label": LABELS}, number)
            label = self.json_value(entry, keys[1], number)
            yield number, LabelledText(self.json_text(entry, keys[0], number), self.label_text(label, keys[1], number))

    def label_text(self, label: object, key: str, number: int) -> str:
        """A label, or several, as one string.

        Raises:
            RegardError: it is neither a text, a number, true or false, nor a list of texts.
        """
        if label is None:
            return ""
        if isinstance(label, str):
            return one_line(replace_surrogates(label)).strip()
        if isinstance(label, bool | int | float):
            return json.dumps(label)
        if isinstance(label, list) and all(isinstance(one, str) for one in label):
            try:
                return join_labels([one_line(replace_surrogates(one)) for one in label])
            except ValueError as error:
                raise RegardError(str(error), self.at(number)) from None
        raise RegardError(f"{key!r} is neither a text, a number, true or false, nor a list of texts", self.at(number))


@dataclass
class FirstWordLabels(Records[LabelledText]):
    """A label, a blank and the text in each line, as TREC has it; ``cut``: the label ends before its first colon."""

    cut: bool = False

    def records(self, notes: InvalidLines) -> Iterator[tuple[int, LabelledText]]:
        """Every text and its label; empty lines are passed over.

        Raises:
            RegardError: a line has a single word only, or no colon where one is expected.
        """
        for number, line in enumerate(row_lines(self.path, notes), 1):
            if not line.strip():
                continue
            label, *rest = line.split(maxsplit=1)
            if not rest:
                raise RegardError("has no text after its first word, the label", self.at(number))
            if self.cut:
                label, colon, _ = label.partition(":")
                if not colon:
                    raise RegardError(f"the label {label[:30]!r} has no colon", self.at(number))
            yield number, LabelledText(rest[0], label)


def open_labelled(path: Path | str, columns: str | None = None) -> Corpus[LabelledText]:
    """The labelled texts of a file; its name's ending tells the form: ``.csv``, ``.tsv``, ``.jsonl``.

    Args:
        path: the file, plain or compressed.
        columns: ``"text,label"``: first the column of the text, then that of the label, by name or counted from 1; of
            JSONL the keys. Or a picture of a line: ``"label text"`` where a line begins with its label;
            ``"label:rest text"`` where only the part before the colon is the label. Default: what
            :class:`LabelledRows` and :class:`LabelledJsonLines` say.

    Raises:
        UsageError: neither the ending nor ``columns`` tells the form.
    """
    path = Path(path)
    if columns is not None and (picture := _PICTURE.fullmatch(columns)):
        return FirstWordLabels(path, cut=picture[1] is not None)
    wanted = "two columns, the text's first, such as text,label or 2,1"
    words = f"for a label, a blank and a text a line say {Option('columns', 'label text')} or 'label:rest text'"
    hint = f"{words}; for tabs {Option('columns', '1,2')}"
    return open_columns(
        path, columns, (2,), wanted, hint, lambda path, table, names: replace(table, columns=names), LabelledJsonLines
    )


def open_columns(
    path: Path | str,
    columns: str | None,
    numbers: Collection[int],
    wanted: str,
    hint: str,
    rows: Callable[[Path, LabelledRows, Columns], Corpus[ExampleT]],
    objects: Callable[[Path, Columns], Corpus[ExampleT]],
) -> Corpus[ExampleT]:
    """The corpus of a file of columns or keys; its name's ending tells the form.

    Args:
        path: the file, plain or compressed.
        columns: their names with commas between.
        numbers: how many there may be.
        wanted, hint: what they must name, and what to say where nothing tells the form, for messages.
        rows, objects: make the corpus of a table and of JSONL.

    Raises:
        UsageError: neither the ending nor ``columns`` tells the form.
    """
    names = None if columns is None else tuple(name.strip() for name in columns.split(","))
    if names is not None and (len(names) not in numbers or not all(names)):
        raise UsageError(f"{columns!r} must name {wanted}", Option("columns"))
    name = plain_name(path := Path(path))
    if name.endswith(".csv"):
        return rows(path, LabelledCsv(path), names)
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return objects(path, names)
    if name.endswith((".tsv", ".tab")) or names is not None:
        return rows(path, LabelledTsv(path), names)
    refuse_binary(path)
    raise UsageError(f"is neither .csv, .tsv nor .jsonl; {hint}", str(path))
