"""Batches of running text: next token, masked tokens [Devlin19 §3.1], spans that are missing [Raffel20 §3.1.4]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.config import Masking, Recipe, TextToTextSection
from regard.data.batches.batch import (
    Capacity,
    EncoderBatch,
    Ids,
    Position,
    batches_in_order,
    capacity_for,
    pad_to_capacity,
    shift_right,
)
from regard.data.batches.sampler import DataLoader, plan_batches
from regard.data.prepare.shards import Shards, ragged_indices
from regard.data.prepare.windowing import Frame
from regard.system.keys import generator
from regard.text.tokenizers.vocabulary import AnyTokenizer

Cut = tuple[Ids, Ids, Ids, Ids]
"""Windows end to end: input ids, the length of each, the positions to predict, and the original ids there."""


class Windows:
    """The windows of all documents, numbered through.

    A document that fits is one window. A longer one is cut every ``length`` tokens, from an offset drawn anew
    for every epoch, so that no token is always first; a window at either end may be empty.

    Args:
        documents: shards, a document (or a part of one) each.
        length: tokens of a window at most.
        seed: of the places; ``None``: from the beginning on, always.
    """

    def __init__(self, documents: Shards, length: int, seed: int | None) -> None:
        self._documents, self._length, self._seed = documents, length, seed
        self._phases: dict[int, int] = {}
        self._tokens_D = documents.lengths(0, np.arange(documents.count))
        cuts_D = -(-self._tokens_D // length) + (seed is not None)
        slots_D = np.where(self._tokens_D <= length, 1, cuts_D)
        self._document_W = np.repeat(np.arange(documents.count), slots_D)
        self._place_W = ragged_indices(np.zeros_like(slots_D), slots_D)
        self.count = int(slots_D.sum())
        self.tokens = documents.tokens
        self.longest = min(length, documents.longest)

    def _cut(self, epoch: int, windows_B: Ids) -> tuple[Ids, Ids, Ids]:
        """Document, first token and length of each window."""
        document_B, place_B = self._document_W[windows_B], self._place_W[windows_B]
        tokens_B, phase = self._tokens_D[document_B], self._length  # phase: where the second window begins
        if self._seed is not None:
            if epoch not in self._phases:
                self._phases[epoch] = int(generator(self._seed, "windows", epoch).integers(1, self._length + 1))
            phase = self._phases[epoch]
        whole_B = tokens_B <= self._length
        first_B = np.where(whole_B | (place_B == 0), 0, phase + (place_B - 1) * self._length)
        last_B = np.where(whole_B, tokens_B, phase + place_B * self._length)
        first_B, last_B = np.minimum(first_B, tokens_B), np.minimum(last_B, tokens_B)
        return document_B, first_B, last_B - first_B

    def lengths(self, epoch: int, sentences_B: Ids) -> Ids:
        return self._cut(epoch, sentences_B)[2]

    def gather(self, epoch: int, sentences_B: Ids) -> tuple[Ids, Ids]:
        document_B, first_B, lengths_B = self._cut(epoch, sentences_B)
        return self._documents.within(document_B, first_B, lengths_B), lengths_B

    def before(self, epoch: int, windows_B: Ids, nothing: int) -> Ids:
        """The token before each window; ``nothing`` before the very first.

        Documents follow each other, each with its end symbol: a document is
        preceded by the end of the previous one, a part of a document by the token before it.
        """
        document_B, first_B, _ = self._cut(epoch, windows_B)
        fresh_B = (first_B == 0) & (document_B > 0)
        document_B = document_B - fresh_B
        place_B = np.where(fresh_B, self._tokens_D[document_B], first_B) - 1
        inside_B = place_B >= 0
        before_B = np.full(len(first_B), nothing, np.int64)
        before_B[inside_B] = self._documents.within(
            document_B[inside_B], place_B[inside_B], np.ones(int(inside_B.sum()), np.int64)
        )
        return before_B


class FramedWindows:
    """The same windows between the symbols that open and close a text."""

    def __init__(self, documents: Shards, frame: Frame, seed: int | None) -> None:
        self._windows = Windows(documents, frame.room, seed)
        self._frame = frame
        self._more = len(frame.begin) + 1
        self.count = self._windows.count
        self.tokens = self._windows.tokens + self._more * self.count
        self.longest = self._windows.longest + self._more

    def lengths(self, epoch: int, sentences_B: Ids) -> Ids:
        return self._windows.lengths(epoch, sentences_B) + self._more

    def gather(self, epoch: int, sentences_B: Ids) -> tuple[Ids, Ids]:
        inner, inner_B = self._windows.gather(epoch, sentences_B)
        lengths_B = inner_B + self._more
        inner_T = self.inner(lengths_B)
        ids = np.empty(len(inner_T), np.int64)
        ids[inner_T] = inner
        ids[~inner_T] = np.tile([*self._frame.begin, self._frame.end], len(lengths_B))
        return ids, lengths_B

    def inner(self, lengths_B: Ids) -> NDArray[np.bool_]:
        """True for tokens of texts, False for the symbols around them, of windows of these lengths end to end."""
        inner_T, ends_B = np.ones(int(lengths_B.sum()), np.bool_), lengths_B.cumsum()
        inner_T[ends_B - 1] = False
        for place in range(len(self._frame.begin)):
            inner_T[ends_B - lengths_B + place] = False
        return inner_T


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


@dataclass(frozen=True)
class PredictionBatch(EncoderBatch):
    """Windows of text end to end, and the tokens to predict in them.

    Args:
        text: what the model reads.
        places_N: its positions at which a token is predicted.
        labels_N: what that is.
    """

    places_N: Ids
    labels_N: Ids


class PredictionExamples(ABC):
    """Windows as batches.

    Args:
        windows: of the documents.
        tokens: of a batch.
    """

    def __init__(self, windows: Windows | FramedWindows, tokens: int) -> None:
        self.windows = windows
        self.capacity: Capacity = capacity_for(tokens, windows.tokens, windows.tokens, windows.count, windows.longest)

    @abstractmethod
    def cut(self, epoch: int, windows_B: Ids, random: np.random.Generator) -> Cut:
        """The input of these windows, and the tokens to predict."""

    def feed(self, recipe: Recipe, fingerprint: str) -> DataLoader[PredictionBatch]:
        """The windows in random order; what is hidden is a pure function of the seed and the position."""

        def make(place: Position, windows_B: Ids) -> PredictionBatch:
            random = generator(recipe.seed, "mask", place.epoch, place.block, place.batch)
            return self._pack(self.cut(place.epoch, windows_B, random))

        read = self.windows
        plan = plan_batches((read.lengths,) * 2, (read.count,), read.tokens, self.capacity, recipe, fingerprint)
        return DataLoader(make, *plan)

    def some(self, seed: int, most: int) -> list[PredictionBatch]:
        """Windows in order, each once, the same whatever a batch's size; evenly chosen ones, if all hold too much.

        Args:
            seed: of what is hidden.
            most: tokens they may hold together.
        """
        share = min(1.0, most / max(1, self.windows.tokens))
        count = max(1, round(share * self.windows.count))
        windows_B = np.linspace(0, self.windows.count - 1, count).round().astype(np.int64)
        read, lengths_B, places_N, labels_N = self.cut(0, windows_B, generator(seed, "validation mask"))
        ends_B = lengths_B.cumsum()
        batches = []
        for part in batches_in_order([lengths_B], [self.capacity.target], self.capacity.sentences):
            first, last = int(ends_B[part[0]] - lengths_B[part[0]]), int(ends_B[part[-1]])
            here_N = (places_N >= first) & (places_N < last)
            batches.append(self._pack((read[first:last], lengths_B[part], places_N[here_N] - first, labels_N[here_N])))
        return batches

    def _pack(self, cut: Cut) -> PredictionBatch:
        read, lengths_B, places_N, labels_N = cut
        text = pad_to_capacity(read, lengths_B, self.capacity.target, self.capacity.sentences)
        return PredictionBatch(text, places_N, labels_N)


class NextTokenExamples(PredictionExamples):
    """Every token is guessed from those before it; the one before a window is read too [Radford18 §3.1, eq. 1].

    Args:
        windows: of documents with their ends.
        tokens: of a batch.
        end: ``</s>``, which is read before the first document.
    """

    windows: Windows

    def __init__(self, windows: Windows, tokens: int, end: int) -> None:
        super().__init__(windows, tokens)
        self._end = end

    def cut(self, epoch: int, windows_B: Ids, random: np.random.Generator) -> Cut:
        """The tokens one place to the right; nothing is drawn."""
        labels_N, lengths_B = self.windows.gather(epoch, windows_B)
        filled_B = lengths_B > 0
        lengths_B = lengths_B[filled_B]
        read = shift_right(labels_N, lengths_B, self.windows.before(epoch, windows_B[filled_B], self._end))
        return read, lengths_B, np.arange(len(labels_N)), labels_N


class MaskedExamples(PredictionExamples):
    """Some tokens are hidden and guessed from all others [Devlin19 §3.1].

    Args:
        windows: of documents, framed.
        starts: where words begin in the same windows, unframed; ``None``: each token is a word.
        tokens: of a batch.
        symbols: of the vocabulary.
        section: the shares.
    """

    windows: FramedWindows

    def __init__(
        self, windows: FramedWindows, starts: Windows | None, tokens: int, symbols: MaskingSymbols, section: Masking
    ) -> None:
        super().__init__(windows, tokens)
        self._starts, self._symbols, self._section = starts, symbols, section

    def cut(self, epoch: int, windows_B: Ids, random: np.random.Generator) -> Cut:
        """Some words of the windows hidden."""
        ids, lengths_B = self.windows.gather(epoch, windows_B)
        inner_T = self.windows.inner(lengths_B)
        starts_T = np.ones(len(ids), np.bool_)
        if self._starts is not None:
            starts_T[inner_T] = self._starts.gather(epoch, windows_B)[0] > 0
        read, hidden_T = mask_tokens(ids, starts_T, inner_T, self._symbols, self._section, random)
        places_N = np.flatnonzero(hidden_T)
        return read, lengths_B, places_N, ids[places_N]


class SpanWindows:
    """What is read of windows of running text, or what is to be written.

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
        found = []
        for text, number in zip(texts, chosen_B.tolist(), strict=True):
            random = generator(self._seed, "spans", epoch, number)
            sides = corrupt_spans(text, self._sentinels, self._end, self._section, random)
            found.append(sides[self._target])
        return np.concatenate(found), self._side_lengths(lengths_B)

    def _side_lengths(self, lengths_B: Ids) -> Ids:
        return corrupted_lengths(lengths_B, len(self._sentinels), self._section)[self._target]


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
