"""What is hidden to be guessed: single pieces and whole words [Devlin19 §3.1], or spans [Raffel20 §3.1.4]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.config import Masking

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Symbols:
    """What masking must know of a vocabulary.

    Args:
        mask: the symbol that stands for what is hidden.
        pieces: ids that a random piece is drawn from: from the first of these to below the second.
    """

    mask: int
    pieces: tuple[int, int]


def masked(
    ids_T: Ids,
    starts_T: NDArray[np.bool_],
    free_T: NDArray[np.bool_],
    symbols: Symbols,
    section: Masking,
    random: np.random.Generator,
) -> tuple[Ids, NDArray[np.bool_]]:
    """``(ids_T, hidden_T)``: what the model reads, and where it must guess what stood there [Devlin19 §3.1].

    Args:
        ids_T: tokens end to end.
        starts_T: True where a token begins a word; tokens that follow without one belong to it.
        free_T: True where a token may be hidden: no symbol, and inside of a text.
        symbols: of the vocabulary.
        section: the recipe's shares; a share of the words is drawn, so the share of the tokens is met on average.
        random: decides.
    """
    word_T = np.cumsum(starts_T | ~free_T) if section.whole_words else np.arange(len(ids_T))
    count = int(word_T[-1]) + 1 if len(word_T) else 0
    hidden_T = (random.random(count) < section.share)[word_T] & free_T
    how = random.random(len(ids_T))
    drawn = random.integers(*symbols.pieces, size=len(ids_T))
    read_T = np.where(hidden_T & (how < section.mask), symbols.mask, ids_T)
    randomly_T = hidden_T & (how >= section.mask) & (how < section.mask + section.random)
    return np.where(randomly_T, drawn, read_T), hidden_T


def corrupted_lengths(lengths_B: Ids, section: Masking) -> tuple[Ids, Ids]:
    """Tokens of source and target, ``</s>`` counted, of texts of so many tokens, their spans corrupted."""
    hidden_B, spans_B = _counts(lengths_B, section)
    return lengths_B - hidden_B + spans_B + 1, hidden_B + spans_B + 1


def corrupted(
    text: Ids, sentinels: tuple[int, ...], end: int, section: Masking, random: np.random.Generator
) -> tuple[Ids, Ids]:
    """``(source, target)``: spans become one sentinel each; the target says each sentinel's span [Raffel20 §3.1.4].

    Both end with ``</s>``. How many tokens and spans are hidden depends on the length alone.
    """
    hidden, spans = (int(count[0]) for count in _counts(np.array([len(text)]), section))
    spans = min(spans, len(sentinels))
    if not hidden:
        return np.append(text, end), np.array([end], np.int64)
    inside = _parts(hidden, spans, random)
    between = _parts(len(text) - hidden, spans, random)
    source: list[Ids] = []
    target: list[Ids] = []
    place = 0
    for number in range(spans):
        kept = text[place : place + between[number]]
        span = text[place + between[number] : place + between[number] + inside[number]]
        sentinel = np.array([sentinels[number]], np.int64)
        source += [kept, sentinel]
        target += [sentinel, span]
        place += int(between[number] + inside[number])
    stop = np.array([end], np.int64)
    return np.concatenate([*source, text[place:], stop]), np.concatenate([*target, stop])


def _counts(lengths_B: Ids, section: Masking) -> tuple[Ids, Ids]:
    """Tokens hidden and spans of texts of these lengths; at least one of each where there are two tokens."""
    hidden_B = np.clip(np.rint(lengths_B * section.share).astype(np.int64), 1, np.maximum(lengths_B - 1, 0))
    spans_B = np.clip(np.rint(hidden_B / section.span).astype(np.int64), np.minimum(hidden_B, 1), hidden_B)
    return hidden_B, np.minimum(spans_B, np.maximum(lengths_B - hidden_B, 0))


def _parts(total: int, count: int, random: np.random.Generator) -> Ids:
    """``total`` cut at random into ``count`` parts of one or more."""
    cuts = np.sort(random.choice(np.arange(1, total), count - 1, replace=False)) if count > 1 else np.zeros(0, np.int64)
    return np.diff(np.concatenate([[0], cuts, [total]])).astype(np.int64)
