"""Batches for causal language modelling (next token) and masked language modelling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.config import Masking, Recipe
from regard.data.batches.batch import Capacity, Packed, Position, capacity_for
from regard.data.batches.document_windows import FramedWindows, Windows
from regard.data.batches.loader import DataLoader
from regard.data.batches.masking import MaskingSymbols, mask_tokens
from regard.data.batches.packing import batches_in_order, pad_to_capacity
from regard.data.batches.texts import make_loader
from regard.system.keys import generator

Ids = NDArray[np.int64]
Cut = tuple[Ids, Ids, Ids, Ids]
"""Windows end to end: input ids, the length of each, the positions to predict, and the original ids there."""


@dataclass(frozen=True)
class PredictionBatch:
    """Windows of text end to end, and the tokens to predict in them.

    Args:
        text: what the model reads.
        places_N: its positions at which a token is predicted.
        labels_N: what that is.
    """

    text: Packed
    places_N: Ids
    labels_N: Ids

    @property
    def tokens(self) -> int:
        """Real tokens."""
        return int(self.text.lengths_B.sum())

    @property
    def room(self) -> int:
        """Tokens there is room for."""
        return len(self.text.ids_T)


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

    def feed(self, recipe: Recipe, fingerprint: str, prefetch: int = 2) -> DataLoader[PredictionBatch]:
        """The windows in random order; what is hidden is a pure function of the seed and the position."""

        def make(place: Position, windows_B: Ids) -> PredictionBatch:
            random = generator(recipe.seed, "mask", place.epoch, place.block, place.batch)
            return self._pack(self.cut(place.epoch, windows_B, random))

        return make_loader(self.windows, self.capacity, recipe, fingerprint, make, prefetch)

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
            cut = read[first:last], lengths_B[part], places_N[here_N] - first, labels_N[here_N]
            batches.append(self._pack(cut))
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
        read = np.empty_like(labels_N)
        read[1:] = labels_N[:-1]
        read[lengths_B.cumsum() - lengths_B] = self.windows.before(epoch, windows_B[filled_B], self._end)
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
