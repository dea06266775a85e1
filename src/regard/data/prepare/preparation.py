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
from regard.data.corpora.corpus import Progress, no_progress
from regard.data.corpora.scan import Block
from regard.data.prepare.division import BlockEncoder, EncodedPart
from regard.data.prepare.encoders import PARTS, Encoder
from regard.data.prepare.folder import atomic_folder, finish, is_reusable
from regard.data.prepare.shards import Entry, ShardFile, SideWriter
from regard.data.prepare.split import Examples
from regard.data.prepare.windowing import DocumentIndexWriter
from regard.system import disk
from regard.system.errors import RegardError
from regard.system.forks import divide
from regard.text.confidence import WORDS

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

    def note(self, kind: str, block: Block, place: int, side: int) -> None:
        """Count one example."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if len(seen := self.examples.setdefault(kind, [])) < self.kept:
            seen.append(block.where(place, side))


Review = Callable[[LeftOut, int], None]
Writer = SideWriter | ShardFile | DocumentIndexWriter


def prepare(
    examples: AnyExamples,
    recipe: Recipe,
    folder: Path,
    learn: Learn[AnyExamples],
    rests: Entry,
    progress: Progress = no_progress,
    review: Review | None = None,
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
    if is_reusable(folder, inputs):
        return folder
    with atomic_folder(folder) as partial:
        progress("learn", 0)
        encoder = learn(examples)
        encoder.save(partial)
        work = BlockEncoder(encoder, recipe.text.bpe_dropout > 0)
        index, files = _write_examples(examples, partial, encoder, work, progress, review, processes)
        if work.words:  # else the examples are no texts
            unseen = tuple(tuple(np.flatnonzero(counts_V == 0).tolist()) for counts_V in work.counts) or None
            with disk.naming(partial / WORDS):
                (partial / WORDS).write_bytes(work.words.seen_words(unseen).content)
        mended = [notes.message for notes in examples.notes if notes.invalid]
        rests_on = [inputs, encoder.sha256, *encoder.rests(index)]
        finish(partial, {"inputs": inputs, **index, "mended": mended, "rests": rests_on}, files)
    return folder


def _write_examples(
    examples: Examples[Any],
    folder: Path,
    encoder: Encoder[Any],
    work: BlockEncoder,
    progress: Progress,
    review: Review | None,
    processes: int,
) -> tuple[Entry, Entry]:
    """Write the shards, some blocks of examples in memory; what the index says of them, and of their files."""
    left_out, number = LeftOut(), 0
    with ExitStack() as stack:
        train, validation = (_PartWriter(folder, part, encoder, left_out, stack) for part in PARTS)
        count = processes if encoder.divisible else 1
        given = examples.blocks(encoder.characters)
        for block, (parts, noted) in stack.enter_context(closing(divide(work, given, lambda: count))):
            progress("encode", number)
            block.note(noted)
            for writer, encoded in zip((train, validation), parts, strict=True):
                writer.add(block, encoded)
            number += block.content.count
        sides, files, wholes = Entry(), Entry(), Entry()
        for part in (train, validation):
            part.close(sides, files, wholes)
    if review:
        review(left_out, train.seen)
    for part, lost, hint in (
        (train, "nothing is left", ""),
        (validation, "nothing is left to validate on", "; give another by --valid"),
    ):
        if not part.windows:
            raise RegardError(f"{lost}: {encoder.nothing}{hint}", examples.files_of(part.name))
    index = {"sides": sides} | ({"wholes": wholes} if wholes else {})
    index |= encoder.fields([train.kept[id(corpus)] for corpus in examples.corpora])
    index |= encoder.write_tables(folder, files, progress)
    return index | {"left_out": {"counts": left_out.counts, "examples": left_out.examples}}, files


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
        files: list[Writer] = [*self._writers, *self._texts, *([self._wholes] if self._wholes else [])]
        for file in files:
            stack.callback(file.release)
        self.kept: Counter[int] = Counter()
        self.seen, self.windows = 0, 0

    def add(self, block: Block, found: EncodedPart) -> None:
        """Take the next examples of the part."""
        self.seen += found.seen
        for place, kind, side in found.refused:
            kind = "validation" if self.name == "validation" else kind
            self._left_out.note(kind, block, place, side)
        self.kept[id(block.corpus)] += len(found.windows_B)
        for text, lines in zip(self._texts, found.texts, strict=False):
            text.write(lines)
        if self._wholes:
            self._wholes.add(found.windows_B)
        for writer, (ids_T, lengths_W) in zip(self._writers, found.sides, strict=True):
            writer.append(ids_T, lengths_W)
        self.windows += int(found.windows_B.sum())

    def close(self, sides: Entry, files: Entry, wholes: Entry) -> None:
        """Finish the files and add their entries for the index."""
        for writer, name in zip(self._writers, self._names, strict=True):
            sides[name], written = writer.close()
            files |= written
        for text in self._texts:
            files[text.name] = text.close()
        if self._wholes:
            wholes[self.name], written = self._wholes.close()
            files |= written
