"""Special tokens around a text, overlapping windows of long texts, and which window counts a tagged word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.text.tokenizers.vocabulary import AnyTokenizer

Ids = NDArray[np.int64]
INSIDE, NEIGHBOUR, CONTINUES, TAGS = 0, 1, 2, 3
"""Marks of the pieces of a tagged text: inside a word; the first of a word that another window counts; the symbol that
ends a window whose text continues in the next; the first of a word with the first tag, the other tags above it."""


@dataclass(frozen=True)
class Window:
    """A part of a text, from piece ``start`` on, framed."""

    start: int
    ids: Ids


@dataclass(frozen=True)
class Frame:
    """Symbols around texts, and the maximum length of a window.

    Args:
        begin, end: the symbols before and after a text.
        max_tokens: of a window, the symbols counted.
        stride: pieces that neighbouring windows of one text have in common.
    """

    begin: tuple[int, ...]
    end: int
    max_tokens: int
    stride: int = 64

    @classmethod
    def of(cls, tokenizer: AnyTokenizer, max_tokens: int, stride: int = 64) -> Frame:
        """The frame of a tokenizer."""
        return cls(tuple(tokenizer.begin), tokenizer.end, max_tokens, stride)

    @property
    def room(self) -> int:
        """Pieces of a text that fit into a window."""
        return max(1, self.max_tokens - len(self.begin) - 1)

    @property
    def step(self) -> int:
        """Pieces from the start of a window to that of the next; the last one may begin sooner."""
        return max(1, self.room - min(self.stride, self.room // 2))

    def add_symbols(self, pieces: Ids) -> Ids:
        """The pieces with the symbols around them."""
        return np.concatenate([np.array(self.begin, np.int64), pieces, np.array([self.end], np.int64)])

    def starts(self, pieces: int) -> list[int]:
        """Starts of the windows of a text of ``pieces`` pieces; the last window ends with the text."""
        if pieces <= self.room:
            return [0]
        return [*range(0, pieces - self.room, self.step), pieces - self.room]

    def windows(self, pieces: Ids) -> Iterator[Window]:
        """The text whole, or in windows that overlap."""
        for start in self.starts(len(pieces)):
            yield Window(start, self.add_symbols(pieces[start : start + self.room]))

    def join(self, windows: Sequence[Ids]) -> Ids:
        """The pieces of a text from all its windows, in order and with their symbols.

        The last window begins somewhere in the one before it: where all that follows is the same.
        """
        *before, last = [window[len(self.begin) : -1] for window in windows]
        if not before:
            return last
        close = before[-1]
        own = next(s for s in range(1, self.step + 1) if np.array_equal(close[s:], last[: len(close) - s]))
        return np.concatenate([*(part[: self.step] for part in before[:-1]), close[:own], last])


def most_central(first_R: Ids, last_R: Ids, starts: Sequence[int], room: int) -> Ids:
    """For each word the window in which it stands farthest from an edge that cuts the text; later words, later windows.

    Args:
        first_R, last_R: the first and last piece of each word, counted in the text.
        starts: where the windows begin.
        room: pieces of a window.
    """
    window_R, best_R = np.zeros(len(first_R), np.int64), np.full(len(first_R), -np.inf)
    for number, start in enumerate(starts):
        begin, end = np.searchsorted(first_R, [start, start + room])
        before_R = first_R[begin:end] - (start if number else -np.inf)
        behind_R = (start + room - 1 if number < len(starts) - 1 else np.inf) - last_R[begin:end]
        central_R = np.minimum(before_R, behind_R)
        better = begin + np.flatnonzero(central_R > best_R[begin:end])
        window_R[better], best_R[better] = number, central_R[better - begin]
    return window_R
