"""Running text as pairs: spans are missing from what is read, and are what is to be written [Raffel20 §3.1.4]."""

from __future__ import annotations

import numpy as np

from regard.config import TextToTextSection
from regard.data.batches.batch import Ids
from regard.data.batches.language_modelling import Windows
from regard.system.keys import generator
from regard.text.tokenizers.vocabulary import AnyTokenizer


class SpanWindows:
    """What is read of windows of running text, or what is to be written; a ``shards.Side``.

    Spans are drawn by seed, epoch and window, so that both sides of a window fit. How long these are depends on the
    window alone.

    Args:
        windows: of documents.
        target: what is to be written.
        tokenizer: its sentinels and ``</s>``.
        section: the share that is missing, and the mean length of a span.
        seed: of the spans.
        most: windows at most, evenly chosen; default: all.
    """

    def __init__(
        self,
        windows: Windows,
        target: bool,
        tokenizer: AnyTokenizer,
        section: TextToTextSection,
        seed: int,
        most: int | None = None,
    ) -> None:
        self._windows, self._target, self._section, self._seed = windows, target, section, seed
        self._sentinels, self._end = tokenizer.sentinels, tokenizer.end
        self.count = windows.count if most is None else min(most, windows.count)
        self._chosen_B = np.linspace(0, windows.count - 1, self.count).round().astype(np.int64)
        self.tokens = int(self.lengths(0, np.arange(self.count)).sum())
        self.longest = int(self._side_lengths(np.array([windows.longest]))[0])

    def lengths(self, epoch: int, sentences_B: Ids) -> Ids:
        return self._side_lengths(self._windows.lengths(epoch, self._chosen_B[sentences_B]))

    def gather(self, epoch: int, sentences_B: Ids) -> tuple[Ids, Ids]:
        chosen_B = self._chosen_B[sentences_B]
        ids, lengths_B = self._windows.gather(epoch, chosen_B)
        texts = np.split(ids, lengths_B.cumsum()[:-1])
        found = [self._side(text, epoch, number) for text, number in zip(texts, chosen_B.tolist(), strict=True)]
        return np.concatenate(found), self._side_lengths(lengths_B)

    def _side_lengths(self, lengths_B: Ids) -> Ids:
        return corrupted_lengths(lengths_B, len(self._sentinels), self._section)[self._target]

    def _side(self, text: Ids, epoch: int, number: int) -> Ids:
        random = generator(self._seed, "spans", epoch, number)
        return corrupt_spans(text, self._sentinels, self._end, self._section, random)[self._target]


def corrupted_lengths(lengths_B: Ids, sentinels: int, section: TextToTextSection) -> tuple[Ids, Ids]:
    """Tokens of source and target, ``</s>`` counted, of texts of these lengths after span corruption.

    Args:
        lengths_B: tokens of each text.
        sentinels: how many there are.
        section: the recipe's share and mean length of a span.
    """
    hidden_B, spans_B = _counts(lengths_B, sentinels, section)
    return lengths_B - hidden_B + spans_B + 1, hidden_B + spans_B + (spans_B > 0) + 1


def corrupt_spans(
    text: Ids, sentinels: tuple[int, ...], end: int, section: TextToTextSection, random: np.random.Generator
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


def _counts(lengths_B: Ids, sentinels: int, section: TextToTextSection) -> tuple[Ids, Ids]:
    """Tokens hidden and spans of texts of these lengths; at least one of each where there are two tokens.

    A span has a token before it, and there is a sentinel for each and one for the end; without any nothing is hidden.
    """
    hidden_B = np.rint(lengths_B * section.span_share).astype(np.int64)
    hidden_B = np.minimum(np.maximum(hidden_B, 1), np.maximum(lengths_B - 1, 0))
    spans_B = np.maximum(np.rint(hidden_B / section.span_length).astype(np.int64), 1)
    most_B = np.minimum(np.minimum(hidden_B, lengths_B - hidden_B), max(0, sentinels - 1))
    spans_B = np.minimum(spans_B, most_B)
    return np.where(spans_B > 0, hidden_B, 0), spans_B


def _parts(total: int, count: int, random: np.random.Generator) -> Ids:
    """``total`` cut at random into ``count`` parts of one or more."""
    cuts = np.sort(random.choice(np.arange(1, total), count - 1, replace=False)) if count > 1 else np.zeros(0, np.int64)
    return np.diff(np.concatenate([[0], cuts, [total]])).astype(np.int64)
