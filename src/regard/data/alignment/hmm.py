"""Word alignment by statistics: IBM Model 1 [Brown93 §4.1], then a hidden Markov model [Vogel96], both by EM.

Each target word is a translation of one source word, the state of a Markov chain whose steps depend on how far they go;
or of none (NULL), where the chain waits [Och03 §2.1.2]. Both directions learn to agree [Liang06]; links are by the mean
of their posteriors.

Sentences with as many source words are computed together. The letters of shapes are N sentences, J target words, I
source words, Z one more for NULL, which is first; E entries of the table of translations, and W widths of a jump.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from regard.data.alignment.links import Links

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Words = Sequence[Hashable]
"""The words of a sentence, in whatever form tells them apart."""
NULL = 0.2
"""Probability that a target word translates no source word [Och03 §6]."""
ITERATIONS = 5
"""Of EM, for each of both models."""
WIDEST = 50
"""Jumps of more words than this are equally probable."""
UNSEEN = 1e-9
"""Probability of a translation that no pair of the data shows."""
CELLS = 1 << 20
"""Pairs of words that are computed at once."""
LONGEST = 200
"""Words of a sentence; longer ones are not learned from, and have no links."""
LEARNED = 100_000
"""Pairs of sentences that are learned from, the first ones."""
AT_ONCE = 10_000
"""Pairs of sentences that are aligned at once."""
SURE = 0.5
"""Posterior probability of a link, the mean of both directions."""


@dataclass(frozen=True)
class Block:
    """Sentences with as many source words each: their places, and the entries of their pairs of words."""

    rows_N: Ints
    length_N: Ints
    entry_NJZ: NDArray[np.int32]

    @property
    def real_NJ(self) -> NDArray[np.bool_]:
        """Which target words are there."""
        places: NDArray[np.bool_] = np.arange(self.entry_NJZ.shape[1]) < self.length_N[:, None]
        return places

    def rows(self, posterior_NJZ: Floats) -> Iterator[tuple[int, Floats]]:
        """Each sentence's place, and what is of its target words alone, which is no copy."""
        for place, (row, length) in enumerate(zip(self.rows_N.tolist(), self.length_N.tolist(), strict=True)):
            yield row, posterior_NJZ[place, :length]


@dataclass(frozen=True)
class TranslationTable:
    """Probabilities of a target word given a source word, and of a jump given its width.

    Args:
        key_E: source word times ``targets`` plus target word, ascending.
        probability_E1: of each, and last of all that have no entry.
        jump_W: of each width from -:data:`WIDEST` to :data:`WIDEST`, not normalised.
        targets: how many target words there are, those that are unknown one of them.
    """

    key_E: Ints
    probability_E1: Floats
    jump_W: Floats
    targets: int

    @classmethod
    def of(cls, sources: Sequence[Ints], targets: Sequence[Ints]) -> TranslationTable:
        """The table of pairs of sentences, of words numbered from 1, in which each translation is equally probable."""
        size = 1 + max((int(words.max()) for words in targets if len(words)), default=0)
        key_E = np.unique(np.concatenate([np.zeros(0, np.int64), *_keys(sources, targets, size)]))
        even = cls(key_E, np.append(np.ones(len(key_E)), UNSEEN), np.ones(2 * WIDEST + 1), size)
        return even.normalised(even.probability_E1)

    def improved(self, model: Model, blocks: Sequence[Block]) -> tuple[TranslationTable, float]:
        """The table after one step of EM, and the log-likelihood of the blocks before it."""
        expected = [model(self, block) for block in blocks]
        return self.counted(blocks, expected), sum(likelihood for _, _, likelihood in expected)

    def counted(self, blocks: Sequence[Block], expected: Sequence[Expected]) -> TranslationTable:
        """The table of what is expected in each block."""
        count_E1, jump_W = np.zeros_like(self.probability_E1), np.full_like(self.jump_W, UNSEEN)
        for block, (posterior_NJZ, jump_II, _) in zip(blocks, expected, strict=True):
            np.add.at(count_E1, block.entry_NJZ.ravel(), posterior_NJZ.ravel())
            np.add.at(jump_W, widths(len(jump_II)).ravel(), jump_II.ravel())
        return self.normalised(count_E1, jump_W)

    def normalised(self, count_E1: Floats, jump_W: Floats | None = None) -> TranslationTable:
        """The table of such counts: those of each source word sum to one."""
        source_E = self.key_E // self.targets
        total_E = np.bincount(source_E, count_E1[:-1])[source_E] if len(source_E) else np.zeros(0)
        probability_E1 = np.append(count_E1[:-1] / np.maximum(total_E, 1e-300), UNSEEN)
        return TranslationTable(self.key_E, probability_E1, self.jump_W if jump_W is None else jump_W, self.targets)

    def blocks(self, sources: Sequence[Ints], targets: Sequence[Ints]) -> Iterator[Block]:
        """The pairs of which no side is empty or too long, those with as many source words together."""
        every = [row for row in range(len(sources)) if 0 < len(sources[row]) <= LONGEST]
        every = [row for row in every if 0 < len(targets[row]) <= LONGEST]
        rows: list[int] = []
        for row in sorted(every, key=lambda row: (len(sources[row]), len(targets[row]))):
            cells = (len(rows) + 1) * len(targets[row]) * len(sources[row])
            if rows and (len(sources[row]) != len(sources[rows[0]]) or cells > CELLS):
                yield self._block(rows, sources, targets)
                rows = []
            rows.append(row)
        if rows:
            yield self._block(rows, sources, targets)

    def _block(self, rows: list[int], sources: Sequence[Ints], targets: Sequence[Ints]) -> Block:
        length_N = np.array([len(targets[row]) for row in rows])
        target_NJ = np.zeros((len(rows), int(length_N.max())), np.int64)
        for place, row in enumerate(rows):
            target_NJ[place, : length_N[place]] = targets[row]
        source_NZ = np.pad(np.stack([sources[row] for row in rows]), ((0, 0), (1, 0)))
        key_NJZ = source_NZ[:, None, :] * self.targets + target_NJ[:, :, None]
        entry_NJZ = np.searchsorted(self.key_E, key_NJZ)
        known_NJZ = np.append(self.key_E, -1)[entry_NJZ] == key_NJZ
        return Block(np.array(rows), length_N, np.where(known_NJZ, entry_NJZ, len(self.key_E)).astype(np.int32))

    def posteriors(self, sources: Sequence[Ints], targets: Sequence[Ints]) -> list[Floats]:
        """``posterior_JI`` of each pair: how probable it is that a target word translates a source word."""
        found = [np.zeros((len(target), len(source))) for source, target in zip(sources, targets, strict=True)]
        for block in self.blocks(sources, targets):
            for row, posterior_JZ in block.rows(markov(self, block)[0]):
                found[row] = posterior_JZ[:, 1:]
        return found


Expected = tuple[Floats, Floats, float]
"""``posterior_NJZ`` of sentences, expected jumps, and the log-likelihood."""
Model = Callable[[TranslationTable, Block], Expected]


def learn_both(sources: Sequence[Ints], targets: Sequence[Ints]) -> tuple[TranslationTable, TranslationTable]:
    """The tables of both directions: each learns Model 1 alone, then both chains together [Liang06 §3]."""
    tables = TranslationTable.of(sources, targets), TranslationTable.of(targets, sources)
    blocks = list(tables[0].blocks(sources, targets)), list(tables[1].blocks(targets, sources))
    for _ in range(ITERATIONS):
        tables = tables[0].improved(model_1, blocks[0])[0], tables[1].improved(model_1, blocks[1])[0]
    for _ in range(ITERATIONS):
        there, back = ([markov(table, block) for block in some] for table, some in zip(tables, blocks, strict=True))
        _agree(blocks, there, back)
        tables = tables[0].counted(blocks[0], there), tables[1].counted(blocks[1], back)
    return tables


def _agree(blocks: tuple[list[Block], list[Block]], there: list[Expected], back: list[Expected]) -> None:
    """Both directions expect a link by the product of their posteriors [Liang06 eq. 6]; changed in place."""
    others = {
        row: posterior_JZ
        for block, one in zip(blocks[1], back, strict=True)
        for row, posterior_JZ in block.rows(one[0])
    }
    for block, one in zip(blocks[0], there, strict=True):
        for row, posterior_JZ in block.rows(one[0]):
            posterior_JZ[:, 1:] *= others[row][:, 1:].T
            others[row][:, 1:] = posterior_JZ[:, 1:].T


def _keys(sources: Sequence[Ints], targets: Sequence[Ints], size: int) -> Iterator[Ints]:
    """The different keys of pairs of words, NULL among the source words, of a few sentences at a time."""
    for begin in range(0, len(sources), 1000):
        pairs = zip(sources[begin : begin + 1000], targets[begin : begin + 1000], strict=True)
        yield np.unique(np.concatenate([(np.append(0, s)[:, None] * size + t).ravel() for s, t in pairs]))


def widths(words: int) -> Ints:
    """``width_II``: which jump leads from one source word to another."""
    place_I = np.arange(words)
    found: Ints = np.clip(place_I - place_I[:, None], -WIDEST, WIDEST) + WIDEST
    return found


def model_1(table: TranslationTable, block: Block) -> Expected:
    """``posterior_NJZ`` of IBM Model 1, no jumps, and the log-likelihood."""
    score_NJZ = table.probability_E1[block.entry_NJZ]
    words = score_NJZ.shape[2] - 1
    score_NJZ *= np.append(NULL, np.full(words, (1 - NULL) / words))
    total_NJ = np.where(block.real_NJ, score_NJZ.sum(2), 1.0)
    return score_NJZ * (block.real_NJ / total_NJ)[:, :, None], np.zeros((1, 1)), float(np.log(total_NJ).sum())


def markov(table: TranslationTable, block: Block) -> Expected:
    """``posterior_NJZ`` and ``jump_II``, how often each jump is expected, by forward and backward passes; the same."""
    score_NJZ, real_NJ = table.probability_E1[block.entry_NJZ], block.real_NJ
    null_NJ1, word_NJI = score_NJZ[:, :, :1] * NULL, score_NJZ[:, :, 1:] * (1 - NULL)
    count, steps, words = word_NJI.shape
    jump_II = table.jump_W[widths(words)]
    jump_II = jump_II / jump_II.sum(1, keepdims=True)
    at_NJI, waiting_NJI, total_NJ1 = np.empty_like(word_NJI), np.empty_like(word_NJI), np.empty_like(null_NJ1)
    before_NI = after_NI = np.full((count, words), 1 / words)
    for j in range(steps):
        at_NJI[:, j], waiting_NJI[:, j] = after_NI * word_NJI[:, j], before_NI * null_NJ1[:, j]
        total_NJ1[:, j] = np.maximum((at_NJI[:, j] + waiting_NJI[:, j]).sum(1, keepdims=True), 1e-300)
        at_NJI[:, j] /= total_NJ1[:, j]
        waiting_NJI[:, j] /= total_NJ1[:, j]
        before_NI = at_NJI[:, j] + waiting_NJI[:, j]
        after_NI = before_NI @ jump_II
    posterior_NJZ, expected_II, rest_NI = np.zeros_like(score_NJZ), np.zeros_like(jump_II), np.ones((count, words))
    for j in reversed(range(steps)):
        real_N1 = real_NJ[:, j, None]
        posterior_NJZ[:, j, 0] = ((waiting_NJI[:, j] * rest_NI).sum(1, keepdims=True) * real_N1)[:, 0]
        posterior_NJZ[:, j, 1:] = at_NJI[:, j] * rest_NI * real_N1
        if j:
            next_NI = word_NJI[:, j] * rest_NI / total_NJ1[:, j]
            expected_II += ((at_NJI[:, j - 1] + waiting_NJI[:, j - 1]) * real_N1).T @ next_NI * jump_II
            rest_NI = np.where(real_N1, next_NI @ jump_II.T + rest_NI * null_NJ1[:, j] / total_NJ1[:, j], rest_NI)
    return posterior_NJZ, expected_II, float(np.log(total_NJ1[:, :, 0][real_NJ]).sum())


def _numbers(known: dict[Hashable, int], sentences: Sequence[Words]) -> list[Ints]:
    """The numbers of the words of each sentence; 0 of those that are not known."""
    return [np.array([known.get(word, 0) for word in words], np.int64) for words in sentences]


class WordAligner:
    """Aligns words as it learned from pairs of sentences.

    Args:
        sources, targets: the words of each sentence, and of its translation.
    """

    def __init__(self, sources: Sequence[Words], targets: Sequence[Words]) -> None:
        sides = sources[:LEARNED], targets[:LEARNED]
        words = (dict.fromkeys(chain.from_iterable(side)) for side in sides)
        self._known = [{word: number for number, word in enumerate(some, 1)} for some in words]
        self._tables = learn_both(*map(_numbers, self._known, sides))

    def align(self, sources: Sequence[Words], targets: Sequence[Words]) -> list[Links]:
        """The links of each pair of sentences whose posterior, the mean of both directions, is at least one half."""
        found: list[Links] = []
        for begin in range(0, len(sources), AT_ONCE):
            some = sources[begin : begin + AT_ONCE], targets[begin : begin + AT_ONCE]
            source, target = map(_numbers, self._known, some)
            there, back = self._tables[0].posteriors(source, target), self._tables[1].posteriors(target, source)
            for one_JI, other_IJ in zip(there, back, strict=True):
                places_IJ = np.argwhere((one_JI.T + other_IJ) / 2 >= SURE)
                found.append(frozenset((i, j) for i, j in places_IJ.tolist()))
        return found
