"""Preparation of sentence pairs: vocabularies, and shards of training and validation ids."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.config import Recipe, Text
from regard.data.corpora.pairs import Corpus, Pair
from regard.data.corpora.passes import Progress, no_progress
from regard.data.prepare.bpe_dropout import SegmentedShards, WordTable
from regard.data.prepare.folder import PairsIndex, atomic_folder, finish, is_reusable, read_index
from regard.data.prepare.shards import ShardFile, Shards, SideWriter
from regard.data.prepare.survey import Split, Survey, split, survey
from regard.system.errors import RegardError
from regard.text.lines import lines
from regard.text.tokenizers.bpe_dropout import Segmenter
from regard.text.tokenizers.tokenizer import Tokenizer
from regard.text.tokenizers.vocabulary import Vocabularies, learn_vocabularies, sample

SIDES = ("train.source", "train.target", "validation.source", "validation.target")
VALIDATION = ("validation.source.txt", "validation.target.txt")


class PreparedPairs:
    """A folder of prepared data, every file checked against its sha256 when opened.

    Raises:
        RegardError: a file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.index = folder, read_index(folder, PairsIndex, SIDES)
        self.fingerprint: str = self.index["fingerprint"]
        self.vocabularies = Vocabularies.load(folder)
        self.sizes: tuple[int, ...] = tuple(self.index["sizes"])
        self.left_out: dict[str, Any] = self.index["left_out"]
        self.mended: list[str] = self.index["mended"]
        self.source, self.target = self._side("train.source"), self._side("train.target")
        self.validation_source = Shards(folder, self.index["sides"]["validation.source"])
        self.validation_target = Shards(folder, self.index["sides"]["validation.target"])
        self.pairs = self.source.count

    def _side(self, name: str) -> Shards | SegmentedShards:
        entry, table = self.index["sides"][name], self.index["tables"].get(name)
        if table is None:
            return Shards(self.folder, entry)
        return SegmentedShards(self.folder, entry, table, self.index["seed"], self.index["max_tokens"])

    def validation_pairs(self) -> list[Pair]:
        """The text of the validation pairs, in the order of their ids."""
        source, target = (lines(self.folder / name) for name in VALIDATION)
        return list(zip(source, target, strict=True))


BATCH = 2000
KINDS = ("empty", "too long", "shared with validation", "validation")
"""Why a pair is left out; ``validation``: of the validation pairs, empty or too long."""


@dataclass
class LeftOut:
    """Pairs that are not learned from: how many of each kind, and where the first few stand."""

    kept: int = 5
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    examples: dict[str, list[str]] = field(default_factory=dict)

    def note(self, kind: str, where: str) -> None:
        """Count one pair."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if len(seen := self.examples.setdefault(kind, [])) < self.kept:
            seen.append(where)


class PairsPreparation:
    """One making of a prepared folder.

    Args:
        corpora: the training data.
        parts: the training and validation pairs.
        recipe: the sections ``text`` and ``data`` are read.
        validation: the pairs to validate with, if they are not split off.
        progress: reports progress.
    """

    def __init__(
        self, corpora: Sequence[Corpus], parts: Split, recipe: Recipe, validation: Corpus | None, progress: Progress
    ) -> None:
        self._corpora, self._split, self._recipe = corpora, parts, recipe
        self._validation, self._progress = validation, progress
        self._files: dict[str, Any] = {}
        self._left_out = LeftOut()
        self._open = ExitStack()

    def learn_vocabularies(self) -> Vocabularies:
        """Vocabularies from a seeded sample of the pairs that are learned from."""
        text = self._recipe.text
        self._progress("vocabulary", 0)
        pairs = sample((pair for _, pair in self._select(self._split.train_B)), text.sample, self._recipe.seed)
        return learn_vocabularies(
            pairs, text.vocabulary, text.joint, text.normalisation, units=text.units, lowercase=text.lowercase
        )

    def _select(self, wanted_B: NDArray[np.bool_]) -> Iterator[tuple[tuple[int, int], Pair]]:
        """The wanted pairs of all corpora, each with (corpus, line from 0)."""
        wanted = iter(wanted_B)
        for number, corpus in enumerate(self._corpora):
            for line, (pair, want) in enumerate(zip(corpus.pairs(), wanted, strict=False)):
                if want:
                    yield (number, line), pair

    def write(self, folder: Path, vocabularies: Vocabularies, inputs: dict[str, Any]) -> None:
        """Every file of the prepared data, the index last."""
        vocabularies.save(folder)
        with self._open:
            kept = self._write_validation(folder, vocabularies)
            sides, tables, sizes = self._write_train(folder, vocabularies)
        index: dict[str, Any] = {"inputs": inputs, "sizes": sizes, "sides": sides | kept}
        index |= {"tables": tables, "seed": self._recipe.seed, "max_tokens": self._recipe.data.max_tokens}
        index |= {"left_out": {"counts": self._left_out.counts, "examples": self._left_out.examples}}
        index |= {
            "mended": replacement_notes(self._corpora, self._validation),
            "rests": [inputs, vocabularies.sha256, sizes],
        }
        finish(folder, index, self._files)

    def _write_validation(self, folder: Path, vocabularies: Vocabularies) -> dict[str, Any]:
        pairs: Iterable[tuple[str, Pair]]
        if (held := self._validation) is not None:
            pairs = ((held.where(line), pair) for line, pair in enumerate(held.pairs()))
        else:
            chosen = self._select(self._split.validation_B)
            pairs = ((self._corpora[number].where(line), pair) for (number, line), pair in chosen)
        writers = [
            self._writer(folder, f"validation.{side}", tokenizer.size)
            for side, tokenizer in (("source", vocabularies.source), ("target", vocabularies.target))
        ]
        limit = self._recipe.data.max_tokens
        texts = [ShardFile(folder / name) for name in VALIDATION]
        for text in texts:
            self._open.callback(text.release)
        for where, pair in pairs:
            ids = [_encode_text(vocabularies.source, pair[0]), _encode_text(vocabularies.target, pair[1])]
            if not all(text.strip() for text in pair) or max(map(len, ids)) > limit:
                self._left_out.note("validation", where)
                continue
            for side, writer in enumerate(writers):
                texts[side].put(f"{pair[side]}\n".encode())
                writer.add([ids[side]])
        for text in texts:
            text.close()
        return self._close_writers(writers, ["validation.source", "validation.target"])

    def _writer(self, folder: Path, name: str, pieces: int) -> SideWriter:
        writer = SideWriter(folder, name, pieces)
        self._open.callback(writer.release)
        return writer

    def _close_writers(self, writers: Sequence[SideWriter], names: Sequence[str]) -> dict[str, Any]:
        entries = {}
        for writer, name in zip(writers, names, strict=True):
            entries[name], files = writer.close()
            self._files |= files
            if not entries[name]["sentences"]:
                part = name.partition(".")[0]
                raise RegardError(f"no pair is left: all are empty or over {self._recipe.data.max_tokens} tokens", part)
        return entries

    def _write_train(
        self, folder: Path, vocabularies: Vocabularies
    ) -> tuple[dict[str, Any], dict[str, Any], list[int]]:
        names = ["train.source", "train.target"]
        coders = [self._coder(tokenizer) for tokenizer in (vocabularies.source, vocabularies.target)]
        writers = [self._writer(folder, name, coder.pieces) for name, coder in zip(names, coders, strict=True)]
        sizes = [0] * len(self._corpora)
        done = 0
        train = zip(self._select(~self._split.validation_B), self._split.left_B[~self._split.validation_B], strict=True)
        while part := list(itertools.islice(train, BATCH)):
            coded = [coder.encode([pair[side] for (_, pair), _ in part]) for side, coder in enumerate(coders)]
            lengths = [(left[1], right[1]) for left, right in zip(*coded, strict=True)]
            kept = [row for row, (one, shared) in enumerate(part) if self._keep(*one, lengths[row], bool(shared))]
            for side, writer in enumerate(writers):
                writer.add([coded[side][row][0] for row in kept])
            for row in kept:
                sizes[part[row][0][0][0]] += 1
            done += len(part)
            self._progress("encode", done)
        entries = self._close_writers(writers, names)
        tables = {}
        for name, coder in zip(names, coders, strict=True):
            if coder.table is not None:
                self._progress("segment", 0)
                tables[name], files = coder.table.write(folder, name)
                self._files |= files
        return entries, tables, sizes

    def _coder(self, tokenizer: Tokenizer) -> _SideEncoder:
        text = self._recipe.text
        if not text.bpe_dropout:
            return _SideEncoder(tokenizer, None)
        segmenter = Segmenter(tokenizer, text.bpe_dropout, self._recipe.seed)
        return _SideEncoder(tokenizer, WordTable(tokenizer, segmenter, text.segmentations))

    def _keep(self, place: tuple[int, int], pair: Pair, lengths: tuple[int, int], shared: bool) -> bool:
        """Whether a pair is learned from; if not, it is counted and the first few are named."""
        if shared:
            self._left_out.note("shared with validation", self._corpora[place[0]].where(place[1]))
            return False
        if not pair[0].strip() or not pair[1].strip():
            side = 0 if not pair[0].strip() else 1
            self._left_out.note("empty", self._corpora[place[0]].where(place[1], side))
            return False
        if max(lengths) > self._recipe.data.max_tokens:
            self._left_out.note("too long", self._corpora[place[0]].where(place[1], int(lengths[1] > lengths[0])))
            return False
        return True


class _SideEncoder:
    """Texts to what the shards hold: pieces, or words where they are segmented at random."""

    def __init__(self, tokenizer: Tokenizer, table: WordTable | None) -> None:
        self._tokenizer, self.table = tokenizer, table
        self.pieces = tokenizer.size if table is None else 1 << 32

    def encode(self, texts: Sequence[str]) -> list[tuple[NDArray[np.int64], int]]:
        """The numbers of each text, ``</s>`` last, and its tokens without dropout."""
        if self.table is not None:
            return [self.table.words(text) for text in texts]
        ended = [np.append(ids, self._tokenizer.end) for ids in self._tokenizer.ids_batch(texts)]
        return [(ids, len(ids)) for ids in ended]


def _encode_text(tokenizer: Tokenizer, text: str) -> NDArray[np.int64]:
    return np.append(tokenizer.ids_batch([text])[0], tokenizer.end)


def replacement_notes(corpora: Sequence[Corpus], validation: Corpus | None = None) -> list[str]:
    """A line about each file that held invalid UTF-8, after it was read."""
    found = []
    for corpus in [*corpora, *([validation] if validation else [])]:
        for side, notes in enumerate(corpus.notes):
            if notes.invalid:
                where = corpus.where(notes.invalid_lines[0] - 1, side)
                found.append(f"{where}: {notes.invalid} lines are not valid UTF-8; their bytes became U+FFFD")
    return found


def prepare(
    corpora: Sequence[Corpus],
    recipe: Recipe,
    folder: Path,
    validation: Corpus | None = None,
    vocabularies: Vocabularies | None = None,
    progress: Progress = no_progress,
) -> PreparedPairs:
    """The prepared data of these corpora: what is in ``folder`` if it fits, else rebuilt.

    Without ``validation`` a part is split off by seed. Without ``vocabularies`` they are learned from a seeded sample.

    Raises:
        RegardError: a corpus cannot be used; or ``folder`` was made from other data or another recipe (and which field
            differs).
    """
    found = survey(corpora, progress)
    held_out = survey([validation], progress) if validation is not None else None
    inputs = _inputs(found, held_out, recipe, vocabularies)
    if is_reusable(folder, inputs):
        return PreparedPairs(folder)
    nothing = np.zeros(sum(found.sizes), dtype=np.bool_)
    parts = Split(nothing, nothing) if validation else split(found, recipe.data.validation, recipe.seed)
    work = PairsPreparation(corpora, parts, recipe, validation, progress)
    with atomic_folder(folder) as partial:
        work.write(partial, vocabularies or work.learn_vocabularies(), inputs)
    return PreparedPairs(folder)


def _inputs(
    found: Survey, held_out: Survey | None, recipe: Recipe, vocabularies: Vocabularies | None
) -> dict[str, Any]:
    """All inputs of the prepared data, by name."""
    text, data = recipe.text, recipe.data
    rests: dict[str, Any] = {"data": found.fingerprint, "seed": recipe.seed, "data.max_tokens": data.max_tokens}
    rests["validation"] = held_out.fingerprint if held_out else "split"
    if held_out is None:
        rests["data.validation"] = data.validation
    if vocabularies is not None:
        rests["vocabulary"] = vocabularies.sha256
    else:
        for name in ("vocabulary", "joint", "normalisation", "sample"):
            rests[f"text.{name}"] = getattr(text, name)
        usual = Text()  # what came later is named only where it is used, so that older folders still fit
        for name in ("units", "lowercase"):
            if getattr(text, name) != getattr(usual, name):
                rests[f"text.{name}"] = getattr(text, name)
    rests["text.bpe_dropout"] = text.bpe_dropout
    if text.bpe_dropout:
        rests["text.segmentations"] = text.segmentations
    return rests
