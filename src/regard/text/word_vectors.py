"""Vectors of words, and of a text the direction of their sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class WordVectors:
    """What words mean, by hashes of the words.

    Args:
        hashes_W: of the words, in order.
        vector_WD: of each word; those of frequent words are short, since they tell texts apart least.
    """

    hashes_W: NDArray[np.int32]
    vector_WD: NDArray[np.float16]

    def text_vector(self, hashes: Sequence[int]) -> Floats:
        """``vector_D`` of a text, of length one; zeros where none of its words has a vector.

        Args:
            hashes: of its words.
        """
        return np.asarray(self.parts(hashes).sum(0), np.float32)

    def parts(self, hashes: Sequence[int]) -> Floats:
        """``vector_ND``: what each word adds to the vector of the text."""
        hashes_N = np.array(hashes, np.int64)
        found_ND = np.zeros((len(hashes_N), self.vector_WD.shape[1]), np.float32)
        if len(self.hashes_W):
            place_N = np.minimum(np.searchsorted(self.hashes_W, hashes_N), len(self.hashes_W) - 1)
            there_N = self.hashes_W[place_N] == hashes_N
            found_ND[there_N] = self.vector_WD[place_N[there_N]]
        return found_ND / np.float32(max(float(np.linalg.norm(found_ND.sum(0))), 1e-12))
