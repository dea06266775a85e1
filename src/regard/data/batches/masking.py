"""Token masking: single pieces and whole words [Devlin19 §3.1], and span corruption [Raffel20 §3.1.4]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.config import Masking

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class MaskingSymbols:
    """The parts of a vocabulary that masking needs.

    Args:
        mask: the symbol that replaces a hidden token.
        pieces: the ids that random replacements are drawn from.
    """

    mask: int
    pieces: Ids


def mask_tokens(
    ids_T: Ids,
    starts_T: NDArray[np.bool_],
    free_T: NDArray[np.bool_],
    symbols: MaskingSymbols,
    section: Masking,
    random: np.random.Generator,
) -> tuple[Ids, NDArray[np.bool_]]:
    """``(ids_T, hidden_T)``: the masked input, and the positions to predict [Devlin19 §3.1].

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
    drawn = symbols.pieces[random.integers(len(symbols.pieces), size=len(ids_T))]
    read_T = np.where(hidden_T & (how < section.mask), symbols.mask, ids_T)
    randomly_T = hidden_T & (how >= section.mask) & (how < section.mask + section.random)
    return np.where(randomly_T, drawn, read_T), hidden_T


def corrupted_lengths(lengths_B: Ids, sentinels: int, section: Masking) -> tuple[Ids, Ids]:
    """Tokens of source and target, ``</s>`` counted, of texts of these lengths after span corruption.

    Args:
        lengths_B: tokens of each text.
        sentinels: how many there are.
        section: the recipe's share and mean length of a span.
    """
    hidden_B, spans_B = _counts(lengths_B, sentinels, section)
    return lengths_B - hidden_B + spans_B + 1, hidden_B + spans_B + (spans_B > 0) + 1


def corrupt_spans(
    text: Ids, sentinels: tuple[int, ...], end: int, section: Masking, random: np.random.Generator
) -> tuple[Ids, Ids]:
    """``(source, target)``: a sentinel replaces each span; the target lists sentinels and spans [Raffel20 §3.1.4].

    The target closes with one more sentinel, and both end with ``</s>``. How many tokens and spans are hidden depends
    on the length alone, and on how many sentinels there are.
    """
    hidden, spans = (int(count[0]) for count in _counts(np.array([len(text)]), len(sentinels), section))
    stop = np.array([end], np.int64)
    if not spans:
        return np.append(text, end), stop
    inside = _parts(hidden, spans, random)
    between = _parts(len(text) - hidden, spans, random)
    source: list[Ids] = []
    target: list[Ids] = []
    place = 0
    for sentinel, before, length in zip(sentinels, between.tolist(), inside.tolist(), strict=False):
        kept, place = text[place : place + before], place + before
        source += [kept, np.array([sentinel], np.int64)]
        target += [np.array([sentinel], np.int64), text[place : place + length]]
        place += length
    closing = np.array([sentinels[spans]], np.int64)
    return np.concatenate([*source, stop]), np.concatenate([*target, closing, stop])


def _counts(lengths_B: Ids, sentinels: int, section: Masking) -> tuple[Ids, Ids]:
    """Tokens hidden and spans of texts of these lengths; at least one of each where there are two tokens.

    A span has a token before it, and there is a sentinel for each and one for the end; without any nothing is hidden.
    """
    hidden_B = np.rint(lengths_B * section.share).astype(np.int64)
    hidden_B = np.minimum(np.maximum(hidden_B, 1), np.maximum(lengths_B - 1, 0))
    spans_B = np.maximum(np.rint(hidden_B / section.span).astype(np.int64), 1)
    most_B = np.minimum(np.minimum(hidden_B, lengths_B - hidden_B), max(0, sentinels - 1))
    spans_B = np.minimum(spans_B, most_B)
    return np.where(spans_B > 0, hidden_B, 0), spans_B


def _parts(total: int, count: int, random: np.random.Generator) -> Ids:
    """``total`` cut at random into ``count`` parts of one or more."""
    cuts = np.sort(random.choice(np.arange(1, total), count - 1, replace=False)) if count > 1 else np.zeros(0, np.int64)
    return np.diff(np.concatenate([[0], cuts, [total]])).astype(np.int64)
