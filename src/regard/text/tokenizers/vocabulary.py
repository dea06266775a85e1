"""Vocabularies of a translator: one joint tokenizer or one per language, learned from a sample of the corpus."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from regard.system import disk
from regard.system.errors import RegardError
from regard.system.forks import pack, unpack
from regard.system.keys import generator
from regard.text.confidence import (
    CONFIDENCE,
    NOT_CALIBRATED,
    WORDS,
    Calibration,
    SeenWords,
    confidence_content,
    read_calibration,
    read_doubted_below,
    read_seen_words,
)
from regard.text.language_tokens import FRAME, LANGUAGES, PLAIN, LanguageTokens, TextFrame, read_frame, read_languages
from regard.text.tokenizers.byte_pieces import ChunkCounter, Normalisation, Units
from regard.text.tokenizers.tokenizer import Tokenizer, extend, learn_counted, read_document

if TYPE_CHECKING:
    from regard.text.language_ngrams import LanguageNgrams
    from regard.text.shortlist import Shortlist
    from regard.text.terms import TermList
    from regard.text.tokenizers.hugging_face import HuggingFaceTokenizer
    from regard.text.tokenizers.sentencepiece import SentencePieceTokenizer

Item = TypeVar("Item")
CHUNK = 4096
TOKENIZER, SOURCE, TARGET = "tokenizer.json", "tokenizer.source.json", "tokenizer.target.json"
NGRAMS, SHORTLIST, TERMS = "languages.ngrams.json", "shortlist.bin", "terms.tsv"
"""Files that few model folders have, of several languages, a student or terms; only there their modules are loaded."""
PAD = 0
"""The pad piece of a T5."""
AnyTokenizer: TypeAlias = "Tokenizer | HuggingFaceTokenizer | SentencePieceTokenizer"


def sample(items: Iterable[Item], count: int, seed: int) -> list[Item]:
    """``count`` items drawn evenly without replacement (all, if there are fewer): a reservoir, a function of the seed.

    The order of the stream is kept.
    """
    draws = generator(seed, "sample")
    kept: list[tuple[int, Item]] = []
    places: list[int] = []
    for number, item in enumerate(items):
        if number < count:
            kept.append((number, item))
            continue
        if not places:  # drawn in chunks: one draw costs a microsecond, a stream may have 10⁸ items
            places = draws.integers(0, range(number + 1, number + 1 + CHUNK)).tolist()[::-1]
        place = places.pop()
        if place < count:
            kept[place] = (number, item)
    return [item for _, item in sorted(kept, key=lambda entry: entry[0])]


def read_tokenizer(path: Path | str) -> AnyTokenizer:
    """Read a tokenizer file, ours or a foreign one; ours has a format field.

    Raises:
        RegardError: the file is missing, too large or damaged.
    """
    document = read_document(path)
    document = document if isinstance(document, dict) else {}
    if "sentencepiece" in document:
        from regard.text.tokenizers.sentencepiece import SentencePieceTokenizer

        return SentencePieceTokenizer.of(document, str(path))
    model = document.get("model")
    if not isinstance(model, dict) or "format" in model:
        return Tokenizer.of(document, str(path))
    from regard.text.tokenizers.hugging_face import HuggingFaceTokenizer

    return HuggingFaceTokenizer(document, where=str(path))


def start_of(tokenizer: AnyTokenizer) -> int:
    """What begins a text that is written with one vocabulary for both sides: T5's pad piece with a T5's, else ours."""
    return PAD if tokenizer.pad == PAD else tokenizer.start


@dataclass(frozen=True)
class Vocabularies:
    """A tokenizer for each side, the same one twice where ``joint``.

    Args:
        source, target: of each side.
        joint: whether they are one.
        seen: source words that training read; ``None`` where that is not known.
        doubted_below: the confidence below which translations are doubted; 0 as long as none is, ``None`` where that is
            not known.
        languages: their tokens, of a translator of several.
        frame: what else stands around texts.
        ngrams: by which the language of a text is told, of a translator that learned several.
        calibration: what else was fitted on the validation texts.
        shortlist: target pieces that source pieces are translated by, where the model came with such a list.
        terms: what its translations contain, where ``regard terms`` put a list beside it.
    """

    source: AnyTokenizer
    target: AnyTokenizer
    joint: bool
    seen: SeenWords | None = field(default=None, compare=False)
    doubted_below: float | None = field(default=None, compare=False)
    calibration: Calibration = field(default=NOT_CALIBRATED, compare=False)
    languages: LanguageTokens | None = None
    frame: TextFrame = PLAIN
    ngrams: LanguageNgrams | None = field(default=None, compare=False)
    shortlist: Shortlist | None = field(default=None, compare=False)
    terms: TermList | None = field(default=None, compare=False)

    @property
    def sha256(self) -> str:
        """One fingerprint of both."""
        return hashlib.sha256(f"{self.source.sha256} {self.target.sha256}".encode()).hexdigest()

    @property
    def sizes(self) -> tuple[int, int]:
        """Pieces of each side."""
        return self.source.size, self.target.size

    @property
    def extensible(self) -> bool:
        """Whether all are of pieces that we learned or of SentencePiece, to which others can be added."""
        return all(one.units == "pieces" if isinstance(one, Tokenizer) else one.model for one in self.files.values())

    @property
    def contents(self) -> dict[str, bytes]:
        """The files of a model folder, by name."""
        found = {name: tokenizer.content for name, tokenizer in self.files.items()}
        if self.seen:
            found[WORDS] = self.seen.content
        if self.doubted_below is not None:
            found[CONFIDENCE] = confidence_content(self.doubted_below, self.calibration)
        if self.frame != PLAIN:
            found[FRAME] = self.frame.content
        if self.shortlist:
            found[SHORTLIST] = self.shortlist.content
        if self.terms:
            found[TERMS] = self.terms.content
        return found | self.language_files

    @property
    def language_files(self) -> dict[str, bytes]:
        """The content of the files of a translator of several languages."""
        found = {LANGUAGES: self.languages, NGRAMS: self.ngrams}
        return {name: one.content for name, one in found.items() if one}

    @property
    def files(self) -> dict[str, AnyTokenizer]:
        """File name to tokenizer: ``tokenizer.json``, or ``tokenizer.source.json`` and ``tokenizer.target.json``."""
        return {TOKENIZER: self.source} if self.joint else {SOURCE: self.source, TARGET: self.target}

    def save(self, folder: Path | str) -> None:
        """Write :attr:`files` and :attr:`language_files` into a folder."""
        for name, tokenizer in self.files.items():
            tokenizer.save(Path(folder) / name)
        for name, content in self.language_files.items():
            (Path(folder) / name).write_bytes(content)

    @classmethod
    def load(cls, folder: Path | str) -> Vocabularies:
        """Load what :meth:`save` wrote, and what else is there of :attr:`contents`.

        Raises:
            RegardError: no tokenizer is there, or one is damaged.
        """
        folder = Path(folder)
        seen, below, calibration = read_seen_words(folder), read_doubted_below(folder), read_calibration(folder)
        languages, frame, ngrams = read_languages(folder), read_frame(folder), _read_ngrams(folder / NGRAMS)
        joint = (folder / TOKENIZER).exists()
        if not joint and not (folder / SOURCE).exists():
            raise RegardError(f"holds neither {TOKENIZER} nor {SOURCE}; is it a model folder?", str(folder))
        source = read_tokenizer(folder / (TOKENIZER if joint else SOURCE))
        target = source if joint else read_tokenizer(folder / TARGET)
        size = min(source.size, target.size) if languages and languages.begins else source.size
        if languages and not all(0 <= id < size for id in languages.ids.values()):
            message = f"is damaged: a token of a language is not among {size:,} pieces"
            raise RegardError(message, str(folder / LANGUAGES))
        shortlist, terms = _read_shortlist(folder / SHORTLIST, (source.size, target.size)), read_terms(folder)
        return cls(source, target, joint, seen, below, calibration, languages, frame, ngrams, shortlist, terms)


def _read_ngrams(path: Path) -> LanguageNgrams | None:
    if not path.exists():
        return None
    from regard.text.language_ngrams import read_ngrams

    return read_ngrams(path)


def read_terms(folder: Path) -> TermList | None:
    """The terms of a model folder, where ``regard terms`` put some there.

    Raises:
        RegardError: they are damaged.
    """
    if not (path := folder / TERMS).exists():
        return None
    from regard.text.terms import TermList

    disk.refuse_irregular(path)
    return TermList.read(path)


def _read_shortlist(path: Path, sizes: tuple[int, int]) -> Shortlist | None:
    if not path.exists():
        return None
    from regard.text.shortlist import Shortlist

    return Shortlist.of(disk.content(path), sizes, str(path))


def learn_vocabularies(
    pairs: Iterable[tuple[str, str]],
    vocabulary: int,
    joint: bool = True,
    normalisation: Normalisation = "nfc",
    *,
    units: Units = "pieces",
    lowercase: bool = False,
) -> Vocabularies:
    """Tokenizers learned from sentence pairs; ``vocabulary`` entries at most on each side, or in the joint one."""
    counter = PairCounter(joint, normalisation, units, lowercase)
    counter.add(list(pairs))
    return counter.learn(vocabulary)


class PairCounter:
    """Counts what vocabularies are learned from.

    Args:
        joint: both sides together.
        normalisation, units, lowercase: as :class:`~regard.text.tokenizers.byte_pieces.ChunkCounter`.
    """

    def __init__(
        self, joint: bool = True, normalisation: Normalisation = "nfc", units: Units = "pieces", lowercase: bool = False
    ) -> None:
        self._sides = [ChunkCounter(normalisation, units, lowercase) for _ in range(1 if joint else 2)]

    def add(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Count sentence pairs."""
        for begin in range(0, len(pairs), CHUNK):
            some = pairs[begin : begin + CHUNK]
            for side in (0, 1):
                self._sides[side % len(self._sides)].add([pair[side] for pair in some])

    @property
    def content(self) -> bytes:
        """What was counted, for :meth:`merge`."""
        return pack([side.content for side in self._sides])

    def merge(self, content: bytes) -> None:
        """Add what another process counted."""
        for side, counts in zip(self._sides, unpack(content), strict=True):
            side.merge(counts)

    def learn(self, vocabulary: int, symbols: Sequence[str] = ()) -> Vocabularies:
        """The vocabularies, of at most so many entries each; of the source's the symbols are some."""
        learned = [
            learn_counted(side, vocabulary, () if number else symbols) for number, side in enumerate(self._sides)
        ]
        return Vocabularies(learned[0], learned[-1], joint=len(learned) == 1)

    def extend(self, known: Vocabularies, count: int) -> Vocabularies:
        """Vocabularies with at most so many pieces more each; two that name one table's rows name them alike again."""
        sides = zip(known.files.values(), self._sides, strict=True)
        if isinstance(known.source, Tokenizer):
            found = [extend(one, side, count) for one, side in sides if isinstance(one, Tokenizer)]
            return replace(known, source=found[0], target=found[-1])
        from regard.text.tokenizers.sentencepiece import SentencePieceTokenizer

        models, alike = list[SentencePieceTokenizer](), known.source.names == known.target.names
        for one, side in sides:
            assert isinstance(one, SentencePieceTokenizer)
            before = models[0].names[one.size :] if models and alike else ()
            models.append(one.extend(side, count, before))
        source = models[0].with_names(models[-1].names) if alike and not known.joint else models[0]
        return replace(known, source=source, target=models[-1])
