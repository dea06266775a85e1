"""A side of a corpus in memory, and in shards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.prepare.shards import Shards, SideWriter

Ids = NDArray[np.int64]


def shards(
    folder: Path, sentences: Sequence[Ids], pieces: int = 1000, name: str = "text", file_tokens: int = 1 << 20
) -> Shards:
    """Sentences written to a folder."""
    writer = SideWriter(folder, name, pieces, file_tokens)
    writer.add(sentences)
    return Shards(folder, writer.close()[0])


class Lists:
    """Sentences as lists of ids."""

    def __init__(self, sentences: Sequence[Sequence[int] | Ids]) -> None:
        self._sentences = [np.asarray(one, np.int64) for one in sentences]
        self._lengths = np.array([len(one) for one in sentences], np.int64)
        self.count, self.tokens = len(sentences), int(self._lengths.sum())
        self.longest = int(self._lengths.max(initial=0))

    def lengths(self, epoch: int, sentences_B: Ids) -> Ids:
        return self._lengths[sentences_B]

    def gather(self, epoch: int, sentences_B: Ids) -> tuple[Ids, Ids]:
        ids = [self._sentences[place] for place in sentences_B]
        return np.concatenate([np.zeros(0, np.int64), *ids]), self.lengths(epoch, sentences_B)
