"""Preparation of data for every task: examples become a folder of shards, reused when the inputs are unchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from regard.config import Recipe
from regard.data.corpora.blocks import Block
from regard.data.corpora.corpus import Corpus, Progress, no_progress
from regard.data.prepare.division import PARTS, BlockEncoder, EncodedPart
from regard.data.prepare.encoders import Encoder
from regard.data.prepare.folder import atomic_folder, finish, is_reusable
from regard.data.prepare.shards import ShardFile, SideWriter
from regard.data.prepare.split import Examples
from regard.data.prepare.windowing import DocumentIndexWriter
from regard.system import disk
from regard.system.errors import RegardError
from regard.system.map_reduce import divide
from regard.text.seen_words import WORDS

KINDS = ("empty", "too long", "shared with validation", "validation")
"""Why an example is left out; ``validation``: of the validation examples, whatever the reason."""
AnyExamples = TypeVar("AnyExamples", bound=Examples[Any])
Learn = Callable[[AnyExamples], Encoder[Any]]
"""Makes the encoder from the examples that are learned from."""


@dataclass
class LeftOut:
    """Examples that are not learned from: how many of each kind, and where the first few stand."""

    kept: int = 5
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    examples: dict[str, list[str]] = field(default_factory=dict)

    def note(self, kind: str, corpus: Corpus[Any], number: int, side: int = 0) -> None:
        """Count one example."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if len(seen := self.examples.setdefault(kind, [])) < self.kept:
            seen.append(corpus.where(number, side))


def prepare(
    examples: AnyExamples,
    recipe: Recipe,
    folder: Path,
    learn: Learn[AnyExamples],
    rests: dict[str, Any],
    progress: Progress = no_progress,
    review: Callable[[LeftOut, int], None] | None = None,
    processes: int = 1,
) -> Path:
    """Prepare the examples in ``folder``, unless it was prepared from the same; returns it.

    Args:
        examples: each in its part.
        recipe: its seed and ``data.max_tokens`` are read.
        folder: below the run's private folder.
        learn: makes the encoder.
        rests: what the encoding depends on besides the data, by name.
        progress: reports progress.
        review: called with what was left out and the number of training examples before the folder is complete; may
            refuse them.
        processes: that encode the examples; the files do not depend on how many there are.

    Raises:
        RegardError: nothing is left of a part; or ``folder`` was made from other data or another recipe (and which
            field differs).
    """
    inputs = {"seed": recipe.seed, "data.max_tokens": recipe.data.max_tokens, **examples.inputs, **rests}
    if not is_reusable(folder, inputs):
        with atomic_folder(folder) as partial:
            writer = _FolderWriter(examples, partial, progress, recipe.text.bpe_dropout > 0, processes)
            writer.write(learn, inputs, review)
    return folder


class _FolderWriter:
    """One making of a folder; some blocks of examples (:mod:`~regard.data.prepare.division`) are in memory."""

    def __init__(
        self, examples: Examples[Any], folder: Path, progress: Progress, has_dropout: bool, processes: int
    ) -> None:
        self._examples, self._folder, self._progress = examples, folder, progress
        self._has_dropout, self._processes = has_dropout, processes
        self._left_out = LeftOut()

    def write(self, learn: Learn[Any], inputs: dict[str, Any], review: Callable[[LeftOut, int], None] | None) -> None:
        """Every file of the folder, the index last."""
        self._progress("learn", 0)
        encoder = learn(self._examples)
        encoder.save(self._folder)
        work = BlockEncoder(encoder, self._has_dropout)
        with ExitStack() as stack:
            train, validation = (_PartWriter(self._folder, part, encoder, self._left_out, stack) for part in PARTS)
            number, processes = 0, self._processes if encoder.divisible else 1
            given = self._examples.blocks(encoder.characters)
            for block, (parts, noted) in stack.enter_context(closing(divide(work, given, lambda: processes))):
                self._progress("encode", number)
                block.note(noted)
                for writer, encoded in zip((train, validation), parts, strict=True):
                    writer.add(block, encoded)
                number += block.content.count
            sides, files, wholes = dict[str, Any](), dict[str, Any](), dict[str, str]()
            for part in (train, validation):
                part.close(sides, files, wholes)
        if review:
            review(self._left_out, train.seen)
        for part in (train, validation):
            if not part.windows:
                self._refuse_nothing(part.name, encoder.nothing)
        fields = encoder.fields([train.kept[id(corpus)] for corpus in self._examples.corpora])
        index: dict[str, Any] = {"inputs": inputs, "sides": sides} | ({"wholes": wholes} if wholes else {}) | fields
        index |= encoder.write_tables(self._folder, files, self._progress)
        _write_seen(self._folder, work)
        index |= {"left_out": {"counts": self._left_out.counts, "examples": self._left_out.examples}}
        index |= {"mended": self._replacements(), "rests": [inputs, encoder.sha256, *encoder.rests(fields)]}
        finish(self._folder, index, files)

    def _refuse_nothing(self, part: str, reason: str) -> None:
        """Raise a RegardError that names the files of which no example is left."""
        where = self._examples.files_of(part)
        if part == "validation":
            raise RegardError(f"nothing is left to validate on: {reason}; give another by --valid", where)
        raise RegardError(f"nothing is left: {reason}", where)

    def _replacements(self) -> list[str]:
        """A line about each file that held invalid UTF-8."""
        return [notes.message for notes in self._examples.notes if notes.invalid]


def _write_seen(folder: Path, work: BlockEncoder) -> None:
    """Write the file that :func:`~regard.text.seen_words.read_seen_words` reads, where there are texts."""
    if not work.words:
        return
    unseen = tuple(tuple(np.flatnonzero(counts_V == 0).tolist()) for counts_V in work.counts) or None
    with disk.naming(folder / WORDS):
        (folder / WORDS).write_bytes(work.words.seen_words(unseen).content)


class _PartWriter:
    """The training or the validation examples being written.

    Args:
        folder: of the files.
        part: ``train`` or ``validation``, how the files are named.
        encoder: examples to ids.
        left_out: takes the examples that are left out.
        stack: closes the files whatever happens.
    """

    def __init__(self, folder: Path, part: str, encoder: Encoder[Any], left_out: LeftOut, stack: ExitStack) -> None:
        self.name, self._left_out = part, left_out
        self._names = [f"{part}.{side}" for side in encoder.sides]
        sizes = encoder.sizes(part)
        self._writers = [SideWriter(folder, name, size) for name, size in zip(self._names, sizes, strict=True)]
        self._wholes = DocumentIndexWriter(folder, f"{part}.wholes") if encoder.windowed else None
        plain = part == "validation" and encoder.keeps_validation
        self._texts = [ShardFile(folder / f"{name}.txt") for name in self._names] if plain else []
        files: list[Any] = [*self._writers, *self._texts, *([self._wholes] if self._wholes else [])]
        for file in files:
            stack.callback(file.release)
        self.kept: Counter[int] = Counter()
        self.seen, self.windows = 0, 0

    def add(self, block: Block, found: EncodedPart) -> None:
        """Take the next examples of the part."""
        self.seen += found.seen
        for place, kind, side in found.refused:
            kind = "validation" if self.name == "validation" else kind
            self._left_out.note(kind, block.corpus, block.content.first + place, side)
        self.kept[id(block.corpus)] += len(found.windows_B)
        for text, lines in zip(self._texts, found.texts, strict=False):
            text.put(lines)
        if self._wholes:
            self._wholes.add(found.windows_B)
        for writer, (ids_T, lengths_W) in zip(self._writers, found.sides, strict=True):
            writer.append(ids_T, lengths_W)
        self.windows += int(found.windows_B.sum())

    def close(self, sides: dict[str, Any], files: dict[str, Any], wholes: dict[str, str]) -> None:
        """Finish the files and add their entries for the index."""
        for writer, name in zip(self._writers, self._names, strict=True):
            sides[name], written = writer.close()
            files |= written
        for text in self._texts:
            files[text.name] = text.close()
        if self._wholes:
            wholes[self.name], written = self._wholes.close()
            files |= written
