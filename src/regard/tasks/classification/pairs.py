"""Classification of sentence pairs: their files (CSV, TSV or JSONL; streamed), their ids, and a trained classifier."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from regard.config import Recipe
from regard.data.corpora.corpus import Corpus, Records, TextPair, find_column, one_line
from regard.data.corpora.labelled import LABELS, LabelledJsonLines, LabelledRows, open_columns
from regard.data.prepare.encoders import Encoded, Ids, RefusedExample, TextEncoder
from regard.data.prepare.windowing import Frame, LabelIds
from regard.system.errors import Option, RegardError, UsageError
from regard.tasks.classification.classifier import NOTHING, ClassAssets, Prediction, TextLabelTask
from regard.tasks.protocols import Unloaded
from regard.tasks.text.task import BETWEEN, Read, read_as
from regard.text.lines import InvalidLines
from regard.text.tokenizers.vocabulary import AnyTokenizer

if TYPE_CHECKING:
    from regard.models.rnn import Reader

Pair = tuple[str, str] | str
"""Two texts, or both on one line with a tab or ``[SEP]`` between them."""
_BETWEEN = re.compile(r"\s*(?:\t|\n|\[SEP\])\s*")
FIRST = ("sentence1", "text1", "premise", "question1", "sentence_a", "text_a", "first", "source")
SECOND = ("sentence2", "text2", "hypothesis", "question2", "sentence_b", "text_b", "second", "translation")
"""Column names that are recognised, the likeliest first."""


class LabelledPair(NamedTuple):
    """Two texts and their label as written: of several labels all, of a regression the number."""

    texts: TextPair
    label: str

    @property
    def is_empty(self) -> bool:
        """Whether a text is missing."""
        return not all(text.strip() for text in self.texts)

    def sides(self) -> tuple[str, str]:
        """Both texts, one a line, and the label."""
        return ("" if self.is_empty else "\n".join(self.texts)), self.label


@dataclass
class LabelledPairRows(Records[LabelledPair]):
    """A table with two texts and a label in three of its columns.

    Where the first row names them (:data:`FIRST`, :data:`SECOND`, :data:`LABELS`, in any case), it is a header; else no
    row is one, and they are columns 1, 2 and 3.

    Args:
        table: the rows.
        columns: names of the columns, or their numbers from 1, in this order.
    """

    table: LabelledRows
    columns: tuple[str, ...] | None = None

    def records(self, notes: InvalidLines) -> Iterator[tuple[int, LabelledPair]]:
        """Every pair and its label; empty rows are passed over.

        Raises:
            RegardError: a row has another number of columns than the first, or a column is not there.
        """
        for line, cells, chosen in self.table.choose(notes, self._choose_columns):
            first, second, label = (one_line(cells[place]) for place in chosen)
            yield line, LabelledPair(TextPair(first, second), label.strip())

    def _choose_columns(self, cells: Sequence[str], line: int) -> tuple[list[int], bool]:
        """The three columns from 0, and whether these cells of the first row are a header."""
        names = [cell.strip().casefold() for cell in cells]
        known = [next((names.index(name) for name in group if name in names), -1) for group in (FIRST, SECOND, LABELS)]
        if self.columns is None and min(known) >= 0:
            return known, True
        wanted = self.columns or ("1", "2", "3")
        found = [find_column(one, names, self.at(line), f"; {self.table.hint}") for one in wanted]
        return found, not all(map(str.isdecimal, wanted)) or found == known


@dataclass
class LabelledPairJsonLines(Records[LabelledPair]):
    """JSONL: an object a line, with two texts and a label as :class:`LabelledJsonLines` reads it.

    Args:
        keys: of the texts and the label; default: the first of :data:`FIRST`, :data:`SECOND` and :data:`LABELS`.
    """

    keys: tuple[str, ...] | None = None

    def records(self, notes: InvalidLines) -> Iterator[tuple[int, LabelledPair]]:
        """Every pair and its label.

        Raises:
            RegardError: a line is no JSON object, lacks a key, or its values are of another kind.
        """
        keys, labels = self.keys, LabelledJsonLines(self.path)
        for number, entry in self.json_objects(notes):
            known = {"first text": FIRST, "second text": SECOND, "label": LABELS}
            keys = keys or self.find_keys(entry, known, number)
            texts = TextPair(*(self.json_text(entry, key, number) for key in keys[:2]))
            label = self.json_value(entry, keys[2], number)
            yield number, LabelledPair(texts, labels.label_text(label, keys[2], number))


def open_labelled_pairs(path: Path | str, columns: str | None = None) -> Corpus[LabelledPair]:
    """The labelled pairs of a file; its name's ending tells the form: ``.csv``, ``.tsv``, ``.jsonl``.

    Args:
        path: the file, plain or compressed.
        columns: the columns or keys of both texts and the label, e.g. ``"premise,hypothesis,label"`` or ``"1,2,3"``.

    Raises:
        UsageError: neither the ending nor ``columns`` tells the form.
    """
    wanted = "three columns, both texts' first, such as premise,hypothesis,label or 1,2,3"
    hint = f"where tabs are between columns, say {Option('columns', '1,2,3')}"
    return open_columns(path, columns, (3,), wanted, hint, LabelledPairRows, LabelledPairJsonLines)


def kept_pieces(frame: Frame, first: int, second: int) -> tuple[int, int]:
    """How many pieces of two texts fit into a frame; what is too long is cut from the end of the longer text.

    Raises:
        RegardError: the frame has no room for a piece of each.
    """
    room = frame.max_tokens - len(frame.begin) - 1 - frame.ends_between
    if room < 2:
        raise RegardError(f"{frame.max_tokens} tokens have no room for two texts", "data.max_tokens")
    kept = min(second, max(room // 2, room - first))
    return min(first, room - kept), kept


def join_pieces(frame: Frame, first: Ids, second: Ids) -> Ids:
    """``[CLS] first </s> second </s>`` [Devlin19 §3], cut by :func:`kept_pieces`; in RoBERTa two ends are between."""
    begin, end = np.array(frame.begin, np.int64), np.array([frame.end], np.int64)
    ends = end.repeat(frame.ends_between)
    kept = kept_pieces(frame, len(first), len(second))
    return np.concatenate([begin, first[: kept[0]], ends, second[: kept[1]], end])


def pair_frame(tokenizer: AnyTokenizer, recipe: Recipe) -> Frame:
    """The frame of two texts: without segments they stand apart as the tokenizer's file has it."""
    ends = tokenizer.ends_between if getattr(recipe.model, "segments", 2) < 2 else 1
    return replace(Frame.of(tokenizer, recipe.data.max_tokens), ends_between=ends)


class LabelledPairEncoder(TextEncoder[LabelledPair]):
    """Encodes two texts as one sequence, and their label ids (:class:`LabelIds`)."""

    example = LabelledPair
    tokenizer: AnyTokenizer
    nothing = "every pair lacks a text, or has no label"

    def __init__(self, tokenizer: AnyTokenizer, frame: Frame, labels: LabelIds) -> None:
        super().__init__(tokenizer, {"labels": list(labels.labels), "texts": 2}, labels.size)
        self.frame, self.labels = frame, labels

    def encode(self, examples: Sequence[LabelledPair], part: str) -> list[Encoded]:
        pieces = iter(self.tokenizer.ids_batch([text for example in examples for text in example.texts]))
        return [self._window(next(pieces), next(pieces), example) for example in examples]

    def read_texts(self, example: LabelledPair) -> Sequence[str]:
        return example.texts

    def _window(self, first: Ids, second: Ids, example: LabelledPair) -> Encoded:
        if example.is_empty:
            return RefusedExample("empty")
        if not self.labels.there(example.label):
            return RefusedExample("no label")
        return [(join_pieces(self.frame, first, second), self.labels.of(example.label))]


def split_pair(given: Pair, where: str = "text") -> tuple[str, str]:
    """The two texts.

    Raises:
        UsageError: there are not two.
    """
    found = _BETWEEN.split(given.strip(" ")) if isinstance(given, str) else list(given)
    if len(found) != 2 or not all(isinstance(text, str) for text in found):
        raise UsageError(f"is not two texts; put a tab or {BETWEEN.strip()} between them, once", where)
    return found[0], found[1]


class PairClassification(TextLabelTask):
    """A classifier of sentence pairs, ready to use; the second text is another segment [Devlin19 §3]."""

    open_corpus = staticmethod(open_labelled_pairs)
    marks = re.compile(re.escape(BETWEEN.strip()))

    def __init__(self, recipe: Recipe, assets: ClassAssets, model: Reader | Unloaded[Reader]) -> None:
        super().__init__(recipe, assets, model)
        self.frame = pair_frame(assets.tokenizer, recipe)

    @overload
    def classify(self, text: Pair, threshold: float | None = None) -> Prediction: ...
    @overload
    def classify(self, text: list[Pair], threshold: float | None = None) -> list[Prediction]: ...
    def classify(self, text: Pair | list[Pair], threshold: float | None = None) -> Prediction | list[Prediction]:
        """The prediction for a pair, or for each pair of a list.

        Of a pair longer than any in training the longer text is cut at its end, as in training. A pair that lacks a
        text has no prediction.

        Args:
            text: one pair or several.
            threshold: the lowest accepted probability; default: the recipe's, else the fitted one.

        Raises:
            UsageError: it is not two texts.
        """
        if not isinstance(text, list):
            return self.classify([text], threshold)[0]
        pairs = [split_pair(one, f"text {place}") for place, one in enumerate(text, 1)]
        whole = [all(part.strip() for part in pair) for pair in pairs]
        score_BC = self.scores([pair for pair, there in zip(pairs, whole, strict=True) if there])
        said = iter(self.predictor(threshold).predictions(score_BC))
        return [next(said) if there else NOTHING for there in whole]

    def parse_line(self, line: str, number: int) -> tuple[str, str] | None:
        """The two texts of a line; none where one is missing.

        Raises:
            UsageError: it does not hold two; with its number.
        """
        if not line.strip():
            return None
        pair = split_pair(line, f"line {number}")
        return pair if all(text.strip() for text in pair) else None

    def reads(self, text: str) -> tuple[str, list[Read]]:
        """The model's input for two texts and its characters, for inspection; for one text, while it is typed, too."""
        first, second = split_pair(text) if _BETWEEN.search(text) else (text, "")
        read = [read_as(self.assets.tokenizer, one, ()) for one in (first, second)]
        kept = kept_pieces(self.frame, len(read[0][1]), len(read[1][1]))
        shift, end = len(read[0][0]) + len(BETWEEN), self.frame.end
        known = BETWEEN.join(text for text, _ in read) if second else read[0][0]
        return known, [
            *((id, 0, 0) for id in self.frame.begin),
            *read[0][1][: kept[0]],
            *[(end, len(read[0][0]), len(read[0][0]))] * self.frame.ends_between,
            *((id, begin + shift, stop + shift) for id, begin, stop in read[1][1][: kept[1]]),
            (end, len(known), len(known)),
        ]

    def windows(self, pairs: Sequence[Pair]) -> list[list[Ids]]:
        """The one window of each pair."""
        texts = [text for pair in pairs for text in split_pair(pair)]
        pieces = iter(self.assets.tokenizer.ids_batch(texts))
        return [[join_pieces(self.frame, next(pieces), next(pieces))] for _ in pairs]
