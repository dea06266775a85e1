"""Streaming scan of one parallel corpus: hashes, lengths and the first suspect lines; a few dozen bytes per pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regard.data.checks.findings import EXAMPLES, Example, Finding, Severity, excerpt
from regard.data.checks.line_patterns import match_patterns, pattern_finding
from regard.data.checks.misalignment import misalignment
from regard.data.corpora.pairs import Corpus, Pair
from regard.data.corpora.passes import EMPTY_HASH, EVERY, Progress, text_hash
from regard.text.tokenizers.tokenizer import Tokenizer


@dataclass
class PairScan:
    """Statistics of a corpus. Iterate :meth:`pairs` once, then query."""

    corpus: Corpus
    count: int = 0
    _hashes: tuple[list[NDArray[np.uint64]], list[NDArray[np.uint64]]] = field(default_factory=lambda: ([], []))
    _lengths: tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]] = field(default_factory=lambda: ([], []))
    _counts: dict[str, int] = field(default_factory=dict)
    _examples: dict[str, list[Example]] = field(default_factory=dict)
    _cased: list[int] = field(default_factory=lambda: [0, 0])
    _letters: list[int] = field(default_factory=lambda: [0, 0])

    def pairs(self, progress: Progress) -> Iterator[Pair]:
        """Yield every pair after recording it."""
        waiting: list[tuple[int, int, int, int]] = []
        try:
            for pair in self.corpus.pairs():
                self._look(pair)
                waiting.append((text_hash(pair[0]), text_hash(pair[1]), len(pair[0]), len(pair[1])))
                self.count += 1
                if len(waiting) == EVERY:
                    self._flush(waiting)
                    progress("check", self.count)
                yield pair
        finally:
            self._flush(waiting)
            progress("check", self.count)

    def _look(self, pair: Pair) -> None:
        for side, text in enumerate(pair):
            lower = text.lower()
            self._cased[side] += text != lower
            self._letters[side] += lower != text.upper()
            for kind in match_patterns(text):
                self._note(kind, side, text)
        if not pair[0].strip() or not pair[1].strip():
            self._note("empty", int(bool(pair[0].strip())), pair[bool(pair[0].strip())])

    def _note(self, kind: str, side: int, text: str) -> None:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if len(seen := self._examples.setdefault(kind, [])) < EXAMPLES:
            seen.append(self.example(self.count, side, text))

    def example(self, number: int, side: int, text: str) -> Example:
        """A side of a pair as a finding shows it."""
        file, _, line = self.corpus.where(number, side).rpartition(":")
        return file, int(line), excerpt(text)

    def _flush(self, waiting: list[tuple[int, int, int, int]]) -> None:
        for side in (0, 1):
            self._hashes[side].append(np.array([entry[side] for entry in waiting], dtype=np.uint64))
            self._lengths[side].append(np.array([entry[2 + side] for entry in waiting], dtype=np.int32))
        waiting.clear()

    def hashes(self, side: int) -> NDArray[np.uint64]:
        """A hash of each sentence of a side."""
        return np.concatenate([np.zeros(0, dtype=np.uint64), *self._hashes[side]])

    def lengths(self, side: int) -> NDArray[np.int32]:
        """Characters of each sentence of a side."""
        return np.concatenate([np.zeros(0, dtype=np.int32), *self._lengths[side]])

    def pair_hashes(self) -> NDArray[np.uint64]:
        """A hash of each pair."""
        return self.hashes(0) * np.uint64(0x9E3779B97F4A7C15) + self.hashes(1)

    def non_empty(self) -> NDArray[np.bool_]:
        """Which pairs have text on both sides."""
        return np.asarray((self.hashes(0) != EMPTY_HASH) & (self.hashes(1) != EMPTY_HASH))

    def examples(self, numbers: NDArray[np.int64], side: int = 0) -> tuple[Example, ...]:
        """The first few of these pairs, read again from the corpus."""
        wanted = numbers[:EXAMPLES].tolist()
        found = []
        for number, pair in enumerate(self.corpus.pairs() if wanted else ()):
            if number in wanted:
                found.append(self.example(number, side, pair[side]))
                if number == wanted[-1]:
                    break
        return tuple(found)

    def findings(self, max_tokens: int, characters_per_token: float) -> Iterator[Finding]:
        """All findings of the scan."""
        for notes, side in zip(self.corpus.notes, (0, 1), strict=False):
            if notes.invalid:
                numbers = np.array(notes.invalid_lines, dtype=np.int64) - 1
                examples = self.examples(numbers[numbers < self.count], side)
                yield pattern_finding("invalid UTF-8", notes.invalid, self.count, examples)
        invalid = any(notes.invalid for notes in self.corpus.notes)
        for kind, count in self._counts.items():
            if kind == "replacement" and invalid:
                continue  # we put it there ourselves
            yield pattern_finding(kind, count, self.count, tuple(self._examples[kind]))
        if self.count:
            yield from self._pair_findings(max_tokens, characters_per_token)
            yield from self._alignment_findings()
        for side, name in enumerate(("source", "target")):
            if self._letters[side] and not self._cased[side]:
                sentence = f"No {name} line has an upper-case letter: the model will not know any."
                yield Finding("lower case", "note", self.count, 1.0, (), sentence)

    def _pair_findings(self, max_tokens: int, characters_per_token: float) -> Iterator[Finding]:
        """Findings over all pairs together: copies, lengths."""
        source, target, filled = self.lengths(0), self.lengths(1), self.non_empty()
        suspect = {
            "copy": (self.hashes(0) == self.hashes(1)) & filled,
            "too long": np.maximum(source, target) > characters_per_token * max_tokens,
            "ratio": _ratio_outliers(source, target) & filled,
        }
        for kind, hits in suspect.items():
            if hits.any():
                numbers = np.flatnonzero(hits)
                yield pattern_finding(kind, len(numbers), self.count, self.examples(numbers), max_tokens)

    def _alignment_findings(self) -> Iterator[Finding]:
        found = misalignment(self.lengths(0), self.lengths(1))
        if found is None:
            return
        where = f"From about {self.corpus.where(found.begin)} on, the" if found.begin else "The"
        lines = "a line" if abs(found.shift) == 1 else f"{abs(found.shift)} lines"
        how = f"look shifted by {lines}" if found.shift else "do not look like translations of each other"
        sentence = (
            f"{where} two sides {how}: the lengths of the lines are hardly correlated ("
            f"{found.correlation:.2f}); was a line lost, or a file sorted or shuffled?"
        )
        severity: Severity = "fatal" if found.share >= 0.1 or found.shift else "warning"
        places = np.arange(found.begin, min(self.count, found.begin + EXAMPLES))
        yield Finding(
            "alignment", severity, int(found.share * self.count), found.share, self.examples(places), sentence
        )


def _ratio_outliers(source: NDArray[np.int32], target: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Pairs whose ratio of lengths is far from the corpus's: over five robust deviations, and over three times."""
    ratio = np.log((target + 5.0) / (source + 5.0))
    off = np.abs(ratio - np.median(ratio))
    return np.asarray(off > max(np.log(3.0), 5 * 1.4826 * float(np.median(off))))


def count_unknown_words(texts: Sequence[str], tokenizer: Tokenizer) -> tuple[int, Counter[str]]:
    """The number of words, and a count of each word with a character encoded as bytes."""
    counts = Counter(word for text in texts for word in text.split())
    words = list(counts)
    pieces = tokenizer.ids_batch([f" {word}" for word in words])
    fell = (word for word, ids in zip(words, pieces, strict=True) if any(map(tokenizer.is_byte, ids.tolist())))
    return counts.total(), Counter({word: counts[word] for word in fell})


def characters_per_token(texts: Sequence[str], tokenizer: Tokenizer) -> float:
    """Mean characters per token."""
    tokens = sum(map(len, tokenizer.ids_batch(texts)))
    return sum(map(len, texts)) / tokens if tokens else 4.0
