"""Packed batches: sentences end to end without padding, in a fixed shape (ARCHITECTURE idea 1)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from regard.system.errors import RegardError

Ids = NDArray[np.int64]


class Batch(Protocol):
    """The sizes that training needs of any batch."""

    @property
    def tokens(self) -> int:
        """Real tokens, the unit of speed: target tokens where there is a target."""

    @property
    def room(self) -> int:
        """Tokens there is room for."""


@dataclass(frozen=True)
class Packed:
    """One side of a batch. ``starts_B[b], lengths_B[b]`` say where sentence *b* lies in ``ids_T``.

    ``ids_T`` has the fixed capacity of the plan. Tokens after the last sentence belong to none of them: they attend
    to nothing and nothing attends to them (their id is 0). Spare sentences have length 0. ``count`` sentences are real;
    they come first.
    """

    ids_T: Ids
    starts_B: Ids
    lengths_B: Ids
    count: int


@dataclass(frozen=True)
class EncoderBatch:
    """A batch of one side, which an encoder or a language model reads."""

    text: Packed

    @property
    def tokens(self) -> int:
        """Real tokens."""
        return int(self.text.lengths_B.sum())

    @property
    def room(self) -> int:
        """Tokens there is room for."""
        return len(self.text.ids_T)


@dataclass(frozen=True)
class PairBatch:
    """Sentence pairs for teacher forcing [Vaswani17 §3.1]: the decoder reads ``target`` and must predict ``labels_T``.

    ``source`` ends each sentence with ``</s>``; ``target`` begins each with the start symbol; ``labels_T`` is the
    target shifted left, ending with ``</s>``; ``weight_T`` is 1.0 at real positions, 0.0 after the last sentence.
    """

    source: Packed
    target: Packed
    labels_T: Ids
    weight_T: NDArray[np.float32]
    sentences: Ids
    """Sentence numbers in the corpus, in order."""

    @property
    def tokens(self) -> int:
        """Real target tokens."""
        return int(self.target.lengths_B.sum())

    @property
    def room(self) -> int:
        """Target tokens there is room for."""
        return len(self.target.ids_T)


@dataclass(frozen=True, order=True)
class Position:
    """Position of a batch in the plan: three integers, all the data state that a checkpoint saves."""

    epoch: int = 0
    block: int = 0
    batch: int = 0


@dataclass(frozen=True)
class BatchRange:
    """Which batches of each group of ``of`` consecutive ones a process reads: from ``first`` up to before ``end``."""

    first: int = 0
    end: int = 1
    of: int = 1


EVERY_BATCH = BatchRange()
"""Every batch."""


@dataclass(frozen=True)
class Capacity:
    """The fixed shape of every batch: tokens on each side, and slots for sentences."""

    source: int
    target: int
    sentences: int


def capacity_for(tokens: int, source_tokens: int, target_tokens: int, pairs: int, longest: int) -> Capacity:
    """The shape for ``tokens`` target tokens of a corpus with these totals.

    The source side has the corpus's share, rounded up to 64, at least the longest sentence. Half as many slots again as
    an average batch needs: short sentences seldom run out of them.
    """
    ratio = source_tokens / max(1, target_tokens)
    source = 64 * math.ceil(max(tokens * ratio, min(longest, tokens)) / 64)
    slots = 8 * math.ceil(1.5 * tokens * pairs / max(1, target_tokens) / 8)
    return Capacity(source, tokens, max(8, min(tokens, slots)))


def pad_to_capacity(ids: Ids, lengths: Ids, tokens: int, sentences: int) -> Packed:
    """Pad sentences that lie end to end to a fixed shape with tokens of id 0 and sentences of length 0."""
    count, used = len(lengths), len(ids)
    if used > tokens or count > sentences:
        raise RegardError(f"{used} tokens in {count} sentences do not fit into {tokens} tokens, {sentences} sentences")
    ids_T = np.zeros(tokens, dtype=np.int64)
    starts_B, lengths_B = np.full(sentences, used, dtype=np.int64), np.zeros(sentences, dtype=np.int64)
    ids_T[:used] = ids
    lengths_B[:count] = lengths
    starts_B[:count] = lengths.cumsum() - lengths
    return Packed(ids_T, starts_B, lengths_B, count)


def shift_right(labels_T: Ids, lengths_B: Ids, start: int | Ids) -> Ids:
    """Decoder input: each sentence shifted right by one position after the start symbol [Vaswani17 §3.1].

    Args:
        labels_T: the sentences end to end.
        lengths_B: tokens of each.
        start: the start symbol, or what comes before each sentence.
    """
    ids_T = np.roll(labels_T, 1)
    ids_T[lengths_B.cumsum() - lengths_B] = start
    return ids_T


def make_pair_batch(
    source: tuple[Ids, Ids], target: tuple[Ids, Ids], start: int, capacity: Capacity, sentences: Ids
) -> PairBatch:
    """A batch of ``(ids_T, lengths_B)`` of both sides, each sentence ending with ``</s>``."""
    labels, lengths = target
    labels_T, weight_T = np.zeros(capacity.target, dtype=np.int64), np.zeros(capacity.target, dtype=np.float32)
    labels_T[: len(labels)] = labels
    weight_T[: len(labels)] = 1.0
    read = pad_to_capacity(shift_right(labels, lengths, start), lengths, capacity.target, capacity.sentences)
    return PairBatch(pad_to_capacity(*source, capacity.source, capacity.sentences), read, labels_T, weight_T, sentences)


def pack_sources(sources: Sequence[Ids]) -> Packed:
    """Sentences to encode only, each ending with ``</s>``, in a shape just large enough."""
    lengths = np.array([len(ids) for ids in sources], dtype=np.int64)
    if not lengths.all():
        raise RegardError("a sentence without tokens cannot be packed; each ends with </s>")
    ids = np.concatenate(sources) if len(sources) else np.zeros(0)
    return pad_to_capacity(ids.astype(np.int64), lengths, len(ids), len(lengths))


def batches_in_order(lengths: Sequence[Ids], room: Sequence[int], sentences: int) -> Iterator[Ids]:
    """The sentences in order, each once, as many at a time as fit into a batch.

    Args:
        lengths: for each side the tokens of every sentence.
        room: for each side the tokens of a batch.
        sentences: of a batch.
    """
    each = np.stack([*lengths, np.ones_like(lengths[0])])
    most = np.array([*room, sentences])
    begin = 0
    while begin < each.shape[1]:
        used = each[:, begin : begin + sentences].cumsum(axis=1)
        count = max(1, int((used <= most[:, None]).all(axis=0).sum()))
        yield np.arange(begin, begin + count)
        begin += count


def batches_by_length(lengths: Ids, room: int) -> Iterator[Ids]:
    """The sentences from long to short, each once, those of similar length in one batch of ``room`` tokens."""
    order = np.argsort(-lengths, kind="stable")
    yield from (order[part] for part in batches_in_order([lengths[order]], [room], len(lengths)))
