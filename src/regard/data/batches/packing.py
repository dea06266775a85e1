"""Packing of sentences end to end into a batch of fixed shape (ARCHITECTURE idea 1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from regard.data.batches.batch import Capacity, Packed, PairBatch
from regard.system.errors import RegardError

Ids = NDArray[np.int64]


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


def shift_right(labels_T: Ids, lengths_B: Ids, start: int) -> Ids:
    """Decoder input: each sentence shifted right by one position after the start symbol [Vaswani17 §3.1]."""
    ids_T = np.empty_like(labels_T)
    ids_T[1:] = labels_T[:-1]
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


def _concatenate(sentences: Sequence[Ids]) -> tuple[Ids, Ids]:
    lengths = np.array([len(ids) for ids in sentences], dtype=np.int64)
    if not lengths.all():
        raise RegardError("a sentence without tokens cannot be packed; each ends with </s>")
    ids = np.concatenate(sentences) if len(sentences) else np.zeros(0)
    return ids.astype(np.int64), lengths


def pack(
    sources: Sequence[Ids],
    targets: Sequence[Ids],
    start: int,
    capacity: Capacity | None = None,
    sentences: Ids | None = None,
) -> PairBatch:
    """A batch of given sentence pairs, each side's ids ending with ``</s>``.

    Args:
        sources: ids of each source sentence.
        targets: ids of each target sentence.
        start: the start symbol of the target side.
        capacity: the shape; default: just large enough.
        sentences: their numbers in a corpus; default: counted from 0.
    """
    source, target = _concatenate(sources), _concatenate(targets)
    if len(source[1]) != len(target[1]):
        raise RegardError(f"{len(source[1])} sources for {len(target[1])} targets")
    capacity = capacity or Capacity(len(source[0]), len(target[0]), len(source[1]))
    numbers = np.arange(len(source[1])) if sentences is None else sentences
    return make_pair_batch(source, target, start, capacity, numbers)


def pack_sources(sources: Sequence[Ids], tokens: int | None = None, sentences: int | None = None) -> Packed:
    """Sentences to encode only, each ending with ``</s>``; the shape is just large enough unless given."""
    ids, lengths = _concatenate(sources)
    return pad_to_capacity(ids, lengths, tokens or len(ids), sentences or len(lengths))


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
