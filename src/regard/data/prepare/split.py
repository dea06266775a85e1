"""Each example's part: learned from, validated on, or neither; a validation part is split off by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.data.corpora.corpus import EMPTY_HASH, Corpus, ExampleT, ExampleT_co, Progress, no_progress
from regard.data.corpora.scan import EVERY, Block, DataScan, Scan, Size, blocks, example_blocks
from regard.system.errors import Option, RegardError
from regard.system.keys import generator
from regard.text.counts import agreeing, counted
from regard.text.language_tokens import Direction
from regard.text.lines import InvalidLines

if TYPE_CHECKING:
    from regard.data.corpora.documents import DocumentPart, HeldOut

PARTS = ("train", "validation")
TRAIN, VALIDATION, SHARED = 0, 1, 2
"""Marks of examples: learned from; validated on; in neither, as they share a sentence with the validation part."""
Split = NDArray[np.int8]
"""The mark of each example of the training corpora."""


class Examples(Protocol[ExampleT_co]):
    """The examples of a run, each in its part."""

    @property
    def corpora(self) -> Sequence[Corpus[ExampleT_co]]:
        """Those that are learned from."""

    @property
    def files(self) -> Mapping[str, str]:
        """The files of the examples of each part, for messages."""

    @property
    def inputs(self) -> Mapping[str, object]:
        """Fingerprints of the content, for the index of the prepared data."""

    def train_examples(self) -> Iterator[ExampleT_co]:
        """Those that are learned from, in order."""

    def blocks(self, size: Size) -> Iterator[Block]:
        """All of them, in order, those of a validation file last, marked by their part; ``size``: characters of one."""

    @property
    def notes(self) -> list[InvalidLines]:
        """Invalid lines of each file in the latest pass."""


class SplitCorpora(Generic[ExampleT]):
    """Scanned corpora and the part of each example.

    Args:
        scanned: the training corpora and the validation corpus.
        split: makes the split of the training corpora when it is needed; None: all is learned from.
        inputs: what the split depends on, besides the data.
        directions: the languages of each corpus, those of validation last, where they differ.
    """

    def __init__(
        self,
        scanned: DataScan[Scan[ExampleT]],
        split: Callable[[], Split] | None = None,
        inputs: Mapping[str, object] | None = None,
        directions: Sequence[Direction] = (),
    ) -> None:
        self._scanned, self._make_split, self._inputs = scanned, split, inputs or {}
        self.corpora = [scan.corpus for scan in scanned.learned]
        held = DataScan(scanned.held)
        self.files = dict(zip(PARTS, (scanned.name, held.name or scanned.name), strict=True))
        self._languages: Sequence[tuple[str, ...]] = directions or [()] * len(scanned.every)

    @cached_property
    def _split(self) -> Split:
        count = sum(scan.count for scan in self._scanned.learned)
        return self._make_split() if self._make_split else np.full(count, TRAIN, np.int8)

    @property
    def inputs(self) -> Mapping[str, object]:
        held_out = self._scanned.validation_fingerprint or "split"
        return {"data": self._scanned.fingerprint, "validation": held_out, **self._inputs}

    @property
    def notes(self) -> list[InvalidLines]:
        return [notes for scan in self._scanned.every for notes in scan.corpus.notes]

    def train_examples(self) -> Iterator[ExampleT]:
        for scan, marks_B in self._marks():
            for example, mark in zip(scan.corpus.examples(), marks_B.tolist(), strict=False):
                if mark == TRAIN:
                    yield example

    @property
    def train_count(self) -> int:
        """How many are learned from."""
        return int((self._split == TRAIN).sum())

    def blocks(self, size: Size) -> Iterator[Block]:
        yield from self.train_blocks(size)
        for scan, languages in zip(self._scanned.held, self._languages[len(self.corpora) :], strict=True):
            yield from blocks(scan.corpus, np.full(scan.count, VALIDATION, np.int8), size, languages)

    def train_blocks(self, size: Size) -> Iterator[Block]:
        """Those of the training corpora, marked by their part."""
        for (scan, marks_B), languages in zip(self._marks(), self._languages, strict=False):
            yield from blocks(scan.corpus, marks_B, size, languages)

    def _marks(self) -> Iterator[tuple[Scan[ExampleT], Split]]:
        """Each training corpus and the part of each of its examples."""
        ends = np.cumsum([scan.count for scan in self._scanned.learned])
        return zip(self._scanned.learned, np.split(self._split, ends[:-1]), strict=True)


def split_pairs(hashes_B2: NDArray[np.uint64], count: int, seed: int) -> Split:
    """A validation part drawn by seed, so that no source and no target sentence is on both sides.

    At most a tenth of the pairs. Pairs whose sentences occur once are preferred, so hardly a pair is lost.

    Args:
        hashes_B2: of both sentences of each pair.
        count: pairs to hold out.
        seed: of the draw.

    Raises:
        RegardError: too few pairs, or all of them share sentences.
    """
    pairs = len(hashes_B2)
    _, source, source_times = np.unique(hashes_B2[:, 0], return_inverse=True, return_counts=True)
    _, target, target_times = np.unique(hashes_B2[:, 1], return_inverse=True, return_counts=True)
    filled = (hashes_B2 != EMPTY_HASH).all(1)
    order = generator(seed, "split").permutation(np.flatnonzero(filled))
    times = (source_times[source] + target_times[target])[order]
    chosen = order[np.argsort(times, kind="stable")][: max(1, min(count, pairs // 10))]
    shared = np.isin(source, source[chosen]) | np.isin(target, target[chosen])
    return _split_pairs(chosen, shared, filled)


def split_each(hashes_B2: NDArray[np.uint64], sizes: Sequence[int], count: int, seed: int) -> Split:
    """The same of corpora of several languages: an equal part of the pairs, at most a tenth, of each corpus.

    What is a source of one may be a target of another, so that no sentence of a validation pair is learned from on
    either side.

    Args:
        hashes_B2: of both sentences of each pair, corpus by corpus.
        sizes: pairs of each corpus.
        count: pairs to hold out, in all.
        seed: of the draw.

    Raises:
        RegardError: as :func:`split_pairs`.
    """
    filled, begin, chosen = (hashes_B2 != EMPTY_HASH).all(1), 0, list[NDArray[np.int64]]()
    for number, size in enumerate(sizes):
        order = generator(seed, "split", number).permutation(begin + np.flatnonzero(filled[begin : begin + size]))
        chosen.append(order[: max(1, min(count // len(sizes), size // 10))])
        begin += size
    every = np.concatenate(chosen)
    return _split_pairs(every, np.asarray(np.isin(hashes_B2, hashes_B2[every]).any(1)), filled)


def _split_pairs(chosen: NDArray[np.int64], shared: NDArray[np.bool_], filled: NDArray[np.bool_]) -> Split:
    given = f"{Option('valid_source')} and {Option('valid_target')}"
    return _split(chosen, shared, filled, "pairs", given, "validation")


def split_texts(text_B: NDArray[np.uint64], count: int, seed: int, noun: str = "texts", where: str = "") -> Split:
    """A validation part drawn by seed, at most a tenth, so that no text is on both sides; labels may be.

    Args:
        text_B: a hash of each text.
        count: texts to hold out.
        seed: of the draw.
        noun: what they are called, and ``where`` their files, for a sentence.

    Raises:
        RegardError: too few texts, or all of them are the same.
    """
    filled = text_B != EMPTY_HASH
    chosen = generator(seed, "split").permutation(np.flatnonzero(filled))[: max(1, min(count, len(text_B) // 10))]
    return _split(chosen, np.isin(text_B, text_B[chosen]), filled, noun, f"{Option('valid')}", where)


def _split(
    chosen: NDArray[np.int64], shared: NDArray[np.bool_], filled: NDArray[np.bool_], noun: str, option: str, where: str
) -> Split:
    """The chosen examples held out, those that share with them left out; refused where nothing remains."""
    count, marks_B = len(filled), np.where(shared, SHARED, TRAIN).astype(np.int8)
    marks_B[chosen] = VALIDATION
    if count < 2 or not (filled & (marks_B == TRAIN)).any():
        found, alike = counted(count, noun.removesuffix("s")), ", or too alike," if count > 1 else ""
        few = agreeing(f"{found} [is|are] too few{alike} to split a validation part off", count)
        raise RegardError(f"{few}; give {option}", where)
    return marks_B


class SplitDocuments:
    """Running text of which a part is held out; reads it once for its fingerprints.

    Args:
        held: the text.
        see: called with each document that is learned from, or part of one.
        progress: reports progress.
    """

    def __init__(self, held: HeldOut, see: Callable[[str], None], progress: Progress = no_progress) -> None:
        self._held = held
        scans = Scan(held.text), Scan(held.text)
        for part, is_held in held.parts():
            scans[is_held].add(part)
            if not is_held:
                see(part.text)
            if sum(scan.count for scan in scans) % EVERY == 0:
                progress("read", scans[0].count)
        self.inputs = {"data": DataScan([scans[0]]).fingerprint, "validation": DataScan([scans[1]]).fingerprint}
        self.corpora, self.files = [held.text], dict.fromkeys(PARTS, held.text.name)

    @property
    def notes(self) -> list[InvalidLines]:
        return list(self._held.text.notes)

    def train_examples(self) -> Iterator[DocumentPart]:
        return (part for part, is_held in self._held.parts() if not is_held)

    def blocks(self, size: Size) -> Iterator[Block]:
        held = list[bool]()

        def texts() -> Iterator[DocumentPart]:
            for part, is_held in self._held.parts():
                held.append(is_held)
                yield part

        for content in example_blocks(texts(), size):
            marks_B = np.where(held, VALIDATION, TRAIN).astype(np.int8)
            held.clear()
            yield Block(self._held.text, content, marks_B)
