"""First pass over corpora: fingerprints, sizes and text hashes (8 bytes per text); train/validation split."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.corpora.pairs import Corpus
from regard.data.corpora.passes import EMPTY_HASH, EVERY, Progress, no_progress, text_hash
from regard.system.errors import RegardError
from regard.system.keys import generator


@dataclass(frozen=True)
class Survey:
    """``source_B`` and ``target_B`` identify the sentences of all corpora, in order, by :func:`text_hash`."""

    source_B: NDArray[np.uint64]
    target_B: NDArray[np.uint64]
    sizes: tuple[int, ...]
    sha256: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        """The sha256 over the content of all corpora, in order."""
        return hashlib.sha256(" ".join(self.sha256).encode()).hexdigest()


def survey(corpora: Sequence[Corpus], progress: Progress = no_progress, what: str = "sentence pairs") -> Survey:
    """One pass over every pair; ``what`` they are, for a sentence.

    Raises:
        RegardError: a corpus is empty, or cannot be read.
    """
    source: list[NDArray[np.uint64]] = []
    target: list[NDArray[np.uint64]] = []
    sums, sizes = [], []
    for corpus in corpora:
        left, right, digest = _survey_corpus(corpus, progress)
        if not len(left):
            raise RegardError(f"holds no {what}", corpus.name)
        source.append(left)
        target.append(right)
        sizes.append(len(left))
        sums.append(digest)
    return Survey(np.concatenate(source), np.concatenate(target), tuple(sizes), tuple(sums))


def _survey_corpus(corpus: Corpus, progress: Progress) -> tuple[NDArray[np.uint64], NDArray[np.uint64], str]:
    content = hashlib.sha256()
    chunks: tuple[list[NDArray[np.uint64]], list[NDArray[np.uint64]]] = ([], [])
    waiting: tuple[list[int], list[int]] = ([], [])
    count = 0
    for count, (source, target) in enumerate(corpus.pairs(), 1):
        content.update(f"{source}\n{target}\n".encode())
        waiting[0].append(text_hash(source))
        waiting[1].append(text_hash(target))
        if count % EVERY == 0:
            _flush(waiting, chunks)
            progress("read", count)
    _flush(waiting, chunks)
    progress("read", count)
    return np.concatenate(chunks[0]), np.concatenate(chunks[1]), content.hexdigest()


def _flush(waiting: tuple[list[int], list[int]], chunks: tuple[list[NDArray[np.uint64]], ...]) -> None:
    for numbers, side in zip(waiting, chunks, strict=True):
        side.append(np.array(numbers, dtype=np.uint64))
        numbers.clear()


@dataclass(frozen=True)
class Split:
    """Training and validation pairs; ``left_B`` marks pairs in neither.

    A pair is in neither if it shares a sentence with the validation pairs.
    """

    validation_B: NDArray[np.bool_]
    left_B: NDArray[np.bool_]

    @property
    def train_B(self) -> NDArray[np.bool_]:
        """The pairs that are learned from."""
        return ~(self.validation_B | self.left_B)


def split(found: Survey, count: int, seed: int) -> Split:
    """A validation part drawn by seed, so that no source and no target sentence is on both sides.

    At most a tenth of the pairs. Pairs whose sentences occur once are preferred, so hardly a pair is lost.

    Raises:
        RegardError: too few pairs, or all of them share sentences.
    """
    pairs = len(found.source_B)
    source, source_times = _unique_numbers(found.source_B)
    target, target_times = _unique_numbers(found.target_B)
    filled = (found.source_B != EMPTY_HASH) & (found.target_B != EMPTY_HASH)
    order = generator(seed, "split").permutation(np.flatnonzero(filled))
    times = (source_times[source] + target_times[target])[order]
    chosen = order[np.argsort(times, kind="stable")][: max(1, min(count, pairs // 10))]
    validation = np.zeros(pairs, dtype=np.bool_)
    validation[chosen] = True
    left = (np.isin(source, source[chosen]) | np.isin(target, target[chosen])) & ~validation
    if pairs < 2 or not (filled & ~validation & ~left).any():
        raise RegardError(
            f"{pairs} pairs are too few, or too alike, to split a validation part off; "
            "give --valid-source and --valid-target",
            "validation",
        )
    return Split(validation, left)


def split_texts(found: Survey, count: int, seed: int, noun: str = "texts", where: str = "validation") -> Split:
    """A validation part drawn by seed, at most a tenth, so that no text is on both sides; labels may be.

    ``noun`` is what they are called, and ``where`` their files, for a sentence.

    Raises:
        RegardError: too few texts, or all of them are the same.
    """
    texts = len(found.source_B)
    filled = found.source_B != EMPTY_HASH
    chosen = generator(seed, "split").permutation(np.flatnonzero(filled))[: max(1, min(count, texts // 10))]
    validation = np.zeros(texts, dtype=np.bool_)
    validation[chosen] = True
    left = np.isin(found.source_B, found.source_B[chosen]) & ~validation
    if texts < 2 or not (filled & ~validation & ~left).any():
        message = f"{texts} {noun} are too few, or too alike, to split a validation part off; give --valid"
        raise RegardError(message, where)
    return Split(validation, left)


def _unique_numbers(sentences_B: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Dense numbers of the sentences, and the count of each number."""
    _, numbers, times = np.unique(sentences_B, return_inverse=True, return_counts=True)
    return numbers, times
