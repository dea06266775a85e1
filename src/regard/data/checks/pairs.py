"""Checks of parallel corpora: empty, duplicate, misaligned and leaked pairs (``regard check``).

One streaming pass, a few dozen bytes of memory a pair, and a short second pass for examples. What a vocabulary makes of
the text is judged by a sample of the pairs, and of each text by its first ``LONGEST`` characters.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.checks.findings import (
    EXAMPLES,
    PATTERNS,
    CheckScan,
    Draft,
    ExamplePosition,
    Report,
    Severity,
    draft,
    excerpt,
    is_suspect,
    look_up,
    match_patterns,
    pattern_draft,
    percent,
)
from regard.data.corpora.corpus import EMPTY_HASH, Corpus, Records, TextPair, text_hash
from regard.data.corpora.pairs import direction_of
from regard.system.errors import RegardError
from regard.system.forks import pack, unpack
from regard.text.counts import counted
from regard.text.languages import UNKNOWN
from regard.text.tokenizers.byte_pieces import LONGEST
from regard.text.tokenizers.vocabulary import Vocabularies, learn_vocabularies, sample

CHUNK = 500
SHIFTS = (1, -1, 2, -2, 3, -3)
FEWEST = 100
SAMPLE = 10_000
FEW = 1000
Numbered = tuple[int, tuple[str, str]]
"""A pair with its number in its corpus."""


@dataclass(frozen=True)
class Misalignment:
    """Lines that do not belong together.

    ``begin``: from about which pair on (counted from 0). ``shift``: line i of the source seems to belong to line
    i + shift of the target; 0: to none near it. ``correlation``: of the lengths there. ``share``: of the corpus.
    """

    begin: int
    shift: int
    correlation: float
    share: float


def correlation(left_B: NDArray[np.float64], right_B: NDArray[np.float64]) -> float:
    """Pearson's correlation; 1 where a side is constant, so that nothing is reported."""
    left, right = left_B - left_B.mean(), right_B - right_B.mean()
    spread = float(np.sqrt((left @ left) * (right @ right)))
    return float(left @ right) / spread if spread > 1e-3 * len(left_B) else 1.0


def misalignment(source: NDArray[np.integer], target: NDArray[np.integer]) -> Misalignment | None:
    """Detect shifted, shuffled or unrelated lines from their lengths in characters; ``None``: nothing suspect.

    A part of the corpus is suspected where the lengths go together no better than chance, or much better when one side
    is shifted by a few lines. Parts sorted by length say nothing; then only the whole is looked at.
    """
    source_B, target_B = np.log1p(source.astype(np.float64)), np.log1p(target.astype(np.float64))
    if len(source_B) < FEWEST:
        return None
    whole = correlation(source_B, target_B)
    begins = range(0, max(1, len(source_B) - CHUNK // 2), CHUNK)
    spread, suspect = (source_B.std(), target_B.std()), []
    for begin in begins:
        end = len(source_B) if begin == begins[-1] else begin + CHUNK
        part = source_B[begin:end], target_B[begin:end]
        narrow = any(side.std() < 0.5 * usual for side, usual in zip(part, spread, strict=True))
        if not narrow and (found := _find_shift(*part)) is not None:
            suspect.append((begin, *found))
    share = len(suspect) / len(begins)
    places = [begin for begin, _, _ in suspect]
    # to the end, as when a line is missing near it
    lasting = len(places) > 1 and places == list(begins[-len(places) :])
    if suspect and (share >= 0.05 or lasting):
        shifts = [shift for _, shift, _ in suspect]
        usual = max(sorted(set(shifts)), key=shifts.count)
        begin = _change(source_B, target_B, usual) if usual else suspect[0][0]
        return Misalignment(begin, usual, float(np.mean([value for _, _, value in suspect])), share)
    return Misalignment(0, 0, whole, 1.0) if whole < 4.0 / np.sqrt(len(source_B)) else None


def _find_shift(source_B: NDArray[np.float64], target_B: NDArray[np.float64]) -> tuple[int, float] | None:
    """The best shift and the actual correlation, if that is suspect."""
    here = correlation(source_B, target_B)
    chance = 4.0 / np.sqrt(len(source_B))
    if here > max(0.35, chance):
        return None
    shifted = {shift: correlation(*_shift(source_B, target_B, shift)) for shift in SHIFTS}
    best = max(shifted, key=shifted.__getitem__)
    if shifted[best] > here + max(0.25, chance):
        return best, here
    return (0, here) if here < chance else None


def _shift(
    source_B: NDArray[np.float64], target_B: NDArray[np.float64], shift: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Pair line i of the source with line i + shift of the target."""
    if shift > 0:
        return source_B[:-shift], target_B[shift:]
    return source_B[-shift:], target_B[:shift]


def _change(source_B: NDArray[np.float64], target_B: NDArray[np.float64], shift: int) -> int:
    """From which pair on the shifted target fits better than the plain one: the split with the least misfit in all."""
    usual = np.median(target_B) - np.median(source_B)
    plain = np.abs(target_B - source_B - usual)
    moved = np.abs(np.roll(target_B, -shift) - source_B - usual)
    before = np.concatenate([[0.0], np.cumsum(plain - moved)])
    return int(before.argmin())


class PairScan(CheckScan[TextPair]):
    """Lengths, letter case and suspect lines of a parallel corpus, beside its hashes."""

    def __init__(self, corpus: Corpus[TextPair]) -> None:
        super().__init__(corpus)
        self._lengths = array("i")
        self.cased, self.letters = [False, False], [False, False]

    def add_all(self, examples: Sequence[TextPair]) -> None:
        """Record the next pairs; single ones are looked at only where one is suspect, which is several times faster."""
        texts = [text for pair in examples for text in pair]
        whole = "".join(f"{text}\n" for text in texts)
        self.add_content(whole)
        self._hashes.extend(map(text_hash, texts))
        self._lengths.extend(map(len, texts))
        for side in (0, 1):
            self._look_at_case(texts[side::2], side)
        if not is_suspect(whole) and all(map(str.strip, texts)):
            self.count += len(examples)
            return
        for pair in examples:
            self.count += 1
            self._note_problems(pair)

    def add(self, example: TextPair) -> None:
        self.add_all([example])

    def _look_at_case(self, texts: Sequence[str], side: int) -> None:
        """Whether a side has letters, and large ones, where that is not known yet."""
        for text in texts:
            if self.cased[side]:
                return
            lower = text.lower()
            self.cased[side] = text != lower
            self.letters[side] = self.letters[side] or lower != text.upper()

    def _note_problems(self, pair: TextPair) -> None:
        for side, text in enumerate(pair):
            for kind in match_patterns(text):
                self.note(kind, text, side)
        if not all(map(str.strip, pair)):
            side = int(bool(pair.source.strip()))
            self.note("empty", pair[side], side)

    def read_links(self, path: Path | None) -> None:
        """Read the file of the links of the pairs, if there is one; an error is kept in :attr:`error`."""
        if path is None or self.error:
            return
        from regard.data.alignment.files import check_links  # few corpora have them

        try:
            check_links(self.corpus, path)
        except RegardError as error:
            self.error = error

    def pack(self) -> bytes:
        """As of every scan, with what this one counts."""
        places = {kind: [place[1:] for place in found] for kind, found in self.places.items()}
        return pack([super().pack(), self._lengths.tobytes(), self.cased, self.letters, self.counts, places])

    def merge(self, packed: bytes) -> None:
        """Add what a blank scan has found in the next pairs."""
        scan, lengths, cased, letters, counts, places = unpack(packed)
        super().merge(scan)
        self._lengths.frombytes(lengths)
        self.cased = [one or more for one, more in zip(self.cased, cased, strict=True)]
        self.letters = [one or more for one, more in zip(self.letters, letters, strict=True)]
        self.counts.update(counts)
        for kind, found in places.items():
            more = found[: EXAMPLES - len(self.places[kind])]
            self.places[kind] += [ExamplePosition(self, *place) for place in more]

    def lengths(self, side: int) -> NDArray[np.int32]:
        """Characters of each sentence of a side."""
        return np.frombuffer(self._lengths, np.int32)[side::2] if self.count else np.zeros(0, np.int32)

    def pair_hashes(self) -> NDArray[np.uint64]:
        """A hash of each pair."""
        return self.hashes_B2[:, 0] * np.uint64(0x9E3779B97F4A7C15) + self.hashes_B2[:, 1]

    def filled(self) -> NDArray[np.bool_]:
        """Which pairs have text on both sides."""
        return np.asarray((self.hashes_B2 != EMPTY_HASH).all(1))

    def drafts(self, max_tokens: int, characters_per_token: float | None) -> Iterator[Draft]:
        """All findings of the scan; lengths are not judged where it is not known how long a token is."""
        yield from self.unreadable()
        for notes, side in zip(self.corpus.notes, (0, 1), strict=False):
            if notes.invalid:
                numbers = np.array(notes.invalid_lines, dtype=np.int64) - 1
                places = self.at(numbers[numbers < self.count], side)
                yield pattern_draft("invalid UTF-8", notes.invalid, notes.read, places)
        invalid = any(notes.invalid for notes in self.corpus.notes)
        for kind, count in self.counts.items():
            if kind != "replacement" or not invalid:  # else we put it there ourselves
                yield pattern_draft(kind, count, self.count * (1 + (kind in PATTERNS)), self.places[kind])
        if isinstance(self.corpus, Records) and (left := self.corpus.left_out):
            said = f"{counted(left, 'unit')} of {self.corpus.name} left out: without both texts, or not translated."
            yield draft("untranslated", "note", left, left / (left + self.count), said)
        if self.count:
            yield from self._pair_drafts(max_tokens, characters_per_token)
            yield from self._alignment_drafts()
        for side, name in enumerate(("source", "target")):
            if self.letters[side] and not self.cased[side]:
                sentence = f"No {name} line has an upper-case letter: the model will not know any."
                yield draft("lower case", "note", self.count, 1.0, sentence)

    def _pair_drafts(self, max_tokens: int, characters_per_token: float | None) -> Iterator[Draft]:
        """Findings over all pairs together: copies, lengths."""
        source, target, filled = self.lengths(0), self.lengths(1), self.filled()
        suspect = {"copy": (self.hashes_B2[:, 0] == self.hashes_B2[:, 1]) & filled}
        if characters_per_token is not None:
            suspect["too long"] = np.maximum(source, target) > characters_per_token * max_tokens
        ratio = np.log((target + 5.0) / (source + 5.0))
        off = np.abs(ratio - np.median(ratio))  # an outlier is over five robust deviations, and over three times
        suspect["ratio"] = (off > max(np.log(3.0), 5 * 1.4826 * float(np.median(off)))) & filled
        for kind, hits in suspect.items():
            if hits.any():
                numbers = np.flatnonzero(hits)
                yield pattern_draft(kind, len(numbers), self.count, self.at(numbers), {"limit": max_tokens})

    def _alignment_drafts(self) -> Iterator[Draft]:
        found = misalignment(self.lengths(0), self.lengths(1))
        if found is None:
            return
        where = f"From about {self.corpus.where(found.begin)} on, the" if found.begin else "The"
        lines = "a line" if abs(found.shift) == 1 else counted(abs(found.shift), "line")
        how = f"look shifted by {lines}" if found.shift else "do not look like translations of each other"
        sentence = (
            f"{where} two sides {how}: the lengths of the lines are hardly correlated ("
            f"{found.correlation:.2f}); was a line lost, or a file sorted or shuffled?"
        )
        severity: Severity = "fatal" if found.share >= 0.1 or found.shift else "warning"
        places = self.at(np.arange(found.begin, min(self.count, found.begin + EXAMPLES)))
        yield draft("alignment", severity, int(found.share * self.count), found.share, sentence, places)


def check_pairs(
    corpora: Sequence[Corpus[TextPair]],
    others: Mapping[str, Corpus[TextPair]] | None = None,
    max_tokens: int = 256,
    vocabularies: Vocabularies | None = None,
    links: Sequence[Path] = (),
) -> Report:
    """Read parallel corpora and check them; all findings and a verdict.

    Args:
        corpora: the training data.
        others: validation and test corpora by name, searched for in the training corpora.
        max_tokens: longer pairs would be left out.
        vocabularies: existing ones that would be used; default: of each corpus one is quickly learned.
        links: files of word links, one for each corpus.
    """
    scans, drafts = [PairScan(corpus) for corpus in corpora], list[Draft]()
    for scan, path in zip_longest(scans, links):
        begun = (TextPair(source[:LONGEST], target[:LONGEST]) for source, target in scan.stream())
        kept = sample(enumerate(begun), SAMPLE, seed=1)
        known = vocabularies or (learn_vocabularies([pair for _, pair in kept], 8000) if kept else None)
        texts = [pair[0] for _, pair in kept[:1000]]
        tokens = sum(map(len, known.source.ids_batch(texts))) if known else 0
        per_token = sum(map(len, texts)) / tokens if tokens else 4.0
        scan.read_links(path)
        drafts += scan.drafts(max_tokens, per_token)
        drafts += vocabulary_drafts(scan, kept, known) if known else []
    scanned = {name: PairScan(other).run() for name, other in (others or {}).items()}
    return report_pairs(scans, scanned, drafts, read=True)


def report_pairs(
    scans: Sequence[PairScan], others: Mapping[str, PairScan], drafts: Sequence[Draft], read: bool = False
) -> Report:
    """The report of scanned corpora.

    Args:
        scans: of the training data.
        others: of validation and test corpora, by name.
        drafts: the findings of each scan.
        read: whether examples show their text, for which the corpora are read again.
    """
    pairs = sum(scan.count for scan in scans)
    every = [*drafts, *_sizes(pairs, bool(drafts), ", ".join(scan.corpus.name for scan in scans)), *_duplicates(scans)]
    for name, other in others.items():
        every += other.unreadable() or _leaks(name, other, scans)
    source, target = (sum(int(scan.lengths(side).sum()) for scan in scans) for side in (0, 1))
    return Report(pairs, source / max(1, pairs), target / max(1, pairs), look_up(every, read))


def vocabulary_drafts(scan: PairScan | None, kept: Sequence[Numbered], vocabularies: Vocabularies) -> list[Draft]:
    """Words of a sample with a character that is not in the vocabulary; ``scan`` says where the pairs stand."""
    sides = []
    for side, tokenizer in enumerate((vocabularies.source, vocabularies.target)):
        counts = Counter(word for _, pair in kept for word in pair[side].split())
        strange = [word for word in counts if not word.isascii()]  # a byte is a whole character of the others
        pieces = tokenizer.ids_batch([f" {word}" for word in strange])
        fell = (word for word, ids in zip(strange, pieces, strict=True) if any(map(tokenizer.is_byte, ids.tolist())))
        sides.append((counts.total(), Counter({word: counts[word] for word in fell})))
    words, hits = sum(words for words, _ in sides), sum(fell.total() for _, fell in sides)
    if hits / max(1, words) < 0.001:
        return []
    seen = ", ".join(repr(excerpt(word)) for _, fell in sides for word, _ in fell.most_common(3))
    places = (
        ExamplePosition(scan, number, side, pair[side])
        for number, pair in kept
        for side in (0, 1)
        if scan and not sides[side][1].keys().isdisjoint(pair[side].split())
    )
    return [pattern_draft("bytes", hits, words, list(islice(places, EXAMPLES)), {"seen": seen})]


def _sizes(pairs: int, already: bool, name: str) -> list[Draft]:
    if pairs == 0:
        return [] if already else [draft("no pairs", "fatal", 0, 1.0, f"There are no sentence pairs in {name}.")]
    if pairs == 1:
        return [draft("few pairs", "fatal", 1, 1.0, "A single pair is not enough to learn from.")]
    if pairs < FEW:
        sentence = f"{pairs} pairs are too few to learn to translate; a small domain needs some ten thousand."
        return [draft("few pairs", "warning", pairs, 1.0, sentence)]
    return []


def _duplicates(scans: Sequence[PairScan]) -> list[Draft]:
    """Pairs that occur more than once in all corpora of a direction together."""
    directions = [direction_of(scan.corpus) for scan in scans]
    known = [pair for pair in directions if UNKNOWN not in pair]
    numbers = (np.uint64(known.index(pair) if pair in known else 0) for pair in directions)
    hashes = np.concatenate([scan.pair_hashes() + number for scan, number in zip(scans, numbers, strict=True)])
    hits = np.concatenate([scan.filled() for scan in scans])
    hits[np.unique(hashes, return_index=True)[1]] = False
    if not hits.any():
        return []
    parts = np.split(hits, np.cumsum([scan.count for scan in scans])[:-1])
    places = [place for scan, part in zip(scans, parts, strict=True) for place in scan.at(np.flatnonzero(part))]
    return [pattern_draft("duplicate", int(hits.sum()), len(hits), places[:EXAMPLES])]


def _leaks(name: str, other: PairScan, scans: Sequence[PairScan]) -> list[Draft]:
    """Sentences of a validation or test corpus that are in the training corpora too."""
    trained = np.concatenate([scan.hashes_B2 for scan in scans])
    source, target = (
        np.isin(other.hashes_B2[:, side], trained[:, side]) & (other.hashes_B2[:, side] != EMPTY_HASH)
        for side in (0, 1)
    )
    pairs = np.isin(other.pair_hashes(), np.concatenate([scan.pair_hashes() for scan in scans])) & source
    drafts = []
    for kind, hits, noun in (
        ("leak", pairs, "pairs"),
        ("sentence leak", (source | target) & ~pairs, "single sentences"),
    ):
        if count := int(hits.sum()):
            share = count / max(1, other.count)
            severity: Severity = "note" if kind == "sentence leak" else "fatal" if share >= 0.2 else "warning"
            sentence = (
                f"{count} {noun} ({percent(share)}) of {name} are in the training data too: scores will be too high."
            )
            drafts.append(draft(kind, severity, count, share, sentence, other.at(np.flatnonzero(hits))))
    return drafts
