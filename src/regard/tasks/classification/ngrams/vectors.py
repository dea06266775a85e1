"""Vectors of words from unlabelled texts: which words occur near each other, as a low-rank matrix [Levy14].

What word2vec learns step by step has a closed form: the matrix of pointwise mutual information of words and the words
around them, of which the largest singular vectors are kept. Millions of words take less than a minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.tasks.classification.ngrams.sparse import SparseMatrix, one_thread
from regard.text.ngrams import words_of
from regard.text.word_vectors import WordVectors

WINDOW = 5
"""Words on each side that are near; the n-th counts 1/n."""
LEAST, MOST = 3, 30_000
"""Times that a word must occur, and most words."""
SIZE = 200
"""Entries of a vector."""
SMOOTHING = 0.75
"""Power of the frequency of what is near, so that rare words do not stand out [Levy15 §3.2]."""
FREQUENT = 1e-3
"""A word of this frequency weighs half of a rare one [Arora17]."""
_MORE, _ROUNDS = 20, 3
"""Vectors beside those wanted, and rounds, of finding singular vectors from random ones [Halko11]."""


def learn_vectors(texts: Iterable[str], number: Callable[[str], int]) -> WordVectors:
    """Vectors of the words of some texts; no word has one where no two occur often enough.

    Args:
        texts: in any order.
        number: the hash of a word.
    """
    spoken = [words_of(text) for text in texts]
    counts = Counter(word for words in spoken for word in words)
    kept = [word for word, count in counts.most_common(MOST) if count >= LEAST]
    if len(kept) < 2:
        return WordVectors(np.zeros(0, np.int32), np.zeros((0, 1), np.float16))
    rows_N, columns_N, count_N = _near(spoken, {word: place for place, word in enumerate(kept)})
    information = _mutual_information(rows_N, columns_N, count_N, len(kept))
    vector_WD = _singular_vectors(*information, min(SIZE, len(kept) - 1)).numpy()
    frequency_W = np.array([counts[word] for word in kept]) / counts.total()
    vector_WD = vector_WD * (FREQUENT / (FREQUENT + frequency_W))[:, None]
    hashes_W, first_W = np.unique(np.array([number(word) for word in kept]), return_index=True)
    return WordVectors(hashes_W.astype(np.int32), vector_WD[first_W].astype(np.float16))


def _near(
    spoken: Sequence[Sequence[str]], places: dict[str, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Pairs of words that are near each other, both ways, and how often they are."""
    apart = [-1] * WINDOW
    ids_T = np.array([place for words in spoken for place in [*(places.get(one, -1) for one in words), *apart]])
    pairs, times = [], []
    for distance in range(1, WINDOW + 1):
        left_T, right_T = ids_T[:-distance], ids_T[distance:]
        both_T = (left_T >= 0) & (right_T >= 0)
        code_N, count_N = np.unique(left_T[both_T] * len(places) + right_T[both_T], return_counts=True)
        pairs.append(code_N)
        times.append(count_N / distance)
    code_N, which_N = np.unique(np.concatenate(pairs), return_inverse=True)
    count_N = np.bincount(which_N, np.concatenate(times))
    left_N, right_N = code_N // len(places), code_N % len(places)
    return np.append(left_N, right_N), np.append(right_N, left_N), np.append(count_N, count_N)


def _mutual_information(
    rows_N: NDArray[np.int64], columns_N: NDArray[np.int64], count_N: NDArray[np.float64], words: int
) -> tuple[SparseMatrix, SparseMatrix]:
    """The positive pointwise mutual information of words (rows) and what is near, and the same transposed."""
    total_W = np.bincount(rows_N, count_N, words)
    smooth_W = total_W**SMOOTHING
    expected_N = total_W[rows_N] * smooth_W[columns_N] / smooth_W.sum()
    # a pair that stands in both halves has twice its count there and once in each: the logarithm of their sum is meant
    code_N, which_N = np.unique(rows_N * words + columns_N, return_inverse=True)
    share_N = np.bincount(which_N, count_N / expected_N)
    value_N, kept_N = np.log(share_N), share_N > 1
    rows_N, columns_N = code_N[kept_N] // words, code_N[kept_N] % words
    weight_N = value_N[kept_N].astype(np.float32)
    return SparseMatrix.of(rows_N, columns_N, weight_N, words), SparseMatrix.of(columns_N, rows_N, weight_N, words)


def _singular_vectors(matrix: SparseMatrix, transposed: SparseMatrix, size: int) -> Tensor:
    """The left singular vectors of the largest values, times their roots; rows of length one."""
    words = len(matrix.starts_R1) - 1
    with torch.no_grad(), one_thread():
        random = torch.randn(words, min(words, size + _MORE), generator=torch.Generator().manual_seed(0))
        basis_WK = torch.linalg.qr(matrix.times(random))[0]
        for _ in range(_ROUNDS):
            basis_WK = torch.linalg.qr(matrix.times(transposed.times(basis_WK)))[0]
        left_KK, value_K, _ = torch.linalg.svd(transposed.times(basis_WK).T, full_matrices=False)
        found_WD = (basis_WK @ left_KK[:, :size]) * value_K[:size].sqrt()
        return found_WD / found_WD.norm(dim=1, keepdim=True).clamp(min=1e-12)
