"""One pass over a corpus of labelled texts: labels, repeated texts and suspect lines, 16 bytes a text."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regard.data.checks.findings import EXAMPLES, Example, excerpt
from regard.data.checks.line_patterns import match_patterns
from regard.data.corpora.labels import SEPARATOR, Kind, parse_number, split_labels
from regard.data.corpora.pairs import Corpus
from regard.data.corpora.passes import EVERY, Progress, text_hash

_OF_TEXTS = ("mojibake", "replacement", "control")


@dataclass
class LabelScan:
    """Statistics of a corpus of labelled texts. Call :meth:`run` once, then query."""

    corpus: Corpus
    kind: Kind
    count: int = 0
    characters: int = 0
    label_characters: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    first: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[Example]] = field(default_factory=lambda: defaultdict(list))
    counts: Counter[str] = field(default_factory=Counter)
    _chunks: list[NDArray[np.uint64]] = field(default_factory=list)

    def run(self, progress: Progress) -> None:
        """Look at every text."""
        waiting: list[tuple[int, int]] = []
        for text, label in self.corpus.pairs():
            waiting.append((text_hash(text), self._look(text, label)))
            self.count += 1
            if len(waiting) == EVERY:
                self._flush(waiting)
                progress("check", self.count)
        self._flush(waiting)
        progress("check", self.count)

    def _look(self, text: str, label: str) -> int:
        """Count what this text shows; a number that equal labels share."""
        self.characters += len(text)
        self.label_characters += len(label)
        for kind in match_patterns(text).intersection(_OF_TEXTS):
            self._note(kind, text)
        if not text.strip():
            self._note("empty", text)
        if not label and self.kind != "multi":
            self._note("no label", text)
        elif self.kind == "regression" and parse_number(label) is None:
            self._note("not a number", label)
        for one in self._labels(label):
            if not self.labels[one]:
                self.first[one] = self.count
            self.labels[one] += 1
        return _digest(self._meaning(label))

    def _labels(self, label: str) -> list[str]:
        """The classes in a label; empty for regression."""
        if self.kind == "multi":
            return split_labels(label)
        return [label] if label and self.kind == "single" else []

    def _meaning(self, label: str) -> str:
        """A canonical form, equal for equivalent labels."""
        if self.kind == "multi":
            return SEPARATOR.join(sorted(split_labels(label)))
        return str(parse_number(label)) if self.kind == "regression" else label

    def _note(self, kind: str, text: str) -> None:
        self.counts[kind] += 1
        if len(self.examples[kind]) < EXAMPLES:
            self.examples[kind].append(self.example(self.count, text))

    def _flush(self, waiting: list[tuple[int, int]]) -> None:
        self._chunks.append(np.array(waiting, dtype=np.uint64).reshape(-1, 2))
        waiting.clear()

    def hashes(self) -> NDArray[np.uint64]:
        """For each text (rows) a hash of the text and one of its label."""
        return np.concatenate([np.zeros((0, 2), dtype=np.uint64), *self._chunks])

    def example(self, number: int, text: str) -> Example:
        """A text, or its label, as a finding shows it."""
        file, _, line = self.corpus.where(number).rpartition(":")
        return file, int(line), excerpt(text)

    def read_again(self, numbers: Sequence[int]) -> Iterator[Example]:
        """Texts by their numbers, in order, each with its label."""
        wanted = set(numbers)
        for number, (text, label) in enumerate(self.corpus.pairs() if wanted else ()):
            if number in wanted:
                yield self.example(number, f"{label} ← {text}")
                if number == max(wanted):
                    break


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
