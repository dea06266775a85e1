"""A text between the symbols that open and close it; one that is too long as windows that overlap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


class Framing(Protocol):
    """What a tokenizer says of the symbols around a text."""

    @property
    def begin(self) -> tuple[int, ...]:
        """Ids put before a text."""
        ...

    @property
    def end(self) -> int:
        """The id put behind it."""
        ...


@dataclass(frozen=True)
class Window:
    """A part of a text, from piece ``start`` on, framed."""

    start: int
    ids: Ids


@dataclass(frozen=True)
class Frame:
    """How texts are framed, and how long they may be.

    Args:
        begin, end: the symbols before and behind.
        max_tokens: of a window, the symbols counted.
        stride: pieces that neighbouring windows of one text have in common.
    """

    begin: tuple[int, ...]
    end: int
    max_tokens: int
    stride: int = 64

    @classmethod
    def of(cls, tokenizer: Framing, max_tokens: int, stride: int = 64) -> Frame:
        """The frame of a tokenizer."""
        return cls(tuple(tokenizer.begin), tokenizer.end, max_tokens, stride)

    @property
    def room(self) -> int:
        """Pieces of a text that fit into a window."""
        return max(1, self.max_tokens - len(self.begin) - 1)

    def framed(self, pieces: Ids) -> Ids:
        """The pieces between the symbols."""
        return np.concatenate([np.array(self.begin, np.int64), pieces, np.array([self.end], np.int64)])

    def starts(self, pieces: int) -> list[int]:
        """Where the windows of a text of so many pieces begin; the last one ends with the text."""
        if pieces <= self.room:
            return [0]
        step = max(1, self.room - min(self.stride, self.room // 2))
        return [*range(0, pieces - self.room, step), pieces - self.room]

    def windows(self, pieces: Ids) -> Iterator[Window]:
        """The text whole, or in windows that overlap."""
        for start in self.starts(len(pieces)):
            yield Window(start, self.framed(pieces[start : start + self.room]))

    def aligned(self, values: Ids, start: int, outside: int) -> Ids:
        """Values of a text's pieces beside the window from ``start`` on; the symbols have the value ``outside``."""
        inner = values[start : start + self.room]
        before = np.full(len(self.begin), outside, np.int64)
        return np.concatenate([before, inner, np.array([outside], np.int64)])
