"""BPE-dropout [Provilkov20 §3.2]: merges skipped at random; over shards, a table of segmentations for each word.

Which segmentation a word of a batch gets is a function of (seed, epoch, sentence, word), so nothing is ever saved. The
table of a translator's words is made while its data is prepared; that of other tasks, whose shards hold pieces, when a
run starts.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from regard.data.prepare.shards import CONTINUES, INSIDE, Entry, OffsetsWriter, Shards, Side, SideWriter, ragged_indices
from regard.system.errors import UsageError
from regard.system.keys import key
from regard.text.tokenizers.tokenizer import Tokenizer
from regard.text.tokenizers.vocabulary import AnyTokenizer

PART = 65_536
"""Sentences whose words are in memory at a time while tokens are counted."""
LONGEST = 4096
"""Letters of a word whose segmentations are drawn: each draw takes a microsecond a letter. A longer one, such as an
encoded file in the midst of a text, stays as it is."""
Ids = NDArray[np.int64]


def require_merges(tokenizer: AnyTokenizer) -> Tokenizer:
    """The tokenizer, whose merges BPE-dropout leaves out.

    Raises:
        UsageError: it is not one of ours.
    """
    if not isinstance(tokenizer, Tokenizer):
        raise UsageError("is for vocabularies of Regard; the pretrained model has another", "text.bpe_dropout")
    return tokenizer


class Segmenter:
    """Draws segmentations of single words with the merges of a tokenizer.

    Args:
        tokenizer: whose merges are applied.
        dropout: the probability p of leaving a merge out, each time it is its turn.
        seed: of the draws.
        count: draws of each word.

    Raises:
        UsageError: a tokenizer of characters, which has no merges to leave out.
    """

    def __init__(self, tokenizer: Tokenizer, dropout: float, seed: int, count: int) -> None:
        if tokenizer.units == "characters":
            raise UsageError("characters are put together without merges; leave out bpe_dropout", "text.bpe_dropout")
        self.tokenizer, self.dropout, self.seed, self.count = tokenizer, dropout, seed, count
        self._id = {name: place for place, name in enumerate(tokenizer.names)}
        self._rank = {pair: place for place, pair in enumerate(tokenizer.merges)}

    def plain(self, word: str) -> list[int]:
        """The word's ids without dropout, as the tokenizer has them."""
        return self._merge(word, 0.0, lambda: 1.0)

    def sample(self, word: str) -> list[list[int]]:
        """The segmentations drawn of a word (in byte letters, see :meth:`Tokenizer.words`), repeats included.

        Repeats keep the probabilities right: each draw is as likely as the method says. A word of more than
        :data:`LONGEST` letters is not drawn: it has each time its segmentation without dropout.
        """
        if len(word) > LONGEST:
            return [self.plain(word)] * self.count
        number = int.from_bytes(sha256(word.encode()).digest()[:8], "little")
        uniform = Random(key(self.seed, "segmentation", number)).random
        return [self._merge(word, self.dropout, uniform) for _ in range(self.count)]

    def of_word(self, word: str) -> list[list[int]]:
        """The segmentations of a word: without dropout, then those drawn."""
        return _with_draws(self.plain(word), self.sample(word))

    def of_pieces(self, pieces: tuple[int, ...]) -> list[list[int]]:
        """The segmentations of a word that is these pieces: first as it is, then those drawn.

        A symbol, a word that never varies or a very long one has only the first.
        """
        plain = list(pieces)
        names = [self.tokenizer.names[id] for id in plain]
        if min(plain, default=0) < self.tokenizer.symbols or sum(map(len, names)) > LONGEST:
            return [plain]
        starts = np.flatnonzero(self.tokenizer.word_starts(plain))
        parts = ["".join(part) for part in np.split(np.array(names, object), starts[1:])]
        drawn = zip(*map(self.sample, parts), strict=True)
        return _with_draws(plain, [[id for part in one for id in part] for one in drawn])

    def _merge(self, word: str, dropout: float, uniform: Callable[[], float]) -> list[int]:
        """Merge the pair learned earliest, leftmost first; a pair left out may come again after the next merge."""
        letters: list[str] = list(word)
        after = [*range(1, len(letters)), -1]
        before = list(range(-1, len(letters) - 1))
        queue: list[tuple[int, int, str, str]] = []
        skipped: list[tuple[int, int, str, str]] = []

        def offer(place: int) -> None:
            right = after[place]
            if right >= 0 and (rank := self._rank.get((letters[place], letters[right]))) is not None:
                heapq.heappush(queue, (rank, place, letters[place], letters[right]))

        for place in range(len(letters)):
            offer(place)
        while queue:
            entry = heapq.heappop(queue)
            _, place, left, right = entry
            second = after[place]
            if second < 0 or letters[place] != left or letters[second] != right:
                continue  # one of the two was merged meanwhile
            if dropout and uniform() < dropout:
                skipped.append(entry)
                continue
            for again in skipped:
                heapq.heappush(queue, again)
            skipped.clear()
            letters[place], letters[second] = left + right, ""
            after[place] = after[second]
            if after[second] >= 0:
                before[after[second]] = place
            if before[place] >= 0:
                offer(before[place])
            offer(place)
        return [self._id[piece] for piece in letters if piece]


def _with_draws(plain: list[int], draws: Sequence[list[int]]) -> list[list[int]]:
    """A word as it is, then its draws; one that always comes out the same has no draws."""
    return [plain, *draws] if any(ids != plain for ids in draws) else [plain]


class WordTable:
    """Numbers the words of a side while it is written; word 0 is ``</s>``.

    Args:
        segmenter: its tokenizer splits texts into words, which it segments.
    """

    def __init__(self, segmenter: Segmenter) -> None:
        self._segmenter, self._tokenizer = segmenter, segmenter.tokenizer
        self._number: dict[str | int, int] = {}
        self._plain: list[int] = [1]

    def words(self, text: str, before: Sequence[int] = ()) -> tuple[Ids, int]:
        """The numbers of a text's words, ``</s>`` last, and how many pieces they are without dropout.

        Pieces that stand ``before`` it, such as a language's, are a word each, which never varies.
        """
        numbers, every = [], list[str | int](before)
        for word in every + self._tokenizer.words(text):
            if word not in self._number:
                self._number[word] = len(self._plain)
                self._plain.append(1 if isinstance(word, int) else len(self._segmenter.plain(word)))
            numbers.append(self._number[word])
        numbers.append(0)
        return np.array(numbers, dtype=np.int64), sum(self._plain[number] for number in numbers)

    def write(self, folder: Path, name: str) -> tuple[Entry, Entry]:
        """Draw and write every word's segmentations: the table's entry for the index, and those of its files."""
        with ExitStack() as stack:
            rows = SideWriter(folder, f"{name}.segmentations", self._tokenizer.size)
            stack.callback(rows.release)
            words = OffsetsWriter(folder, f"{name}.words")
            stack.callback(words.release)
            rows.add([np.array([self._tokenizer.end], dtype=np.int64)])
            lengths = [1]
            for word in self._number:
                found = [[word]] if isinstance(word, int) else self._segmenter.of_word(word)
                rows.add([np.array(ids, dtype=np.int64) for ids in found])
                lengths.append(len(found))
            words.add(lengths)
            entry, files = rows.close()
            first, written = words.close()
        return {"rows": entry, "words": first}, files | written


@dataclass
class SegmentedShards:
    """A side whose words are segmented anew in every epoch; implements :class:`~regard.data.prepare.shards.Side`.

    Args:
        words: the numbers of each sentence's words.
        rows: all segmentations, those of one word behind each other, first the one without dropout.
        first_W: where those of each word begin, and where the last ends.
        seed: of the choice among them.
        longest: a sentence whose draws would make it longer gets its plain segmentation in that epoch.
    """

    words: Side
    rows: Side
    first_W: Ids
    seed: int
    longest: int

    @classmethod
    def load(cls, folder: Path, words: Side, table: Entry, seed: int, longest: int) -> SegmentedShards:
        """With the table that :class:`WordTable` wrote."""
        first_W = np.fromfile(folder / table["words"], dtype="<i8").astype(np.int64)
        return cls(words, Shards(folder, table["rows"]), first_W, seed, longest)

    @property
    def count(self) -> int:
        """Sentences."""
        return self.words.count

    @cached_property
    def row_lengths(self) -> Ids:
        """Tokens of each segmentation."""
        return self.rows.lengths(0, np.arange(self.rows.count))

    @cached_property
    def tokens(self) -> int:
        """Tokens of epoch 0; the other epochs have nearly as many."""
        parts = (np.arange(begin, min(begin + PART, self.count)) for begin in range(0, self.count, PART))
        return sum(int(self.lengths(0, part_B).sum()) for part_B in parts)

    def lengths(self, epoch: int, sentences_B: Ids) -> Ids:
        return self.choose(epoch, sentences_B)[1]

    def gather(self, epoch: int, sentences_B: Ids) -> tuple[Ids, Ids]:
        rows_R, lengths_B = self.choose(epoch, sentences_B)
        return self.rows.gather(0, rows_R)[0], lengths_B

    def choose(self, epoch: int, sentences_B: Ids) -> tuple[Ids, Ids]:
        """The segmentation of each word end to end, and the tokens of each sentence."""
        words_R, counts_B = self.words.gather(0, sentences_B)
        place_R = ragged_indices(np.zeros_like(counts_B), counts_B)
        first_R = self.first_W[words_R]
        draws_R = self.first_W[words_R + 1] - first_R - 1
        bits_R = hash_positions(key(self.seed, "segmentations", epoch), np.repeat(sentences_B, counts_B), place_R)
        rows_R = first_R + np.where(draws_R > 0, 1 + bits_R % np.maximum(draws_R, 1), 0)
        lengths_B = self._sum_lengths(rows_R, counts_B)
        too_long_B = lengths_B > self.longest
        if too_long_B.any():
            rows_R = np.where(np.repeat(too_long_B, counts_B), first_R, rows_R)
            lengths_B = self._sum_lengths(rows_R, counts_B)
        return rows_R, lengths_B

    def _sum_lengths(self, rows_R: Ids, counts_B: Ids) -> Ids:
        ends = np.concatenate([[0], self.row_lengths[rows_R].cumsum()])
        last = counts_B.cumsum()
        return np.asarray(ends[last] - ends[last - counts_B], dtype=np.int64)


def hash_positions(bits: int, sentences_R: Ids, places_R: Ids) -> Ids:
    """Numbers from 0 to 2⁶² that look random: a hash of a key, the sentence and the word's place in it."""
    with np.errstate(over="ignore"):
        mixed = np.uint64(bits) + sentences_R.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed = _mix(mixed) + places_R.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03)
        return (_mix(mixed) >> np.uint64(2)).astype(np.int64)


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


class Ragged:
    """Rows of different lengths in memory; implements :class:`~regard.data.prepare.shards.Side`."""

    def __init__(self, rows: Sequence[Sequence[int]] | Sequence[Ids]) -> None:
        lengths = np.array([len(row) for row in rows], np.int64)
        self._ends = np.concatenate([[0], lengths.cumsum()])
        self._ids = np.concatenate([np.zeros(0, np.int64), *(np.asarray(row, np.int64) for row in rows)])
        self.count, self.tokens, self.longest = len(rows), len(self._ids), int(lengths.max(initial=0))

    def lengths(self, epoch: int, sentences_B: Ids) -> Ids:
        return self._ends[sentences_B + 1] - self._ends[sentences_B]

    def gather(self, epoch: int, sentences_B: Ids) -> tuple[Ids, Ids]:
        lengths_B = self.lengths(epoch, sentences_B)
        return self._ids[ragged_indices(self._ends[sentences_B], lengths_B)], lengths_B


def segment_pieces(
    text: Side, units: Callable[[int, Ids], Ids], segmenter: Segmenter, max_tokens: int
) -> SegmentedShards:
    """The pieces of texts, segmented anew in every epoch.

    Args:
        text: pieces of every text, symbols included, without dropout.
        units: of a text's number and pieces, where its words begin; a symbol is a word.
        segmenter: of the words; its seed is that of the choice, too.
        max_tokens: a text that would become longer stays as it was in that epoch.
    """
    known: dict[tuple[int, ...], int] = {}
    words = []
    for number in range(text.count):
        pieces = text.gather(0, np.array([number]))[0]
        parts = (tuple(part.tolist()) for part in np.split(pieces, units(number, pieces)[1:]))
        words.append(np.array([known.setdefault(part, len(known)) for part in parts], np.int64))
    rows = list(map(segmenter.of_pieces, known))
    first_W = np.cumsum([0, *map(len, rows)])
    every = Ragged([row for some in rows for row in some])
    return SegmentedShards(Ragged(words), every, first_W, segmenter.seed, max(max_tokens, text.longest))


def segment_texts(text: Side, segmenter: Segmenter, max_tokens: int) -> SegmentedShards:
    """The pieces of texts that are read, as :func:`segment_pieces`."""
    starts = segmenter.tokenizer.word_starts
    return segment_pieces(text, lambda number, pieces: np.flatnonzero(starts(pieces)), segmenter, max_tokens)


def segment_tagged(
    text: Side, marks: Side, segmenter: Segmenter, max_tokens: int
) -> tuple[SegmentedShards, SegmentedMarks]:
    """The pieces of tagged texts, as :func:`segment_pieces`, and the marks that go with them."""
    signs = []

    def units(number: int, pieces: Ids) -> Ids:
        marks_T = marks.gather(0, np.array([number]))[0]
        begins = np.flatnonzero((marks_T != INSIDE) & (marks_T != CONTINUES))
        first = int(begins[0]) if len(begins) else len(marks_T) - 1
        cuts = np.concatenate([np.arange(first), begins, [len(marks_T) - 1]])
        signs.append(marks_T[cuts])
        return cuts

    segmented = segment_pieces(text, units, segmenter, max_tokens)
    return segmented, SegmentedMarks(segmented, Ragged(signs))


class SegmentedMarks:
    """The marks of segmented pieces; implements :class:`~regard.data.prepare.shards.Side`.

    Args:
        text: the pieces.
        signs: the mark of the first piece of each word.
    """

    def __init__(self, text: SegmentedShards, signs: Ragged) -> None:
        self.text, self.signs = text, signs
        self.count, self.longest = text.count, text.longest

    @property
    def tokens(self) -> int:
        """As many as there are pieces."""
        return self.text.tokens

    def lengths(self, epoch: int, sentences_B: Ids) -> Ids:
        return self.text.lengths(epoch, sentences_B)

    def gather(self, epoch: int, sentences_B: Ids) -> tuple[Ids, Ids]:
        rows_R, lengths_B = self.text.choose(epoch, sentences_B)
        lengths_R = self.text.row_lengths[rows_R]
        marks_X = np.full(int(lengths_R.sum()), INSIDE, np.int64)
        marks_X[lengths_R.cumsum() - lengths_R] = self.signs.gather(0, sentences_B)[0]
        return marks_X, lengths_B
