"""Preparation of labelled examples: encodes them into a folder of shards, reused when the inputs are unchanged."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.config import Recipe
from regard.data.corpora.pairs import Corpus, Pair
from regard.data.corpora.passes import Progress, no_progress
from regard.data.prepare import encoders as codings
from regard.data.prepare.encoders import Coded, ExampleEncoder
from regard.data.prepare.folder import ExamplesIndex, atomic_folder, finish, is_reusable, read_index
from regard.data.prepare.pairs import BATCH, LeftOut, replacement_notes
from regard.data.prepare.shards import Shards, SideWriter
from regard.data.prepare.survey import Split, Survey, split_texts, survey
from regard.data.prepare.windowing import DocumentIndex, DocumentIndexWriter
from regard.system.errors import RegardError

SIDES = ("text", "labels")
Learn = Callable[[Iterator[Pair]], ExampleEncoder]
"""Makes the coding from the examples that are learned from."""


@dataclass(frozen=True)
class ExampleNames:
    """Words for examples, in sentences.

    Args:
        many: what they are.
        nothing: why none is left.
    """

    many: str = "texts"
    nothing: str = "every text is empty, or has no label"


OF_TEXTS = ExampleNames()
OF_DOCUMENTS = ExampleNames("documents", "that part is nothing but white space")
OF_IMAGES = ExampleNames("images", "no image has a label")


class PlacedError(NamedTuple):
    """An example, and where it stands."""

    pair: Pair
    corpus: Corpus
    number: int

    @property
    def where(self) -> str:
        """File and line."""
        return self.corpus.where(self.number)


class PreparedExamples:
    """A folder of prepared examples, every file checked against its sha256 when opened.

    Raises:
        RegardError: a file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        sides = tuple(f"{part}.{side}" for part in ("train", "validation") for side in SIDES)
        self.folder, self.index = folder, read_index(folder, ExamplesIndex, sides)
        self.fingerprint: str = self.index["fingerprint"]
        self.own: dict[str, Any] = self.index["own"]
        self.left_out: dict[str, Any] = self.index["left_out"]
        self.mended: list[str] = self.index["mended"]
        self.text, self.labels = self._sides("train")
        self.validation_text, self.validation_labels = self._sides("validation")
        self.count = self.text.count

    @cached_property
    def wholes(self) -> DocumentIndex:
        """The examples that are learned from, each of one window or several."""
        return self._wholes("train")

    @cached_property
    def validation_wholes(self) -> DocumentIndex:
        """The validation documents."""
        return self._wholes("validation")

    def _wholes(self, part: str) -> DocumentIndex:
        if "wholes" not in self.index:
            message = "was prepared by an earlier Regard, which did not say which windows are of one text"
            raise RegardError(f"{message}; choose another output folder, or --resume never", str(self.folder))
        return DocumentIndex(self.folder / self.index["wholes"][part])

    def _sides(self, part: str) -> tuple[Shards, Shards]:
        text, labels = (Shards(self.folder, self.index["sides"][f"{part}.{side}"]) for side in SIDES)
        return text, labels


def prepare_examples(
    corpora: Sequence[Corpus],
    recipe: Recipe,
    folder: Path,
    learn: Learn,
    rests: dict[str, Any],
    validation: Corpus | None = None,
    progress: Progress = no_progress,
    called: ExampleNames = OF_TEXTS,
) -> PreparedExamples:
    """The prepared examples of these corpora: what is in ``folder`` if it fits, else rebuilt.

    Without ``validation`` a part is split off by seed.

    Args:
        corpora: examples, two strings each.
        recipe: the sections ``text`` and ``data`` are read.
        folder: below the run's private folder.
        learn: makes the coding, which turns examples into ids.
        rests: what the encoding depends on besides the data, by name.
        validation: examples to validate with.
        progress: reports progress.
        called: what the examples are.

    Raises:
        RegardError: a corpus cannot be used; or ``folder`` was made from other data or another recipe.
    """
    found = survey(corpora, progress, "examples")
    held_out = survey([validation], progress, "examples") if validation is not None else None
    inputs = _inputs(found, held_out, recipe, rests)
    if not is_reusable(folder, inputs):
        nothing = np.zeros(sum(found.sizes), dtype=np.bool_)
        names, data = _names(corpora), recipe.data
        kept = Split(nothing, nothing)
        if validation is None:
            kept = split_texts(found, data.validation, recipe.seed, called.many, names)
        with atomic_folder(folder) as partial:
            _ExampleWriter(corpora, kept, validation, progress, called).write(partial, learn, inputs)
    return PreparedExamples(folder)


def _names(corpora: Sequence[Corpus]) -> str:
    """The files, for messages."""
    return " and ".join(corpus.name for corpus in corpora)


def _inputs(found: Survey, held_out: Survey | None, recipe: Recipe, rests: dict[str, Any]) -> dict[str, Any]:
    """All inputs of the prepared examples, by name."""
    inputs = {"data": found.fingerprint, "seed": recipe.seed, "data.max_tokens": recipe.data.max_tokens, **rests}
    inputs["validation"] = held_out.fingerprint if held_out else "split"
    if held_out is None:
        inputs["data.validation"] = recipe.data.validation
    for name in ("vocabulary", "units", "normalisation", "lowercase", "sample"):
        inputs[f"text.{name}"] = getattr(recipe.text, name)
    return inputs


class _ExampleWriter:
    """One making of a folder; a few thousand examples are in memory at a time."""

    def __init__(
        self,
        corpora: Sequence[Corpus],
        kept: Split,
        validation: Corpus | None,
        progress: Progress,
        called: ExampleNames,
    ) -> None:
        self._corpora, self._split, self._validation, self._progress = corpora, kept, validation, progress
        self._called = called
        self._left_out = LeftOut()
        self._files: dict[str, Any] = {}
        self._wholes: dict[str, str] = {}

    def write(self, folder: Path, learn: Learn, inputs: dict[str, Any]) -> None:
        """Every file of the folder, the index last."""
        self._progress("names", 0)
        coding = learn(one.pair for one in self._select(self._split.train_B))
        codings.save(coding, folder)
        sides = self._side(folder, "train", coding, self._select(self._split.train_B))
        sides |= self._side(folder, "validation", coding, self._held_out())
        index: dict[str, Any] = {"inputs": inputs, "sides": sides, "wholes": self._wholes, "own": coding.own}
        index |= {"left_out": {"counts": self._left_out.counts, "examples": self._left_out.examples}}
        index |= {
            "mended": replacement_notes(self._corpora, self._validation),
            "rests": [inputs, codings.sha256(coding)],
        }
        finish(folder, index, self._files)

    def _select(self, wanted_B: NDArray[np.bool_]) -> Iterator[PlacedError]:
        """The wanted examples of all corpora."""
        wanted = iter(wanted_B)
        for corpus in self._corpora:
            for line, (pair, want) in enumerate(zip(corpus.pairs(), wanted, strict=False)):
                if want:
                    yield PlacedError(pair, corpus, line)

    def _held_out(self) -> Iterator[PlacedError]:
        if (given := self._validation) is None:
            return self._select(self._split.validation_B)
        return (PlacedError(pair, given, line) for line, pair in enumerate(given.pairs()))

    def _side(self, folder: Path, part: str, coding: ExampleEncoder, examples: Iterable[PlacedError]) -> dict[str, Any]:
        names = [f"{part}.{side}" for side in SIDES]
        examples = iter(examples)
        entries, done = {}, 0
        with ExitStack() as stack:
            writers = [SideWriter(folder, name, size) for name, size in zip(names, coding.sizes, strict=True)]
            wholes = DocumentIndexWriter(folder, f"{part}.wholes")
            stack.callback(wholes.release)
            for writer in writers:
                stack.callback(writer.release)
            while some := list(itertools.islice(examples, BATCH)):
                coded = self._encode(part, some, coding)
                wholes.add(list(map(len, coded)))
                for side, writer in enumerate(writers):
                    writer.add([window[side] for windows in coded for window in windows])
                done += len(some)
                self._progress("encode", done)
            for writer, name in zip(writers, names, strict=True):
                entries[name], files = writer.close()
                self._files |= files
            self._wholes[part], files = wholes.close()
            self._files |= files
        if not entries[names[0]]["sentences"]:
            self._refuse_nothing(part)
        return entries

    def _refuse_nothing(self, part: str) -> None:
        """Raise a RegardError that names the files of which no example is left."""
        given = self._validation if part == "validation" else None
        where = given.name if given is not None else _names(self._corpora)
        if part == "validation":
            raise RegardError(f"nothing is left to validate on: {self._called.nothing}; give another by --valid", where)
        raise RegardError(f"nothing is left: {self._called.nothing}", where)

    def _encode(self, part: str, some: list[PlacedError], coding: ExampleEncoder) -> list[Coded]:
        """The windows of each example that has any; examples without text or label are noted."""
        empty = [one for one in some if not one.pair[0].strip()]
        filled = [one for one in some if one.pair[0].strip()]
        found = coding.encode([one.pair for one in filled])
        unsaid = [one for one, windows in zip(filled, found, strict=True) if not windows]
        for kind, left in (("empty", empty), ("no label", unsaid)):
            for one in left:
                self._left_out.note("validation" if part == "validation" else kind, one.where)
        return [windows for windows in found if windows]
