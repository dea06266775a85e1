"""Sentences laid end to end into the fixed shape of a batch (DESIGN idea 1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.data.batch import Batch, Packed
from regard.data.capacity import Capacity
from regard.errors import RegardError

Ids = NDArray[np.int64]


def packed(ids_T: Ids, lengths_B: Ids, tokens: int, sentences: int) -> Packed:
    """Sentences that already lie end to end, with spare tokens (id 0) and spare sentences (length 0) behind them."""
    count, used = len(lengths_B), len(ids_T)
    if used > tokens or count > sentences:
        raise RegardError(f"{used} tokens in {count} sentences do not fit into {tokens} tokens, {sentences} sentences")
    whole_T, starts_B, whole_B = (
        np.zeros(tokens, np.int64),
        np.full(sentences, used, np.int64),
        np.zeros(sentences, np.int64),
    )
    whole_T[:used] = ids_T
    whole_B[:count] = lengths_B
    starts_B[:count] = lengths_B.cumsum() - lengths_B
    return Packed(whole_T, starts_B, whole_B, count)


def shifted(labels_T: Ids, lengths_B: Ids, start: int) -> Ids:
    """What the decoder reads: each sentence one place to the right, the start symbol in front [Vaswani17 §3.1]."""
    ids_T = np.empty_like(labels_T)
    ids_T[1:] = labels_T[:-1]
    ids_T[lengths_B.cumsum() - lengths_B] = start
    return ids_T


def assembled(
    source: tuple[Ids, Ids], target: tuple[Ids, Ids], start: int, capacity: Capacity, sentences: Ids
) -> Batch:
    """A batch of ``(ids_T, lengths_B)`` of both sides, each sentence ending with ``</s>``."""
    labels_T, lengths_B = target
    room = capacity.target
    whole_T, weight_T = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.float32)
    read = packed(shifted(labels_T, lengths_B, start), lengths_B, room, capacity.sentences)
    whole_T[: len(labels_T)] = labels_T
    weight_T[: len(labels_T)] = 1.0
    return Batch(packed(*source, capacity.source, capacity.sentences), read, whole_T, weight_T, sentences)


def _joined(sentences: Sequence[Ids]) -> tuple[Ids, Ids]:
    lengths_B = np.array([len(ids) for ids in sentences], dtype=np.int64)
    if len(sentences) and not lengths_B.all():
        raise RegardError("a sentence without tokens cannot be packed; each ends with </s>")
    return (np.concatenate(sentences) if len(sentences) else np.zeros(0)).astype(np.int64), lengths_B


def pack(
    sources: Sequence[Ids],
    targets: Sequence[Ids],
    start: int,
    capacity: Capacity | None = None,
    sentences: Ids | None = None,
) -> Batch:
    """A batch of given sentence pairs, each side's ids ending with ``</s>``.

    Args:
        sources: ids of each source sentence.
        targets: ids of each target sentence.
        start: the start symbol of the target side.
        capacity: the shape; default: just large enough.
        sentences: their numbers in a corpus; default: counted from 0.
    """
    source, target = _joined(sources), _joined(targets)
    if len(source[1]) != len(target[1]):
        raise RegardError(f"{len(source[1])} sources for {len(target[1])} targets")
    capacity = capacity or Capacity(len(source[0]), len(target[0]), len(source[1]))
    numbers = np.arange(len(source[1])) if sentences is None else sentences
    return assembled(source, target, start, capacity, numbers)


def pack_sources(sources: Sequence[Ids], tokens: int | None = None, sentences: int | None = None) -> Packed:
    """Sentences to encode only, each ending with ``</s>``; the shape is just large enough unless given."""
    ids_T, lengths_B = _joined(sources)
    room = len(ids_T) if tokens is None else tokens
    return packed(ids_T, lengths_B, room, len(lengths_B) if sentences is None else sentences)
