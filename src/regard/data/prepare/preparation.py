"""Preparation of data for every task: examples become a folder of shards, reused when the inputs are unchanged.

Blocks of examples are worked on here or divided among processes, with the same result: the words of a sample of pairs
are counted before vocabularies are learned, and then all examples are encoded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.config import Recipe, Text
from regard.data.corpora.corpus import Progress, TextPair, no_progress
from regard.data.corpora.scan import Block, Noted
from regard.data.prepare.encoders import Encoder, RefusedExample
from regard.data.prepare.folder import atomic_folder, finish, is_reusable
from regard.data.prepare.shards import Entry, Ids, Numbers, OffsetsWriter, ShardFile, SideWriter, narrowest_type
from regard.data.prepare.split import PARTS, SHARED, TRAIN, VALIDATION, Examples, SplitCorpora
from regard.system import disk
from regard.system.errors import Option, RegardError
from regard.system.forks import MapReduce, divide, pack, unpack
from regard.text.confidence import WORDS, WordCounter
from regard.text.tokenizers.vocabulary import PairCounter, sample

HEARD = 200_000
"""Pairs from whose words n-grams are learned."""
COUNTED, GIVEN = 1, 2
"""Marks of pairs: their words are counted; they are given back, too."""
CountedBlock = tuple[list[TextPair], Noted]
"""Pairs that are given back, and what is to be noted of the files."""
Refusal = tuple[int, str, int]
"""The place of an example in its block, why it is left out, and which side of it."""
SHOWN = 5
"""Examples of each kind that are named."""
KINDS = ("empty", "too long", "shared with validation", "validation")
"""Why an example is left out; ``validation``: of the validation examples, whatever the reason."""
AnyExamples = TypeVar("AnyExamples", bound=Examples[Any])
Learn = Callable[[AnyExamples], Encoder[Any]]
"""Makes the encoder from the examples that are learned from."""


class BlockCounter(MapReduce[Block, CountedBlock]):
    """Counts the words of the marked pairs of blocks."""

    def __init__(self, text: Text) -> None:
        self.counter = PairCounter(text.joint, text.normalisation, text.units, text.lowercase)

    def do(self, item: Block) -> CountedBlock:
        pairs, noted = item.read()
        marked = list(zip(pairs, item.marks_B.tolist(), strict=False))
        self.counter.add([pair for pair, mark in marked if mark])
        return [pair for pair, mark in marked if mark == GIVEN], noted

    @property
    def content(self) -> bytes:
        return self.counter.content

    def merge(self, content: bytes) -> None:
        self.counter.merge(content)

    def pack_item(self, item: Block) -> bytes:
        return item.pack()

    def unpack_item(self, content: bytes) -> Block:
        return Block.unpack(content, TextPair)

    def unpack_found(self, content: bytes) -> CountedBlock:
        pairs, noted = unpack(content)
        return [TextPair(*pair) for pair in pairs], noted


def count_sample(
    examples: SplitCorpora[TextPair], text: Text, given: int, seed: int, processes: int
) -> tuple[PairCounter, list[TextPair]]:
    """Count the words of ``text.sample`` pairs that are learned from, drawn by seed; and about ``given`` of them."""
    work, found = BlockCounter(text), list[TextPair]()
    total = examples.train_count
    drawn = np.array(sample(range(total), text.sample, seed) if total > text.sample else range(total), np.int64)
    marks = np.zeros(total, np.int8)
    marks[drawn] = COUNTED
    marks[drawn[:: 1 + len(drawn) // given]] = GIVEN
    blocks = examples.train_blocks(lambda pair: sum(map(len, pair)))
    for block, (pairs, noted) in divide(work, _mark(blocks, marks), lambda: processes):
        block.note(noted)
        found += pairs
    return work.counter, found


def count_words(examples: SplitCorpora[TextPair]) -> dict[str, Counter[str]]:
    """How often each word of each language occurs in the pairs that are learned from; of many about :data:`HEARD`."""
    from regard.text.language_ngrams import words_of  # few trainings need it

    found, every = dict[str, Counter[str]](), 1 + examples.train_count // HEARD
    for block in examples.train_blocks(lambda pair: sum(map(len, pair))):
        pairs, _ = block.read()
        chosen = [pair for pair, mark in zip(pairs, block.marks_B.tolist(), strict=False) if mark == TRAIN][::every]
        for code, texts in zip(block.languages, zip(*chosen, strict=True), strict=False):
            found.setdefault(code, Counter()).update(words_of(texts))
    return found


def _mark(blocks: Iterable[Block], marks: NDArray[np.int8]) -> Iterator[Block]:
    """The blocks with these marks of the pairs that are learned from; the others have none."""
    begin = 0
    for block in blocks:
        learned_B = block.marks_B == TRAIN
        end = begin + int(learned_B.sum())
        marks_B = np.zeros(len(learned_B), np.int8)
        marks_B[learned_B] = marks[begin:end]
        begin = end
        yield replace(block, marks_B=marks_B)


class EncodedPart(NamedTuple):
    """The examples of a block that are learned from, or validated on, as they are written.

    Args:
        seen: how many there are, those left out included.
        refused: those left out.
        windows_B: how many windows each of the others has.
        sides: of both sides the ids of all windows, as the files have them, and how many each has.
        texts: of both sides the texts of the others, a line each, where they are kept.
    """

    seen: int
    refused: Sequence[Refusal]
    windows_B: Ids
    sides: Sequence[tuple[Numbers, Ids]]
    texts: Sequence[bytes]


EncodedBlock = tuple[list[EncodedPart], Noted]
"""The training and the validation examples of a block, and what is to be noted of its files."""


class BlockEncoder(MapReduce[Block, EncodedBlock]):
    """Encodes blocks, and counts what training reads.

    Args:
        encoder: examples to ids.
        has_dropout: whether training draws other pieces than these, so that those seen are not known.
    """

    def __init__(self, encoder: Encoder[Any], has_dropout: bool) -> None:
        self.encoder, self.words = encoder, WordCounter()
        self.counts = [np.zeros(size, np.int64) for size in (() if has_dropout else encoder.piece_sizes)]

    def do(self, item: Block) -> EncodedBlock:
        examples, noted = item.read()
        held_B = item.marks_B[: len(examples)] == VALIDATION
        encoder = self.encoder.between(item.languages)
        parts = [self._part(encoder, item, examples, name, held_B == number) for number, name in enumerate(PARTS)]
        return parts, noted

    def _part(
        self, encoder: Encoder[Any], block: Block, examples: Sequence[Any], part: str, here_B: NDArray[np.bool_]
    ) -> EncodedPart:
        places = np.flatnonzero(here_B)
        chosen = examples if here_B.all() else [examples[place] for place in places.tolist()]
        flat = encoder.encode_flat(chosen, part)
        shared = np.flatnonzero(block.marks_B[places] == SHARED).tolist()
        refused = flat.refused | dict.fromkeys(shared, RefusedExample("shared with validation"))
        kept_B = np.ones(len(chosen), np.bool_)
        kept_B[list(refused)] = False
        found, kept = flat.keep(kept_B), [one for one, keep in zip(chosen, kept_B.tolist(), strict=True) if keep]
        if part == "train":
            self.words.add(text for example in kept for text in self.encoder.read_texts(example))
            for counts_V, (ids, _) in zip(self.counts, found.sides, strict=False):
                counts_V += np.bincount(ids, minlength=len(counts_V))
        types = map(narrowest_type, self.encoder.sizes(part))
        sides = [(ids.astype(kind), lengths) for kind, (ids, lengths) in zip(types, found.sides, strict=True)]
        reasons = [(int(places[place]), refused[place].kind, refused[place].side) for place in sorted(refused)]
        texts = list[bytes]()
        if part == "validation" and self.encoder.keeps_validation:
            for side in zip(*(example.sides() for example in kept), strict=True):
                texts.append("".join(f"{text}\n" for text in side).encode())
        return EncodedPart(len(chosen), reasons, found.windows_B, sides, texts)

    @property
    def content(self) -> bytes:
        return pack([self.words.content, *self.counts])

    def merge(self, content: bytes) -> None:
        words, *counts = unpack(content)
        self.words.merge(words)
        for counts_V, more in zip(self.counts, counts, strict=True):
            counts_V += more

    def pack_item(self, item: Block) -> bytes:
        return item.pack()

    def unpack_item(self, content: bytes) -> Block:
        return Block.unpack(content, self.encoder.example)

    def unpack_found(self, content: bytes) -> EncodedBlock:
        parts, noted = unpack(content)
        return [EncodedPart(*part) for part in parts], noted


@dataclass
class LeftOut:
    """Examples that are not learned from: how many of each kind, and where the first few stand."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    examples: dict[str, list[str]] = field(default_factory=dict)

    def note(self, kind: str, block: Block, place: int, side: int) -> None:
        """Count one example."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if len(seen := self.examples.setdefault(kind, [])) < SHOWN:
            seen.append(block.where(place, side))


Review = Callable[[LeftOut, int], None]
Writer = SideWriter | ShardFile | OffsetsWriter


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
        index, files = _write_examples(examples, partial, work, progress, review, processes)
        if work.words:  # else the examples are no texts
            unseen = tuple(tuple(np.flatnonzero(counts_V == 0).tolist()) for counts_V in work.counts) or None
            with disk.naming(partial / WORDS):
                (partial / WORDS).write_bytes(work.words.seen_words(unseen).content)
        mended = [notes.message for notes in examples.notes if notes.invalid]
        rests_on = [inputs, encoder.sha256, *encoder.rests(index)]
        finish(partial, {"inputs": inputs, **index, "mended": mended, "rests": rests_on}, files)
    return folder


def _write_examples(
    examples: Examples[Any], folder: Path, work: BlockEncoder, progress: Progress, review: Review | None, processes: int
) -> tuple[Entry, Entry]:
    """Write the shards, some blocks of examples in memory; what the index says of them, and of their files."""
    encoder, left_out, number = work.encoder, LeftOut(), 0
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
    another = f"; give another by {Option('valid')}"
    for part, lost, hint in ((train, "", ""), (validation, " to validate on", another)):
        if not part.windows:
            raise RegardError(f"nothing is left{lost}: {encoder.nothing}{hint}", examples.files[part.name])
    index: Entry = {"sides": sides} | ({"wholes": wholes} if wholes else {})
    index |= encoder.fields([train.kept[id(corpus)] for corpus in examples.corpora])
    if validation.languages:
        index["held"] = [[*languages, len(list(some))] for languages, some in groupby(validation.languages)]
    if len(validation.names) > 1:
        index["held_of"] = [[name, validation.kept[corpus]] for corpus, name in validation.names.items()]
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
        self._wholes = OffsetsWriter(folder, f"{part}.wholes") if encoder.windowed else None
        plain = part == "validation" and encoder.keeps_validation
        self._texts = [ShardFile(folder / f"{name}.txt") for name in self._names] if plain else []
        files: list[Writer] = [*self._writers, *self._texts, *([self._wholes] if self._wholes else [])]
        for file in files:
            stack.callback(file.release)
        self.kept: Counter[int] = Counter()
        self.names = dict[int, str]()
        """Of each corpus: its windows, and what it is called."""
        self.languages: list[tuple[str, ...]] = []
        """Of each validation example, where they differ."""
        self.seen, self.windows = 0, 0

    def add(self, block: Block, found: EncodedPart) -> None:
        """Take the next examples of the part."""
        self.seen += found.seen
        for place, kind, side in found.refused:
            kind = "validation" if self.name == "validation" else kind
            self._left_out.note(kind, block, place, side)
        self.kept[id(block.corpus)] += len(found.windows_B)
        if block.corpus and len(found.windows_B):
            self.names[id(block.corpus)] = block.corpus.name
        if block.languages and self.name == "validation":
            self.languages += [block.languages] * len(found.windows_B)
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
