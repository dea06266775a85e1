"""What a reader is told to doubt: outputs that a model is not sure of, and words that training never read.

The confidence of an output is the geometric mean of the probabilities of its tokens, ``</s>`` included, from 0 to 1. It
is doubted where it is less than usual on the validation texts (``tasks/metrics/calibration.py``).

A word of a new text is unseen only where that is certain. Words are those of :func:`~regard.text.tags.places_of` that
hold a letter or a digit, the same in any letter case. The :data:`KEPT` most frequent keep their count. Of the others
only a Bloom filter [Bloom70] remains: it may take an unseen word for a seen one (one in about 500), never a seen one
for an unseen one.
"""

from __future__ import annotations

import json
import math
import unicodedata
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from regard.config import FORMAT, checksum
from regard.system import disk
from regard.system.errors import Damaged
from regard.text.tags import places_of

CONFIDENCE = "confidence.json"
"""The file of a model folder; imported models and those of earlier versions have none."""
Side = Literal["source", "target"]
"""Which vocabulary of a model: of what it reads, or of what it writes."""
WORDS = "words.source.json"
"""The file of the words that training read; folders of earlier versions have none."""
KEPT = 50_000
"""Words that keep their count."""
WAITING = 500_000
"""Different strings between blanks that are held before they are cut into words."""
LONGEST = 64
"""Most characters of a string between blanks that is remembered as seen."""
BITS, PROBES, LARGEST = 16, 4, 1 << 25
"""Of the filter: bits for a word, bits set by a word, and most bits (4 MiB)."""


@dataclass(frozen=True)
class ScoredText:
    """A text as a model sees it: its pieces, and the natural logarithm of the probability each had, the end's last."""

    pieces: tuple[str, ...]
    log_probabilities: tuple[float, ...]

    @property
    def log_probability(self) -> float:
        """Of the whole text."""
        return sum(self.log_probabilities)

    @property
    def confidence(self) -> float:
        """The geometric mean of the probabilities, 0 to 1."""
        return confidence_of(self.log_probability, len(self.log_probabilities))


def confidence_of(log_probability: float, tokens: int) -> float:
    """``exp(log_probability / tokens)``, from 0 to 1; NaN where the probability is not known.

    Args:
        log_probability: natural, of the whole output.
        tokens: of the output, ``</s>`` counted.
    """
    return math.exp(log_probability / max(1, tokens))


def is_doubted(confidence: float, below: float | None) -> bool | None:
    """Whether an output of this confidence is doubted; ``None`` where that, or ``below``, is not known."""
    return None if not below or math.isnan(confidence) else confidence < below


@dataclass(frozen=True)
class Calibration:
    """What was fitted on the validation texts of a translator.

    Args:
        guard: the usual values of what speaks against a translation (``tasks/translation/guard.py``); empty where they
            were not fitted.
        words: log-probabilities of words, and the probabilities that they stand in a reference; both rise.
    """

    guard: Mapping[str, float] = field(default_factory=dict)
    words: tuple[tuple[float, float], ...] = ()


NOT_CALIBRATED = Calibration()


def confidence_content(below: float, calibration: Calibration = NOT_CALIBRATED) -> bytes:
    """The bytes of :data:`CONFIDENCE`; ``below`` is 0 as long as nothing was fitted."""
    more = {name: value for name, value in asdict(calibration).items() if value}
    return (json.dumps({"format": FORMAT, "doubted_below": below, **more}) + "\n").encode()


def read_calibration(folder: Path) -> Calibration:
    """What else the file says; :data:`NOT_CALIBRATED` where there is none.

    Raises:
        RegardError: the file is damaged (:class:`Damaged`).
    """
    path = folder / CONFIDENCE
    value = disk.json_of(path, error=Damaged) if path.exists() else {}
    guard = value.get("guard", {}) if isinstance(value, dict) else None
    if not isinstance(guard, dict) or not all(type(one) is float and math.isfinite(one) for one in guard.values()):
        raise Damaged("is damaged: guard has no thresholds", str(path))
    try:
        words = tuple((float(given), float(found)) for given, found in value.get("words", ()))
    except (TypeError, ValueError):
        words = ((math.nan, 0.0),)
    sides = list(zip(*words, strict=True))
    if not all(math.isfinite(number) for side in sides for number in side) or any(list(s) != sorted(s) for s in sides):
        raise Damaged("is damaged: words has no rising numbers", str(path))
    return Calibration(guard, words)


def read_doubted_below(folder: Path) -> float | None:
    """The confidence below which outputs of a folder's model are doubted; ``None`` where that is not known.

    Raises:
        RegardError: the file is damaged (:class:`Damaged`), or a newer Regard wrote it.
    """
    path = folder / CONFIDENCE
    if not path.exists():
        return None
    value = disk.json_of(path, error=Damaged)
    below = value.get("doubted_below") if isinstance(value, dict) else None
    if isinstance(value, dict):
        checksum.refuse_newer(value, path)
    if isinstance(below, bool) or not isinstance(below, int | float) or not 0 <= below <= 1:
        raise Damaged("is damaged: doubted_below is no number from 0 to 1", str(path))
    return float(below)


@dataclass(frozen=True)
class UnseenWord:
    """A word that training never saw, and its characters in the text: from ``begin``, before ``end``."""

    word: str
    begin: int
    end: int


@dataclass(frozen=True)
class SeenWords:
    """The words that training read on one side.

    Args:
        counts: how often the most frequent were read, by word in lower case.
        others: the Bloom filter of the others; empty where there are none.
        unseen_pieces: of each vocabulary the ids that no training text has; ``None`` where that is not known.
    """

    counts: Mapping[str, int]
    others: bytes = b""
    unseen_pieces: tuple[tuple[int, ...], ...] | None = None
    _chunks: set[str] = field(default_factory=set, init=False, compare=False, repr=False)

    @classmethod
    def of(
        cls, counts: Mapping[str, int], kept: int = KEPT, unseen_pieces: tuple[tuple[int, ...], ...] | None = None
    ) -> SeenWords:
        """From counts of words in lower case."""
        ordered = sorted(counts, key=lambda word: (-counts[word], word))
        return cls({word: counts[word] for word in ordered[:kept]}, _filter(ordered[kept:]), unseen_pieces)

    def __contains__(self, word: str) -> bool:
        """Whether training may have read the word; false is certain."""
        known = _fold(word)
        if known in self.counts or not self.others:
            return known in self.counts
        return all(self.others[bit >> 3] >> (bit & 7) & 1 for bit in _bits(known, 8 * len(self.others)))

    def has_all_words(self, text: str) -> bool:
        """Whether training may have read every word of a text; strings between blanks that it has are remembered."""
        for chunk in text.split():
            if chunk in self._chunks:
                continue
            if not all(word in self for word, _, _ in _words(chunk)):
                return False
            if len(chunk) <= LONGEST:
                if len(self._chunks) == KEPT:
                    self._chunks.clear()
                self._chunks.add(chunk)
        return True

    def rarest(self, text: str) -> int:
        """How often training read the rarest word of a text; 0: one of them never; of a text without words the most.

        Words that have no count of their own, but were read, count as one.
        """
        found = (self.counts.get(_fold(word)) or int(word in self) for word, _, _ in _words(text))
        return min(found, default=max(self.counts.values(), default=0))

    def unseen_words(self, text: str, unseen_pieces: Iterable[tuple[int, int]] = ()) -> list[UnseenWord]:
        """The words of a text that training never saw, or not in this spelling, in order.

        Args:
            text: any.
            unseen_pieces: characters, from and to, of its pieces that no training text has. A word that holds such a
                piece counts as unseen, and so do these characters where they are in no word.
        """
        words, strange = list(_words(text)), [place for place in unseen_pieces if text[slice(*place)].strip()]
        found = {
            (begin, end): word
            for word, begin, end in words
            if word not in self or any(first < end and begin < last for first, last in strange)
        }
        for first, last in strange:
            if not any(first < end and begin < last for _, begin, end in words):
                found[first, last] = text[first:last]
        return [UnseenWord(found[place], *place) for place in sorted(found)]

    @property
    def content(self) -> bytes:
        """The bytes of its JSON file."""
        values = {"format": FORMAT, "counts": dict(self.counts), "others": b64encode(self.others).decode()}
        more = {} if self.unseen_pieces is None else {"unseen_pieces": self.unseen_pieces}
        return (json.dumps({**values, **more}, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def read_seen_words(folder: Path) -> SeenWords | None:
    """Those of a model folder or of prepared data; ``None`` where they were not counted.

    Raises:
        RegardError: the file is damaged (:class:`Damaged`), or a newer Regard wrote it.
    """
    path = folder / WORDS
    if not path.exists():
        return None
    value = disk.json_of(path)
    try:
        checksum.refuse_newer(value, path)
        counts, others = value["counts"], b64decode(value["others"], validate=True)
        if not isinstance(counts, dict) or not all(type(count) is int and count > 0 for count in counts.values()):
            raise ValueError
        pieces = value.get("unseen_pieces")
        if pieces is not None:
            pieces = tuple(tuple(side) for side in pieces)
            if not all(type(piece) is int and piece >= 0 for side in pieces for piece in side):
                raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Damaged("is damaged: it holds no counts of words", str(path)) from None
    return SeenWords(counts, others, pieces)


@dataclass
class WordCounter:
    """Counts the words of texts as they pass; strings between blanks first, as a text repeats most of them."""

    counts: Counter[str] = field(default_factory=Counter)
    _waiting: Counter[str] = field(default_factory=Counter)
    _cut_any: bool = False

    def add(self, texts: Iterable[str]) -> None:
        """Count the words of these texts."""
        self._waiting.update(" ".join(texts).split())
        if len(self._waiting) > WAITING:
            self._cut()

    @property
    def content(self) -> bytes:
        """What was counted so far, for :meth:`merge`."""
        self._cut()
        lists = [[*self.counts], [*self.counts.values()]]  # quicker than an object
        return json.dumps([self._cut_any, *lists], ensure_ascii=False).encode("utf-8", "surrogatepass")

    def merge(self, content: bytes) -> None:
        """Add what another process counted."""
        cut_any, words, times = json.loads(content.decode("utf-8", "surrogatepass"))
        self._cut_any = self._cut_any or cut_any
        self.counts.update(dict(zip(words, times, strict=True)))

    def __bool__(self) -> bool:
        """Whether any text was read."""
        return bool(self._cut_any or self._waiting)

    def _cut(self) -> None:
        self._cut_any = bool(self)
        for chunk, count in self._waiting.items():
            if chunk.isascii() and chunk.isalnum():  # one word, as most are
                self.counts[chunk.lower()] += count
                continue
            for word, _, _ in _words(chunk):
                self.counts[_fold(word)] += count
        self._waiting.clear()

    def seen_words(self, unseen_pieces: tuple[tuple[int, ...], ...] | None = None) -> SeenWords:
        """What was counted so far."""
        self._cut()
        return SeenWords.of(self.counts, unseen_pieces=unseen_pieces)


def _words(text: str) -> Iterator[tuple[str, int, int]]:
    for begin, end in places_of(text):
        word = text[begin:end]
        if any(map(str.isalnum, word)):
            yield word, begin, end


def _fold(word: str) -> str:
    return unicodedata.normalize("NFC", word.casefold())


def _filter(words: list[str]) -> bytes:
    if not words:
        return b""
    size = min(LARGEST, 1 << (BITS * len(words) - 1).bit_length())
    found = bytearray(max(1, size >> 3))
    for word in words:
        for bit in _bits(word, 8 * len(found)):
            found[bit >> 3] |= 1 << (bit & 7)
    return bytes(found)


def _bits(word: str, size: int) -> Iterator[int]:
    digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    first, second = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little") | 1
    return ((first + number * second) % size for number in range(PROBES))
