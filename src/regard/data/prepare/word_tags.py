"""Marks of the pieces of a tagged text: word starts, tags, and which window counts each word.

A mark a piece: :data:`INSIDE`, :data:`NEIGHBOUR`, or :data:`TAGS` plus the number of the word's tag. The symbol that
ends a window has :data:`CONTINUES` if the text continues in the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]

INSIDE, NEIGHBOUR, CONTINUES, TAGS = 0, 1, 2, 3
"""A piece that begins no word; the first of a word that another window counts; see above; the first tag's mark."""


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
