"""Word-level tag alignment of a batch: where each word lies, its tag, and the words of each text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.batches.batch import Packed
from regard.data.prepare.word_tags import CONTINUES, NEIGHBOUR, TAGS

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class WordMarks:
    """The words that packed windows count, end to end.

    Args:
        starts_R, lengths_R: where the pieces of each word lie in the batch.
        counts_B: words of each window.
        tags_R: the numbers of their tags.
        more_B: whether the text of a window continues in the next.
    """

    starts_R: Ids
    lengths_R: Ids
    counts_B: Ids
    tags_R: Ids
    more_B: NDArray[np.bool_]

    @classmethod
    def of(cls, text: Packed, marks_X: Ids) -> WordMarks:
        """The words of windows whose marks lie end to end as their pieces do."""
        last_B = (text.starts_B + text.lengths_B)[: text.count] - 1
        starts = np.flatnonzero((marks_X == NEIGHBOUR) | (marks_X >= TAGS))
        window = np.searchsorted(last_B, starts)
        ends = np.minimum(np.append(starts[1:], len(marks_X)), last_B[window])
        own = marks_X[starts] >= TAGS
        counts_B = np.bincount(window[own], minlength=text.count)
        tags_R = marks_X[starts[own]] - TAGS
        return cls(starts[own], (ends - starts)[own], counts_B, tags_R, marks_X[last_B] == CONTINUES)

    def known_words(self, tags: int) -> tuple[NDArray[np.bool_], Ids]:
        """Which words have a tag below ``tags``, and how many of each window."""
        known_R = self.tags_R < tags
        window = np.repeat(np.arange(len(self.counts_B)), self.counts_B)
        return known_R, np.bincount(window[known_R], minlength=len(self.counts_B))


def text_lengths(counts_B: Ids, more_B: NDArray[np.bool_]) -> Ids:
    """Words of each text, from those its windows count; the windows of a text follow each other."""
    ends = np.flatnonzero(~more_B)
    return np.diff(np.concatenate([[0], counts_B.cumsum()[ends]]))
