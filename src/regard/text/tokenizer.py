"""Byte-level byte-pair encoding, lossless, always with character offsets [Sennrich16 §3.2, Radford19 §2.2]."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import models, trainers

from regard.config import FORMAT
from regard.errors import RegardError, UsageError
from regard.text.normalisation import NORMALISERS, Normalisation, normalise
from regard.text.pieces import ALPHABET, assemble, unspell

END, UNKNOWN = "</s>", "<unk>"
LARGEST_FILE = 64 * 1024 * 1024


@dataclass(frozen=True)
class Encoding:
    """The pieces of one text: ``offsets[i]`` are the characters of ``text`` whose bytes piece ``ids[i]`` holds.

    Pieces that share the bytes of one character share that character's span. ``text`` is the normalised text.
    """

    ids: list[int]
    offsets: list[tuple[int, int]]
    text: str


class Tokenizer:
    """Text to ids and back: ``decode(encode(x).ids) == normalise(x)`` for every string.

    Ids: ``</s>`` 0, ``<unk>`` 1, the task's symbols, then pieces. The start symbol ``start`` is the number of pieces:
    it is no entry here. Encoding never adds a symbol, and a symbol's name in a text stays text.

    Args:
        vocabulary: every symbol and piece, in the order of their ids; the first 256 pieces are the bytes.
        merges: pairs of pieces, the earliest learned first.
        normalisation: the Unicode form texts are brought into before encoding.
    """

    end = 0
    unknown = 1

    def __init__(
        self, vocabulary: Sequence[str], merges: Sequence[tuple[str, str]], normalisation: Normalisation = "nfc"
    ) -> None:
        self.normalisation: Normalisation = normalisation
        self.merges = tuple(merges)
        self.names = tuple(vocabulary)
        self.size = len(self.names)
        self.start = self.size
        self.symbols = self.names.index(ALPHABET[0])
        ids = {name: place for place, name in enumerate(self.names)}
        # The core gets text that is normalised already, so that its offsets count characters of that text.
        self._core = assemble(models.BPE(ids, list(self.merges)), None)
        self._bytes = [b"" if place < self.symbols else unspell(name) for place, name in enumerate(self.names)]
        self._fragment = [place >= self.symbols and not _whole(held) for place, held in enumerate(self._bytes)]
        self._file = self._written(ids)
        self.sha256 = hashlib.sha256(self._file).hexdigest()

    def normalise(self, text: str) -> str:
        """``text`` as the model sees it: in the recipe's Unicode form, lone surrogates replaced."""
        return normalise(text, self.normalisation)

    def encode(self, text: str) -> Encoding:
        """The pieces of ``text`` with their offsets."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """The pieces of each text with their offsets; faster than one by one."""
        normal = [self.normalise(text) for text in texts]
        found = self._core.encode_batch(normal, add_special_tokens=False)
        return [Encoding(one.ids, one.offsets, text) for one, text in zip(found, normal, strict=True)]

    def ids_batch(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """The ids alone of each text; the fastest way in."""
        normal = [self.normalise(text) for text in texts]
        found = self._core.encode_batch_fast(normal, add_special_tokens=False)
        return [np.array(one.ids, dtype=np.int64) for one in found]

    def words(self, text: str) -> list[str]:
        """The words within which pieces are merged, written in byte letters, in order."""
        splitter = self._core.pre_tokenizer
        return [word for word, _ in splitter.pre_tokenize_str(self.normalise(text))] if splitter else []

    def decode(self, ids: Iterable[int]) -> str:
        """The text of pieces; symbols say nothing, and bytes that are no UTF-8 become U+FFFD."""
        held = self._bytes
        try:
            return b"".join([held[i] for i in ids if i != self.start]).decode("utf-8", "replace")
        except IndexError:
            raise RegardError(f"an id is not below the vocabulary's {self.size} pieces") from None

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """The text of each sequence of pieces."""
        return [self.decode(ids) for ids in batch]

    def piece(self, id: int) -> str:
        """A piece as people read it: a space is ``▁``, a fragment of a character its bytes, e.g. ``<0xE2>``."""
        if id == self.start:
            return "<s>"
        if id < self.symbols:
            return self.names[id]
        held = self._bytes[id]
        if self._fragment[id]:
            return "".join(f"<0x{byte:02X}>" for byte in held)
        text = held.decode().replace(" ", "▁")
        return "".join(c if c.isprintable() else f"<0x{ord(c):02X}>" for c in text)

    def is_byte(self, id: int) -> bool:
        """Whether a piece holds a fragment of a character: the sign of a character the vocabulary does not know."""
        return id < self.size and self._fragment[id]

    def _written(self, ids: dict[str, int]) -> bytes:
        core = assemble(models.BPE(ids, list(self.merges)), NORMALISERS[self.normalisation])
        document = json.loads(core.to_str())
        document["model"]["format"] = FORMAT  # the one place where the library lets a foreign key pass
        return (json.dumps(document, ensure_ascii=False) + "\n").encode()

    @property
    def content(self) -> bytes:
        """What :meth:`save` writes."""
        return self._file

    def save(self, path: Path | str) -> None:
        """Write one ``tokenizer.json``, which the ``tokenizers`` library reads too; replaces the file at once."""
        path = Path(path)
        partial = path.with_name(path.name + ".partial")
        partial.write_bytes(self._file)
        os.replace(partial, path)

    @classmethod
    def load(cls, path: Path | str) -> Tokenizer:
        """The tokenizer that :meth:`save` wrote.

        Raises:
            RegardError: the file is missing, too large, damaged, or not one of ours.
        """
        where = str(path)
        try:
            if os.path.getsize(path) > LARGEST_FILE:
                raise RegardError("is larger than 64 MB: this is not a tokenizer", where)
            document = json.loads(Path(path).read_bytes().decode("utf-8"))
        except FileNotFoundError:
            raise RegardError("no such tokenizer file", where) from None
        except (OSError, ValueError, RecursionError) as error:
            raise RegardError(f"cannot be read as JSON, the file is damaged: {error}", where) from None
        return cls(*_checked(document, where))


def _whole(held: bytes) -> bool:
    try:
        held.decode()
    except UnicodeDecodeError:
        return False
    return True


def _checked(document: Any, where: str) -> tuple[list[str], list[tuple[str, str]], Normalisation]:
    """Vocabulary, merges and normalisation of a parsed file, each entry looked at before the library sees it."""
    try:
        model = document["model"]
        if isinstance(model.get("format"), int) and model["format"] > FORMAT:
            found = model["format"]
            raise RegardError(f"format {found} was written by a newer Regard; this one reads format {FORMAT}", where)
        vocabulary = [name for name, _ in sorted(model["vocab"].items(), key=lambda entry: entry[1])]
        merges = [(left, right) for left, right in model["merges"]]
        kind = document["normalizer"]
        form = "none" if kind is None else str(kind["type"]).lower()
        ours = _fits(vocabulary, merges, model["vocab"]) and form in NORMALISERS
        ours &= document["added_tokens"] == [] and document["pre_tokenizer"] == _splitter()
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        ours = False
    if not ours:
        raise RegardError("is damaged, or no tokenizer of Regard; learn it again with `regard train`", where)
    return vocabulary, merges, form  # type: ignore[return-value]


def _splitter() -> Any:
    return json.loads(assemble(models.BPE(), None).to_str())["pre_tokenizer"]


def _fits(vocabulary: list[str], merges: list[tuple[str, str]], ids: dict[str, int]) -> bool:
    """Whether ids count from zero, symbols come first, then the bytes, then pieces that the merges build."""
    if [ids[name] for name in vocabulary] != list(range(len(vocabulary))) or vocabulary[:2] != [END, UNKNOWN]:
        return False
    first = vocabulary.index(ALPHABET[0])
    known = set(vocabulary[first:])
    spelled = all(name and not set(name) - set(ALPHABET) for name in known)
    built = all(left in known and right in known and left + right in known for left, right in merges)
    return first >= 2 and vocabulary[first : first + 256] == ALPHABET and spelled and built


LONGEST = 10_000
"""Characters of a text that a vocabulary is learned from; a longer one is no sentence."""


def learn(
    texts: Iterable[str], vocabulary: int, normalisation: Normalisation = "nfc", symbols: Sequence[str] = ()
) -> Tokenizer:
    """A tokenizer of at most ``vocabulary`` entries learned from texts [Sennrich16 §3.2]; a pure function of them.

    Pairs seen once are never merged, so a small corpus gives fewer entries. No more than the first ``LONGEST``
    characters of a text are learned from: the time grows with the square of a word's length. ``symbols`` are the task's
    own, e.g. ``[MASK]``.

    Raises:
        UsageError: fewer entries than the 256 bytes and the symbols need.
    """
    names = [END, UNKNOWN, *symbols]
    if vocabulary < len(names) + 256:
        message = f"{vocabulary} is too few: 256 bytes and {len(names)} symbols are always there"
        raise UsageError(message, "text.vocabulary")
    core = assemble(models.BPE(), None)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(names), min_frequency=2, initial_alphabet=ALPHABET, show_progress=False
    )
    core.train_from_iterator((normalise(text[:LONGEST], normalisation) for text in texts), trainer)
    model = json.loads(core.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    merges = [(left, right) for left, right in model["merges"]]
    if clash := set(names) & set(pieces):
        raise UsageError(f"the symbol {min(clash)!r} could be part of a text; choose one with brackets", "symbols")
    return Tokenizer(names + pieces, merges, normalisation)
