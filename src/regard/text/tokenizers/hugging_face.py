"""Hugging Face tokenizers behind our interface: WordPiece, byte-level BPE, Unigram.

As BERT, GPT-2 and T5 have them [Devlin19 §3; Radford19 §2.2; Raffel20 §2.1]: everything a task needs to encode a
text, to find its words and symbols, and to read ids again. What they read is not always what was written: many of them
lower-case, drop accents or join white space.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.system.errors import RegardError
from regard.text.normalisation import replace_surrogates
from regard.text.stop_strings import Incremental, WindowDecoder
from regard.text.tokenizers.byte_pieces import BYTE_OF, unspell, word_starts
from regard.text.tokenizers.hugging_face_file import (
    GUARD,
    KNOWN,
    TokenizerSettings,
    call_library,
    open_tokenizer,
    step_types,
)
from regard.text.tokenizers.tokenizer import SENTINEL, Encoding, ids_by_number
from regard.text.tokenizers.tokenizer_file import read_document, write

SENTINEL_OF_T5 = re.compile("<extra_id_([0-9]+)>")
BYTE = re.compile("<0x[0-9A-F]{2}>")


class HuggingFaceTokenizer:
    """Text to ids and back, by a ``tokenizer.json`` of the ``tokenizers`` library; see ``Tokenizer`` for the face.

    Encoding never adds a symbol, and a symbol's name in a text stays text, as with our own. ``begin`` and ``end`` are
    what the file puts around a text. ``start`` is ``size``, the row after the model's table, as everywhere.

    Args:
        document: the parsed file.
        names: role to name of symbols, as ``special_tokens_map.json`` has them (``eos`` or ``eos_token``).
        size: rows of the model's table, if it has more than the file has names.
        where: the file, for errors.

    Raises:
        RegardError: the library cannot read it, a name is unknown, or nothing ends a text.
    """

    def __init__(
        self, document: Any, names: Mapping[str, str] | None = None, size: int = 0, where: str = "tokenizer.json"
    ) -> None:
        kept = TokenizerSettings.of(document, where)
        given = {role.removesuffix("_token"): name for role, name in (names or {}).items()}
        if strange := sorted(set(given) - set(KNOWN)):
            raise RegardError(f"no symbol is for {strange[0]!r}; known are {', '.join(KNOWN)}", where)
        told = TokenizerSettings({**kept.names, **given}, size or kept.size)
        self._core, self.names, symbols = open_tokenizer(document, told, where)
        self._document, self._where = document, where
        self._special = symbols.every
        self.size = self.start = len(self.names)
        roles = symbols.roles
        self.begin = symbols.before
        ends = [*symbols.behind[-1:], *(roles[role] for role in ("eos", "sep") if role in roles)]
        if not ends:
            raise RegardError("names no symbol that ends a text; tell it as `eos`", where)
        self.end = ends[0]
        self.mask = roles.get("mask")
        self.pad = roles.get("pad")
        self.unknown = roles.get("unk", self.end)
        self._strange = symbols.unknown
        self.sentinels = _sentinels({name: id for id, name in enumerate(self.names) if id in self._special})
        steps = {*step_types(document.get("pre_tokenizer")), *step_types(document.get("decoder"))}
        self._held = self._bytes() if "ByteLevel" in steps else None
        self._spaced = any(name.startswith("▁") for name in self.names)
        self._file = (json.dumps(told.embed_in(document), ensure_ascii=False) + "\n").encode("utf-8", "replace")
        self.sha256 = hashlib.sha256(self._file).hexdigest()

    @property
    def ordinary(self) -> NDArray[np.int64]:
        """The ids of pieces: not of symbols, nor of rows without a name."""
        return np.array([id for id, name in enumerate(self.names) if name and id not in self._special], np.int64)

    def normalise(self, text: str) -> str:
        """``text`` without lone surrogates; what else the file changes, it changes inside."""
        return replace_surrogates(text)

    def encode(self, text: str) -> Encoding:
        """The pieces of ``text`` with their offsets in ``text`` itself, whatever the file makes of its characters."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """The pieces of each text with their offsets; faster than one by one."""
        normal = [replace_surrogates(text) for text in texts]
        guarded = list(map(_unguard, normal))
        found = call_library(lambda: self._core.encode_batch(guarded, add_special_tokens=False), self._where)
        return [Encoding(one.ids, one.offsets, text) for one, text in zip(found, normal, strict=True)]

    def ids_batch(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """The ids alone of each text; the fastest way in."""
        normal = [_unguard(replace_surrogates(text)) for text in texts]
        found = call_library(lambda: self._core.encode_batch_fast(normal, add_special_tokens=False), self._where)
        return [np.array(one.ids, dtype=np.int64) for one in found]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of pieces, as the file joins them; symbols and rows without a name are skipped."""
        ids = [int(id) for id in ids]
        if ids and not 0 <= min(ids) <= max(ids) <= self.size:
            raise RegardError(f"an id is not below the vocabulary's {self.size} pieces")
        spoken = [id for id in ids if id < self.size and self.names[id] and id not in self._special]
        text: str = call_library(lambda: self._core.decode(spoken, skip_special_tokens=False), self._where)
        return text

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """The text of each sequence of pieces."""
        return [self.decode(ids) for ids in batch]

    def incremental(self) -> Incremental:
        """A reader that turns ids into text one by one."""
        return WindowDecoder(self.decode)

    def piece(self, id: int) -> str:
        """A piece as people read it: byte-level ones as ours, others as the file names them."""
        if id == self.start:
            return "<start>"
        name = self.names[id]
        if self._held is None or id in self._special:
            return name or f"<{id}>"
        try:
            text = self._held[id].decode().replace(" ", "▁")
        except UnicodeDecodeError:
            return "".join(f"<0x{byte:02X}>" for byte in self._held[id])
        return "".join(c if c.isprintable() else f"<0x{ord(c):02X}>" for c in text)

    def is_byte(self, id: int) -> bool:
        """Whether a piece is the sign of a character the vocabulary does not know."""
        if id >= self.size or id == self._strange:
            return id == self._strange
        return bool(BYTE.match(self.piece(id))) and id not in self._special

    def word_starts(self, ids: Iterable[int]) -> NDArray[np.bool_]:
        """Which of these tokens begin a word; a symbol counts as a word."""
        ids = [int(id) for id in ids]
        found = np.ones(len(ids), np.bool_)
        alone = [place for place, id in enumerate(ids) if self._stands_alone(id)]
        for begin, end in zip([0, *(place + 1 for place in alone)], [*alone, len(ids)], strict=True):
            if end > begin:
                found[begin:end] = self._starts(ids[begin:end])
        return found

    def _stands_alone(self, id: int) -> bool:
        return id >= self.size or not self.names[id] or (id in self._special and id != self._strange)

    def _starts(self, ids: Sequence[int]) -> NDArray[np.bool_]:
        """Word starts among pieces without symbols, by their names."""
        if self._held is not None and self._core.pre_tokenizer is not None:
            held, splitter = [self._held[id] for id in ids], self._core.pre_tokenizer
            return call_library(lambda: word_starts(held, splitter), self._where)
        model, names = self._document["model"], [self.names[id] for id in ids]
        if suffix := model.get("end_of_word_suffix"):
            found = [True, *(name.endswith(suffix) for name in names[:-1])]
        elif prefix := model.get("continuing_subword_prefix"):
            found = [not name.startswith(prefix) for name in names]
        elif self._spaced:
            found = [name.startswith("▁") for name in names]
        else:
            found = [True] * len(names)
        return np.array([True, *found[1:]], np.bool_)

    def _bytes(self) -> list[bytes]:
        """The bytes of each piece of a byte-level file; one that was added beside them stands for its own text."""
        return [unspell(name) if set(name) <= BYTE_OF.keys() else name.encode() for name in self.names]

    @property
    def content(self) -> bytes:
        """The bytes that :meth:`save` writes."""
        return self._file

    def save(self, path: Path | str) -> None:
        """Write ``tokenizer.json``, which the ``tokenizers`` library reads too; replaces the file at once."""
        write(path, self._file)

    @classmethod
    def load(cls, path: Path | str, names: Mapping[str, str] | None = None, size: int = 0) -> HuggingFaceTokenizer:
        """The tokenizer of a file, e.g. with the names that ``hugging_face_file.special_token_names`` found.

        Raises:
            RegardError: the file is missing, too large, damaged, or see the class.
        """
        return cls(read_document(path), names, size, str(path))


def _unguard(text: str) -> str:
    return text.replace(GUARD, "\ufffd")


def _sentinels(ids: Mapping[str, int]) -> tuple[int, ...]:
    """``<extra_0>`` of ours, or ``<extra_id_0>`` as T5 names them, by number."""
    return ids_by_number(ids, SENTINEL) or ids_by_number(ids, SENTINEL_OF_T5)
