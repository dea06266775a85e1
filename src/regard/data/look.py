"""One corpus as one streaming pass shows it: a few dozen bytes of memory a pair, and the first suspect lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regard.data.alignment import misalignment
from regard.data.corpora import Corpus, Pair
from regard.data.findings import EXAMPLES, Example, Finding, Severity, excerpt
from regard.data.survey import EVERY, NOTHING, Progress, same
from regard.data.suspicion import judged, suspicions


@dataclass
class Look:
    """What is seen of a corpus. Iterate :meth:`pairs` once, then ask."""

    corpus: Corpus
    count: int = 0
    _hashes: tuple[list[NDArray[np.uint64]], list[NDArray[np.uint64]]] = field(default_factory=lambda: ([], []))
    _lengths: tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]] = field(default_factory=lambda: ([], []))
    _counts: dict[str, int] = field(default_factory=dict)
    _examples: dict[str, list[Example]] = field(default_factory=dict)
    _cased: list[int] = field(default_factory=lambda: [0, 0])
    _letters: list[int] = field(default_factory=lambda: [0, 0])

    def pairs(self, progress: Progress) -> Iterator[Pair]:
        """Every pair, looked at in passing."""
        waiting: list[tuple[int, int, int, int]] = []
        try:
            for pair in self.corpus.pairs():
                self._look(pair)
                waiting.append((same(pair[0]), same(pair[1]), len(pair[0]), len(pair[1])))
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
            for kind in suspicions(text):
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
        """What each sentence of a side shares with the same sentence elsewhere."""
        return np.concatenate([np.zeros(0, dtype=np.uint64), *self._hashes[side]])

    def lengths(self, side: int) -> NDArray[np.int32]:
        """Characters of each sentence of a side."""
        return np.concatenate([np.zeros(0, dtype=np.int32), *self._lengths[side]])

    def pair_hashes(self) -> NDArray[np.uint64]:
        """What each pair shares with the same pair elsewhere."""
        return self.hashes(0) * np.uint64(0x9E3779B97F4A7C15) + self.hashes(1)

    def filled(self) -> NDArray[np.bool_]:
        """Which pairs have text on both sides."""
        return np.asarray((self.hashes(0) != NOTHING) & (self.hashes(1) != NOTHING))

    def examples(self, numbers: NDArray[np.int64], side: int = 0) -> tuple[Example, ...]:
        """The first few of these pairs, read again for their text."""
        wanted = numbers[:EXAMPLES].tolist()
        found = []
        for number, pair in enumerate(self.corpus.pairs() if wanted else ()):
            if number in wanted:
                found.append(self.example(number, side, pair[side]))
                if number == wanted[-1]:
                    break
        return tuple(found)

    def findings(self, max_tokens: int, characters_per_token: float) -> Iterator[Finding]:
        """What the pass has shown, kind by kind."""
        for notes, side in zip(self.corpus.notes, (0, 1), strict=False):
            if notes.invalid:
                numbers = np.array(notes.invalid_lines, dtype=np.int64) - 1
                examples = self.examples(numbers[numbers < self.count], side)
                yield judged("invalid UTF-8", notes.invalid, self.count, examples)
        invalid = any(notes.invalid for notes in self.corpus.notes)
        for kind, count in self._counts.items():
            if kind == "replacement" and invalid:
                continue  # we put it there ourselves
            yield judged(kind, count, self.count, tuple(self._examples[kind]))
        if self.count:
            yield from self._compared(max_tokens, characters_per_token)
            yield from self._aligned()
        for side, name in enumerate(("source", "target")):
            if self._letters[side] and not self._cased[side]:
                sentence = f"No {name} line has an upper-case letter: the model will know none."
                yield Finding("lower case", "note", self.count, 1.0, (), sentence)

    def _compared(self, max_tokens: int, characters_per_token: float) -> Iterator[Finding]:
        """What shows only when all pairs are seen together: copies, lengths."""
        source, target, filled = self.lengths(0), self.lengths(1), self.filled()
        suspect = {
            "copy": (self.hashes(0) == self.hashes(1)) & filled,
            "too long": np.maximum(source, target) > characters_per_token * max_tokens,
            "ratio": _unlike(source, target) & filled,
        }
        for kind, hits in suspect.items():
            if hits.any():
                numbers = np.flatnonzero(hits)
                yield judged(kind, len(numbers), self.count, self.examples(numbers), max_tokens)

    def _aligned(self) -> Iterator[Finding]:
        found = misalignment(self.lengths(0), self.lengths(1))
        if found is None:
            return
        where = f"From about {self.corpus.where(found.begin)} on, the" if found.begin else "The"
        lines = "a line" if abs(found.shift) == 1 else f"{abs(found.shift)} lines"
        how = f"look shifted by {lines}" if found.shift else "do not look like translations of each other"
        sentence = (
            f"{where} two sides {how}: the lengths of the lines hardly go together (correlation "
            f"{found.correlation:.2f}); was a line lost, or a file sorted or shuffled?"
        )
        severity: Severity = "fatal" if found.share >= 0.1 or found.shift else "warning"
        places = np.arange(found.begin, min(self.count, found.begin + EXAMPLES))
        yield Finding(
            "alignment", severity, int(found.share * self.count), found.share, self.examples(places), sentence
        )


def _unlike(source: NDArray[np.int32], target: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Pairs whose ratio of lengths is far from the corpus's: over five robust deviations, and over three times."""
    ratio = np.log((target + 5.0) / (source + 5.0))
    off = np.abs(ratio - np.median(ratio))
    return np.asarray(off > max(np.log(3.0), 5 * 1.4826 * float(np.median(off))))
