"""Byte-level BPE tokenizer: lossless, with character offsets [Sennrich16 §3.2, Radford19 §2.2].

Characters as units are the same with another split: each character is a word, a known one is a piece as it stands, and
any other falls into its bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models, pre_tokenizers, trainers

from regard.config import FORMAT
from regard.system import disk
from regard.system.errors import RegardError, UsageError, written_by_newer
from regard.text.lines import replace_surrogates
from regard.text.tokenizers import byte_pieces
from regard.text.tokenizers.byte_pieces import ALPHABET, ChunkCounter, Normalisation, Units, assemble, normaliser

END, UNKNOWN = "</s>", "<unk>"
_SPLITTERS = {
    unit: json.loads(assemble(models.BPE(), None, unit).to_str())["pre_tokenizer"] for unit in byte_pieces.SPLIT
}
_NORMALISERS: dict[tuple[Normalisation, bool], object] = {
    (form, lowercase): json.loads(assemble(models.BPE(), normaliser(form, lowercase)).to_str())["normalizer"]  # type: ignore[misc]
    for form in byte_pieces.FORMS
    for lowercase in (False, True)
}
COUNTED = 4096
"""Texts whose words are counted together."""
FIRST_LETTER = 0x10000
"""From here on Unicode has more characters than a vocabulary has pieces, none of them white space."""
CLASS, MASK = "[CLS]", "[MASK]"
SENTINEL = re.compile(r"<extra_([0-9]+)>")
"""Symbols of tasks: before a text that is read as a whole, for a hidden word, for each span that was taken out."""


def read_document(path: Path | str) -> Any:
    """The JSON of a tokenizer's file.

    Raises:
        RegardError: the file is missing, too large, or no JSON.
    """
    return disk.json_of(path, "tokenizer file")


def _fits(vocabulary: list[str], merges: list[tuple[str, str]], ids: dict[str, int]) -> bool:
    """Whether ids count from zero, symbols come first, then the bytes, then pieces that the merges build."""
    if list(map(ids.__getitem__, vocabulary)) != list(range(len(vocabulary))) or vocabulary[:2] != [END, UNKNOWN]:
        return False
    first = vocabulary.index(ALPHABET[0])
    known = set(vocabulary[first:])
    spelled = all(known) and set("".join(known)) <= set(ALPHABET)
    built = known.issuperset(chain.from_iterable(merges)) and known.issuperset(map("".join, merges))
    return first >= 2 and vocabulary[first : first + 256] == ALPHABET and spelled and built


@dataclass(frozen=True)
class Encoding:
    """The pieces of one text: ``offsets[i]`` are the characters of ``text`` whose bytes piece ``ids[i]`` holds.

    Pieces that share the bytes of one character share that character's span. ``text`` is the normalised text.
    """

    ids: list[int]
    offsets: list[tuple[int, int]]
    text: str


class BaseTokenizer(ABC):
    """What our tokenizer, Hugging Face's and SentencePiece have in common.

    Encoding never adds a symbol, and a symbol's name in a text stays text.
    """

    names: Sequence[str]
    """Of each id; a row without a name has an empty one."""
    size: int
    start: int
    content: bytes
    """The bytes that :meth:`save` writes."""
    ordinary: NDArray[np.int64]
    """The ids of pieces: not of symbols, nor of rows without a name."""
    alone_V: NDArray[np.bool_]
    """Of each id, the start symbol last, whether it is a symbol, which is a word by itself."""
    pad: int | None = None
    """The id of the symbol that fills up batches elsewhere, where there is one."""
    model: bytes | None = None
    """The file of the SentencePiece model that it is, if it is one."""
    end: int
    ends_between = 1
    """How often :attr:`end` stands between two texts that are no segments."""
    shortest, longest = 0, 1 << 20
    """A text of so many times ``shortest`` bytes has no more pieces, one of more than ``longest`` times has more."""

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of the content."""
        return hashlib.sha256(self.content).hexdigest()

    @abstractmethod
    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """The pieces of each text with their offsets; faster than one by one."""

    @abstractmethod
    def ids_batch(self, texts: Sequence[str], ended: bool = False) -> list[NDArray[np.int64]]:
        """The ids alone of each text, ``</s>`` last where ``ended``; the fastest way in."""

    def flat_ids(self, texts: Sequence[str], ended: bool = False) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """``(ids_T, lengths_B)``: as :meth:`ids_batch`, but end to end, and how many ids each text has."""
        found = self.ids_batch(texts, ended)
        return np.concatenate([np.zeros(0, np.int64), *found]), np.array([*map(len, found)], np.int64)

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """The text of pieces; symbols are skipped."""

    @abstractmethod
    def _word_starts(self, ids: Sequence[int]) -> NDArray[np.bool_]:
        """Which of these pieces, none of which stands alone, begin a word."""

    def normalise(self, text: str) -> str:
        """``text`` without lone surrogates; what else a foreign file changes, it changes inside."""
        return replace_surrogates(text)

    def encode(self, text: str) -> Encoding:
        """The pieces of ``text`` with their offsets."""
        return self.encode_batch([text])[0]

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """The text of each sequence of pieces."""
        return [self.decode(ids) for ids in batch]

    def incremental(self) -> byte_pieces.Incremental:
        """A reader that turns ids into text one by one; its outputs together equal :meth:`decode` of all ids."""
        return byte_pieces.WindowDecoder(self.decode)

    def piece(self, id: int) -> str:
        """A piece as people read it."""
        return "<start>" if id == self.start else self.names[id] or f"<{id}>"

    def word_starts(self, ids: Iterable[int]) -> NDArray[np.bool_]:
        """Which of these tokens begin a word; a symbol counts as a word.

        The pieces between two symbols are one text, whose words are those within which pieces are merged.
        """
        ids = [int(id) for id in ids]
        found = np.ones(len(ids), np.bool_)
        alone = np.flatnonzero(self.alone_V[ids]).tolist() if ids else []
        for begin, end in zip([0, *(place + 1 for place in alone)], [*alone, len(ids)], strict=True):
            if end > begin:
                found[begin:end] = self._word_starts(ids[begin:end])
        return found

    @cached_property
    def blank_first(self) -> NDArray[np.bool_]:
        """Of each id, whether it begins with a space, before which any word ends; a symbol does."""
        return self.alone_V[: self.size]

    def save(self, path: Path | str) -> None:
        """Write one ``tokenizer.json``, which the ``tokenizers`` library reads too; replaces the file at once."""
        disk.replace(Path(path), self.content)


class Tokenizer(BaseTokenizer):
    """Text to ids and back: ``decode(encode(x).ids) == normalise(x)`` for every string.

    Ids: ``</s>`` 0, ``<unk>`` 1, the task's symbols, then pieces. The start symbol ``start`` is the number of pieces:
    it is no entry here.

    Args:
        vocabulary: every symbol and piece, in the order of their ids; the first 256 pieces are the bytes.
        merges: pairs of pieces, the earliest learned first.
        normalisation: the Unicode form texts are brought into before encoding.
        units: with ``characters`` there are no merges, and every piece is a byte or a character.
        lowercase: texts are lower-cased before encoding.
    """

    end = 0
    unknown = 1
    shortest = 1

    def __init__(
        self,
        vocabulary: Sequence[str],
        merges: Sequence[tuple[str, str]],
        normalisation: Normalisation = "nfc",
        units: Units = "pieces",
        lowercase: bool = False,
    ) -> None:
        self.normalisation: Normalisation = normalisation
        self.units: Units = units
        self.lowercase = lowercase
        self.merges = tuple(merges)
        self.names = tuple(vocabulary)
        self.size = len(self.names)
        self.start = self.size
        self.symbols = self.names.index(ALPHABET[0])
        self.ordinary = np.arange(self.symbols, self.size)
        self.alone_V = np.isin(np.arange(self.size + 1), self.ordinary, invert=True)
        symbols = {name: place for place, name in enumerate(self.names[: self.symbols])}
        self.mask = symbols.get(MASK)
        self.begin = (symbols[CLASS],) if CLASS in symbols else ()
        self.sentinels = ids_by_number(symbols, SENTINEL)
        # The core gets text that is normalised already, so that its offsets count characters of that text.
        self._core = assemble(self._model(), None, units)
        self._words = assemble(models.BPE(), None).pre_tokenizer
        sizes = [0 if place < self.symbols else len(name) for place, name in enumerate(self.names)]  # a letter a byte
        self.chunks = byte_pieces.ChunkIds(self._encode_ids, sizes)
        self.longest = max(sizes)

    @cached_property
    def _bytes(self) -> list[bytes]:
        """Those of every piece; a symbol has none."""
        return [b"" if place < self.symbols else byte_pieces.unspell(name) for place, name in enumerate(self.names)]

    @cached_property
    def content(self) -> bytes:  # type: ignore[override]
        """The file; written when it is asked for, since whoever uses a model asks for none."""
        core = assemble(self._model(), normaliser(self.normalisation, self.lowercase), self.units)
        document = json.loads(core.to_str())
        document["model"]["format"] = FORMAT  # the one place where the library lets a foreign key pass
        return (json.dumps(document, ensure_ascii=False) + "\n").encode()

    @cached_property
    def blank_first(self) -> NDArray[np.bool_]:
        """Of each id, whether it begins with a space, before which any word ends; a symbol does."""
        return np.array([held[:1] in (b"", b" ") for held in self._bytes])

    def normalise(self, text: str) -> str:
        """``text`` as the model sees it: in the recipe's Unicode form and case, lone surrogates replaced."""
        return byte_pieces.normalise(text, self.normalisation, self.lowercase)

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """The pieces of each text with their offsets; faster than one by one."""
        normal = [self.normalise(text) for text in texts]
        found = self._core.encode_batch(normal, add_special_tokens=False)
        return [Encoding(one.ids, one.offsets, text) for one, text in zip(found, normal, strict=True)]

    def ids_batch(self, texts: Sequence[str], ended: bool = False) -> list[NDArray[np.int64]]:
        """The ids alone of each text, ``</s>`` last where ``ended``; the fastest way in."""
        ids_T, lengths_B = self.flat_ids(texts, ended)
        ends = lengths_B.cumsum()
        return [ids_T[begin:end] for begin, end in zip((ends - lengths_B).tolist(), ends.tolist(), strict=True)]

    def flat_ids(self, texts: Sequence[str], ended: bool = False) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """``(ids_T, lengths_B)``: as :meth:`ids_batch`, but end to end, and how many ids each text has."""
        ids_T, lengths_B = self.chunks.find(byte_pieces.cut_chunks(texts, self.normalise))
        return (np.insert(ids_T, lengths_B.cumsum(), self.end), lengths_B + 1) if ended else (ids_T, lengths_B)

    def _encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of normalised texts, each by itself."""
        return [one.ids for one in self._core.encode_batch_fast(texts, add_special_tokens=False)]

    def pieces_of(self, word: str) -> list[int]:
        """The ids of a word, or of a part of one, in byte letters."""
        return [piece.id for piece in self._core.model.tokenize(word)]

    def words(self, text: str) -> list[str]:
        """The words within which pieces are merged, written in byte letters, in order."""
        return [word for word, _ in self._core.pre_tokenizer.pre_tokenize_str(self.normalise(text))]

    def _word_starts(self, ids: Sequence[int]) -> NDArray[np.bool_]:
        return byte_pieces.word_starts([self._bytes[id] for id in ids], self._words)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of pieces; symbols are skipped, and bytes that are not UTF-8 become U+FFFD."""
        names, symbols = self.names, self.symbols
        try:
            letters = "".join([names[i] for i in ids if not 0 <= i < symbols and i != self.start])
            return byte_pieces.unspell(letters).decode("utf-8", "replace")
        except IndexError:
            raise RegardError(f"one is not below the vocabulary's {self.size} pieces", "ids") from None

    def incremental(self) -> byte_pieces.Incremental:
        """As every tokenizer's, byte by byte."""
        return byte_pieces.ByteDecoder(lambda id: b"" if id == self.start else self._bytes[id])

    def piece(self, id: int) -> str:
        """A piece as people read it: a space is ``▁``, a fragment of a character its bytes, e.g. ``<0xE2>``."""
        if id == self.start:
            return "<s>"
        if id < self.symbols:
            return self.names[id]
        return byte_pieces.readable(self._bytes[id])

    def is_byte(self, id: int) -> bool:
        """Whether a piece holds a fragment of a character: the sign of a character the vocabulary does not know."""
        held = self._bytes[id] if id < self.size else b""
        return held.decode(errors="ignore").encode() != held

    def _model(self) -> models.BPE:
        ids = {name: place for place, name in enumerate(self.names)}
        whole = self.units == "characters"  # a split that is a piece is taken as it is
        return models.BPE(ids, list(self.merges), ignore_merges=whole)

    @classmethod
    def of(cls, document: Any, where: str) -> Tokenizer:
        """The tokenizer of one of our files, each entry looked at before the library sees it.

        Raises:
            RegardError: it is damaged, newer, or not one of ours.
        """
        try:
            model = document["model"]
            if isinstance(found := model.get("format"), int) and found > FORMAT:
                raise RegardError(written_by_newer(found, FORMAT), where)
            vocabulary = sorted(model["vocab"], key=model["vocab"].__getitem__)
            merges = [(left, right) for left, right in model["merges"]]
            known = [key for key, written in _NORMALISERS.items() if written == document["normalizer"]]
            units = [unit for unit, written in _SPLITTERS.items() if written == document["pre_tokenizer"]]
            ours = _fits(vocabulary, merges, model["vocab"]) and bool(known) and bool(units)
            whole = bool(model.get("ignore_merges"))  # pieces have merges, characters have none
            ours = ours and document["added_tokens"] == [] and whole == (units[0] == "characters")
            ours = ours and (not whole or model["merges"] == [])
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            ours = False
        if not ours:
            raise RegardError("is damaged, or no tokenizer of Regard; learn it again with `regard train`", where)
        return cls(vocabulary, merges, known[0][0], units[0], known[0][1])

    @classmethod
    def load(cls, path: Path | str) -> Tokenizer:
        """The tokenizer that :meth:`save` wrote.

        Raises:
            RegardError: the file is missing, too large, damaged, or not one of ours.
        """
        return cls.of(read_document(path), str(path))


def ids_by_number(ids: Mapping[str, int], pattern: re.Pattern[str]) -> tuple[int, ...]:
    """The ids of the names that match, in the order of the number in the pattern's first group."""
    found = {name: match for name in ids if (match := pattern.fullmatch(name))}
    return tuple(ids[name] for name in sorted(found, key=lambda name: int(found[name][1])))


def learn(
    texts: Iterable[str],
    vocabulary: int,
    normalisation: Normalisation = "nfc",
    symbols: Sequence[str] = (),
    *,
    units: Units = "pieces",
    lowercase: bool = False,
) -> Tokenizer:
    """A tokenizer of at most ``vocabulary`` entries learned from texts [Sennrich16 §3.2]; a pure function of them.

    Pairs seen once are never merged, so a small corpus gives fewer entries; of characters the most frequent are taken.
    A text of more than :data:`~regard.text.tokenizers.byte_pieces.LONGEST` characters is learned from in parts of that
    length. ``symbols`` are the task's own, e.g. ``[MASK]``.

    Raises:
        UsageError: fewer entries than the 256 bytes and the symbols need.
    """
    counter, rest = ChunkCounter(normalisation, units, lowercase), iter(texts)
    while some := list(islice(rest, COUNTED)):
        counter.add(some)
    return learn_counted(counter, vocabulary, symbols)


def learn_counted(counter: ChunkCounter, vocabulary: int, symbols: Sequence[str] = ()) -> Tokenizer:
    """As :func:`learn`, from texts that are counted."""
    counts, units = counter.counts(), counter.units
    names = [END, UNKNOWN, *symbols]
    if vocabulary < len(names) + 256:
        message = f"{vocabulary} is too few: 256 bytes and {len(names)} symbols are always there"
        raise UsageError(message, "text.vocabulary")
    if units == "characters":
        seen = sorted(counts, key=lambda c: (-counts[c], c))[: vocabulary - len(names) - 256]
        pieces = ALPHABET + [byte_pieces.spell(character) for character in seen]
        merges: list[tuple[str, str]] = []
    else:
        pieces, merges = _learn_merges(counts, vocabulary - len(names), ALPHABET)
    if clash := set(names) & set(pieces):
        raise UsageError(f"the symbol {min(clash)!r} could be part of a text; choose one with brackets", "symbols")
    if len(set(names)) < len(names):
        raise UsageError(f"the symbols {', '.join(names)} are not all different", "symbols")
    tokenizer = Tokenizer(names + pieces, merges, counter.normalisation, units, counter.lowercase)
    tokenizer.chunks.remember(counter.chunks)
    return tokenizer


def extend(known: Tokenizer, counter: ChunkCounter, count: int) -> Tokenizer:
    """The tokenizer with at most ``count`` pieces more, merged of its own by the words of texts that are counted.

    Ids stay, and texts without a new piece have the ids that they had.
    """
    spelled = {tuple(known.pieces_of(word)): often for word, often in counter.counts().items()}
    added, more = learn_further(known.names, spelled, count)
    return Tokenizer([*known.names, *added], [*known.merges, *more], known.normalisation, known.units, known.lowercase)


def learn_further(
    names: Sequence[str], words: Mapping[tuple[int, ...], int], count: int
) -> tuple[list[str], list[tuple[str, str]]]:
    """At most ``count`` further pieces, and the merges of known ones that build them.

    Args:
        names: of the known pieces, each a letter to the trainer.
        words: how often each occurs, as ids of known pieces.
        count: of pieces.
    """
    letters = [chr(FIRST_LETTER + id) for id in range(len(names))]
    spelled = {"".join(letters[id] for id in word): often for word, often in words.items()}
    alphabet = sorted(set().union(*spelled))
    pieces, merges = _learn_merges(spelled, len(alphabet) + count, alphabet)
    written = str.maketrans(dict(zip(letters, names, strict=True)))
    added = [piece.translate(written) for piece in pieces[len(alphabet) :]]
    return added, [(left.translate(written), right.translate(written)) for left, right in merges]


def _learn_merges(counts: Mapping[str, int], size: int, alphabet: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """At most ``size`` pieces, the letters first, and the merges that build them, from words in these letters.

    The library's trainer takes texts alone, so each word is given as often as it was counted; it need not be split or
    spelled again. A pure function of the counts: of pairs equally frequent the one of the earlier pieces is merged.
    """
    core = LibraryTokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=2, initial_alphabet=alphabet, show_progress=False)
    core.train_from_iterator(byte_pieces.repeat_words(counts), trainer)
    model = json.loads(core.to_str())["model"]
    merges = [(left, right) for left, right in model["merges"]]
    return sorted(model["vocab"], key=model["vocab"].__getitem__), merges
