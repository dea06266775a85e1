"""What the form of a word tells, hashed: the word itself, how it begins and ends, its shape [Miranda22].

A model with such features knows words by more than their pieces: a rare name by its capital letter, an unknown verb by
its ending. A feature is a string, and its number is a hash, so that nothing has to be learned from a corpus or stored.
Two features may share a number; the more buckets, the fewer do.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from regard.text.tokenizers.vocabulary import AnyTokenizer

FEATURES = 5
"""Of a word."""
AFFIX = 3
"""Letters of the beginning and of the end."""
RUN, SHAPE = 3, 12
"""Letters of one kind in a row that a shape counts, and its longest form."""
KEPT = 200_000
"""Runs of tokens whose features are remembered."""

Ids = NDArray[np.int64]


def features(word: str) -> tuple[str, ...]:
    """The features of a word: in lower case, as written, its first three and last three letters, its shape."""
    low = word.lower()
    return low, word, low[:AFFIX], low[-AFFIX:], shape(word)


def shape(word: str) -> str:
    """A word with ``X`` for a capital letter, ``x`` for a small one, ``d`` for a digit; runs are cut: ``Xxxx-ddd``."""
    found = ""
    for sign in word:
        kind = "X" if sign.isupper() else "x" if sign.isalpha() else "d" if sign.isdigit() else sign
        if not found.endswith(kind * RUN):
            found += kind
    return found[:SHAPE]


class WordFeatures:
    """The features of the words of tokens.

    Args:
        tokenizer: says where words begin, and what their pieces spell; symbols have no features.
        buckets: how many different numbers there are.
    """

    def __init__(self, tokenizer: AnyTokenizer, buckets: int) -> None:
        self.tokenizer, self.buckets = tokenizer, buckets
        self._found: dict[tuple[bytes, bool], tuple[Ids, Ids]] = {}

    def of_texts(
        self, ids_T: Ids, starts_B: Ids, lengths_B: Ids, first_T: NDArray[np.bool_] | None = None
    ) -> tuple[Ids, Ids]:
        """``(word_T, features_WE)`` of the tokens of texts in a batch.

        ``word_T`` is the number of each token's word, from 1 on, and 0 for a token without a word; ``features_WE`` has
        a row of hashes for each word.

        Args:
            ids_T: all tokens.
            starts_B, lengths_B: where each text lies, in order.
            first_T: which tokens begin a word, where that is known; else the tokenizer tells. A blank begins one too.
        """
        inside_T = _inside(len(ids_T), starts_B, lengths_B)
        first_N, last_N = self._chunks(ids_T, inside_T, starts_B, lengths_B, first_T)
        held, size, cut = ids_T.tobytes(), ids_T.itemsize, first_T is None
        found = [
            self._chunk(held[size * first : size * last], cut) for first, last in zip(first_N, last_N, strict=True)
        ]
        rows = np.concatenate([np.zeros((0, FEATURES), np.int64), *(rows for _, rows in found)])
        words_N = np.array([len(rows) for _, rows in found], np.int64)
        numbers = np.concatenate([np.zeros(0, np.int64), *(numbers for numbers, _ in found)])
        numbers += np.where(numbers > 0, np.repeat(words_N.cumsum() - words_N, last_N - first_N), 0)
        word_T = np.zeros(len(ids_T), np.int64)
        word_T[inside_T] = numbers
        return word_T, rows

    def _chunks(
        self, ids_T: Ids, inside_T: NDArray[np.bool_], starts_B: Ids, lengths_B: Ids, known_T: NDArray[np.bool_] | None
    ) -> tuple[Ids, Ids]:
        """Where runs of tokens begin and end, across which no word reaches."""
        first_T = self.tokenizer.blank_first[ids_T]
        first_T[starts_B[lengths_B > 0]] = True
        if known_T is not None:
            first_T |= known_T
        first_N = np.flatnonzero(first_T & inside_T)
        text_N = np.searchsorted(starts_B, first_N, side="right") - 1
        return first_N, np.minimum(np.append(first_N[1:], len(ids_T)), (starts_B + lengths_B)[text_N])

    def _chunk(self, known: bytes, cut: bool) -> tuple[Ids, Ids]:
        """The words of a run of tokens, numbered from 1 on; it is one word if it is not ``cut``."""
        if (known, cut) not in self._found:
            if len(self._found) >= KEPT:
                self._found.clear()
            self._found[known, cut] = self._words(np.frombuffer(known, np.int64), cut)
        return self._found[known, cut]

    def _words(self, ids: Ids, cut: bool) -> tuple[Ids, Ids]:
        starts = np.flatnonzero(self.tokenizer.word_starts(ids.tolist())) if cut else np.zeros(1, np.int64)
        parts = np.split(ids, starts[1:])
        words = [text.strip() for text in self.tokenizer.decode_batch(part.tolist() for part in parts)]
        real_W = np.array([bool(word) for word in words])
        number_T = np.repeat(np.where(real_W, real_W.cumsum(), 0), [len(part) for part in parts])
        rows = [self._hashes(word) for word in words if word]
        return number_T, np.array(rows, np.int64).reshape(len(rows), FEATURES)

    def _hashes(self, word: str) -> list[int]:
        held = (feature.encode("utf-8", "surrogatepass") for feature in features(word))
        return [crc32(feature, kind) % self.buckets for kind, feature in enumerate(held)]


def _inside(size: int, starts_B: Ids, lengths_B: Ids) -> NDArray[np.bool_]:
    """Which tokens are of a text."""
    change_T = np.zeros(size + 1, np.int64)
    np.add.at(change_T, starts_B, 1)
    np.add.at(change_T, starts_B + lengths_B, -1)
    return change_T[:-1].cumsum() > 0
