"""BPE-dropout over shards: word ids, and a table from each word to its segmentations [Provilkov20 §3.2].

Which segmentation a word of a batch gets is a function of (seed, epoch, sentence, word), so nothing is ever saved.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.shards import Shards, Side, SideWriter, Writing, ragged
from regard.keys import key
from regard.text.bpe_dropout import Segmenter
from regard.text.tokenizer import Tokenizer

PART = 65_536
"""Sentences whose words are in memory at a time while tokens are counted."""


class WordTable:
    """Numbers the words of a side while it is written; word 0 is ``</s>``.

    Args:
        tokenizer: splits texts into words.
        segmenter: segments them.
        draws: segmentations kept for each word, beside the one without dropout.
    """

    def __init__(self, tokenizer: Tokenizer, segmenter: Segmenter, draws: int) -> None:
        self._tokenizer, self._segmenter, self._draws = tokenizer, segmenter, draws
        self._number: dict[str, int] = {}
        self._plain: list[int] = [1]

    def words(self, text: str) -> tuple[NDArray[np.int64], int]:
        """The numbers of a text's words, ``</s>`` last, and how many pieces they are without dropout."""
        numbers = [self._numbered(word) for word in self._tokenizer.words(text)] + [0]
        return np.array(numbers, dtype=np.int64), sum(self._plain[number] for number in numbers)

    def _numbered(self, word: str) -> int:
        number = self._number.get(word)
        if number is None:
            number = self._number[word] = len(self._plain)
            self._plain.append(len(self._segmenter.plain(word)))
        return number

    def write(self, folder: Path, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Draw and write every word's segmentations: the table's entry for the index, and those of its files."""
        with ExitStack() as stack:
            rows = SideWriter(folder, f"{name}.segmentations", self._tokenizer.size)
            stack.callback(rows.release)
            first = Writing(folder / f"{name}.words")
            stack.callback(first.release)
            begins = [0, 1]
            rows.add([np.array([self._tokenizer.end], dtype=np.int64)])
            for word in self._number:
                rows.add([np.array(ids, dtype=np.int64) for ids in self._segmentations(word)])
                begins.append(rows.count)
            first.write(np.array(begins, dtype="<i8"))
            entry, files = rows.close()
            files[first.name] = first.close()
        return {"rows": entry, "words": first.name}, files

    def _segmentations(self, word: str) -> Iterable[list[int]]:
        """First the one without dropout, then the draws; a word that always comes out the same has only the first."""
        plain = self._segmenter.plain(word)
        drawn = self._segmenter.drawn(word, self._draws)
        return [plain, *drawn] if any(ids != plain for ids in drawn) else [plain]


class SegmentedShards:
    """A side whose words are segmented anew in every epoch; fits :class:`~regard.data.shards.Side`.

    A sentence whose draws would make it longer than ``max_tokens`` gets its plain segmentation in that epoch; so
    ``longest`` is what no sentence of any epoch exceeds.
    """

    def __init__(self, folder: Path, entry: dict[str, Any], table: dict[str, Any], seed: int, max_tokens: int) -> None:
        self._words: Side = Shards(folder, entry)
        self._rows: Side = Shards(folder, table["rows"])
        self._first: NDArray[np.int64] = np.fromfile(folder / table["words"], dtype="<i8")
        self._row_lengths = self._rows.lengths(0, np.arange(self._rows.count))
        self._seed, self.longest = seed, max_tokens
        self.count = self._words.count

    @cached_property
    def tokens(self) -> int:
        """Tokens of epoch 0; the other epochs have nearly as many."""
        parts = (np.arange(begin, min(begin + PART, self.count)) for begin in range(0, self.count, PART))
        return sum(int(self.lengths(0, part_B).sum()) for part_B in parts)

    def lengths(self, epoch: int, sentences_B: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._chosen(epoch, sentences_B)[1]

    def gather(self, epoch: int, sentences_B: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows_R, lengths_B = self._chosen(epoch, sentences_B)
        return self._rows.gather(0, rows_R)[0], lengths_B

    def _chosen(self, epoch: int, sentences_B: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The segmentation of each word end to end, and the tokens of each sentence."""
        words_R, counts_B = self._words.gather(0, sentences_B)
        place_R = ragged(np.zeros_like(counts_B), counts_B)
        first_R = self._first[words_R]
        draws_R = self._first[words_R + 1] - first_R - 1
        bits_R = scattered(key(self._seed, "segmentations", epoch), np.repeat(sentences_B, counts_B), place_R)
        rows_R = first_R + np.where(draws_R > 0, 1 + bits_R % np.maximum(draws_R, 1), 0)
        lengths_B = self._summed(rows_R, counts_B)
        too_long_B = lengths_B > self.longest
        if too_long_B.any():
            rows_R = np.where(np.repeat(too_long_B, counts_B), first_R, rows_R)
            lengths_B = self._summed(rows_R, counts_B)
        return rows_R, lengths_B

    def _summed(self, rows_R: NDArray[np.int64], counts_B: NDArray[np.int64]) -> NDArray[np.int64]:
        ends = np.concatenate([[0], self._row_lengths[rows_R].cumsum()])
        last = counts_B.cumsum()
        return np.asarray(ends[last] - ends[last - counts_B], dtype=np.int64)


def scattered(bits: int, sentences_R: NDArray[np.int64], places_R: NDArray[np.int64]) -> NDArray[np.int64]:
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
