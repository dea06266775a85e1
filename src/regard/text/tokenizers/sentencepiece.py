"""SentencePiece models behind our interface: unigram and BPE, with their normalisation [Kudo18].

Marian's, M2M-100's, NLLB's, mBART's and Firefox's models have one, often with a table that gives its pieces other ids.
The library itself segments: it sums scores in float32, and where two ways are nearly equal another sum chooses another.
"""

from __future__ import annotations

import base64
import json
import struct
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, compress, pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from regard.config import FORMAT
from regard.system import disk
from regard.system.errors import RegardError, written_by_newer
from regard.text.tokenizers.byte_pieces import ChunkCounter, unspell
from regard.text.tokenizers.hugging_face import call_library
from regard.text.tokenizers.tokenizer import (
    END,
    SENTINEL,
    UNKNOWN,
    BaseTokenizer,
    Encoding,
    ids_by_number,
    learn_further,
)

Answer = TypeVar("Answer")
KEY = "sentencepiece"
"""Of the saved file, whose value is the model: what tells it from other tokenizers."""
MOST = 16 << 20
"""Bytes that a model may have; NLLB's has 5 million."""
LONGEST = 4096
"""Bytes of a piece, and of what the normalisation or the unknown piece writes: a text grows by no more."""
ROWS = 1 << 21
"""Ids that a table may have."""
FAIRSEQ = ("<s>", "<pad>", END, UNKNOWN)
"""The first ids of fairseq's models, before the pieces."""
_NORMALISERS, _CHARACTERS = (3, 5), 2
"""Numbers of fields: the normalisation of what is read and of what is written, and the rules within."""
APART = "\ue000"
"""A character of private use, which no piece has: what stands behind it begins no word."""
MORE_PROBABLE = 0.01
"""How much more than its parts, in log-probability, a further piece of unigrams is: no sum in float32 loses it."""
_FIXED = {1: 8, 5: 4}
"""Bytes of a field, by its kind."""


def names_by_id(ids: Mapping[str, int], where: str = "vocab.json") -> list[str]:
    """The piece of each id, as ``vocab.json`` of Marian and M2M-100 has them; empty where there is none.

    Raises:
        RegardError: what it holds are no ids, or two pieces have the same.
    """
    sound = isinstance(ids, Mapping) and all(type(id) is int and 0 <= id < ROWS for id in ids.values())
    if not sound or len(set(ids.values())) < len(ids):
        raise RegardError("is damaged: an object of pieces and their ids was expected", where)
    names = [""] * (max(ids.values(), default=-1) + 1)
    for name, id in ids.items():
        names[id] = name
    return names


def fairseq_names(pieces: Sequence[str], symbols: Iterable[str]) -> list[str]:
    """The piece of each id as NLLB, mBART and XLM-R have them: four symbols, the model's pieces, further symbols.

    Args:
        pieces: of the model, whose first three are ``<unk>``, ``<s>`` and ``</s>``.
        symbols: codes of languages, then ``<mask>``, as the folder orders them.
    """
    return [*FAIRSEQ, *pieces[3:], *symbols]


class SentencePieceTokenizer(BaseTokenizer):
    """Text to ids and back by a SentencePiece model; see ``Tokenizer`` for the face.

    A piece of the model without a row is unknown; a row that is no piece of the model never comes from a text.

    Args:
        model: the content of its file (``source.spm``, ``sentencepiece.bpe.model``).
        names: the piece of each id, empty for rows without one; the model's own ids if None.
        symbols: names besides the model's control pieces that are symbols, such as ``<pad>`` and languages.
        where: the file, for errors.
        begin: the name of the symbol before a text that an encoder reads; two ends then stand between two, as in XLM-R.

    Raises:
        RegardError: the library cannot read it, a name comes twice or is missing, or nothing ends a text.
    """

    model: bytes

    def __init__(
        self,
        model: bytes,
        names: Sequence[str] | None = None,
        symbols: Collection[str] = (),
        where: str = "SentencePiece model",
        begin: str = "",
    ) -> None:
        self.model, self._where, self._given, self._symbols = model, where, names, tuple(symbols)
        self._begin = begin
        if not model:
            raise RegardError("is empty; bring the file again", where)
        refuse_bombs(model, where)
        sentencepiece.set_min_log_level(2)
        self._core = core = self._call(lambda: sentencepiece.SentencePieceProcessor(model_proto=model))
        rows = list(range(core.piece_size()))
        pieces = self._call(lambda: core.id_to_piece(rows))
        surface = self._call(lambda: core.decode([core.unk_id()]))
        if max(map(len, (*pieces, surface))) > LONGEST:
            raise RegardError(f"has a piece or sign of more than {LONGEST} characters; the file is damaged", where)
        self.names = tuple(pieces if names is None else names)
        self.size = self.start = len(self.names)
        ids = {name: id for id, name in enumerate(self.names) if name}
        if len(ids) + self.names.count("") < self.size or not ids.keys() >= {*self._symbols}:
            raise RegardError("does not fit the names of its ids: one comes twice, or a symbol has none", where)
        ends = [pieces[core.eos_id()]] if core.eos_id() >= 0 else []
        self.end = self._find(ids, [*ends, END])
        self.begin = (self._find(ids, [begin]),) if begin else ()
        self.ends_between = 2 if begin else 1
        self.unknown = self._find(ids, [pieces[core.unk_id()], UNKNOWN])
        control = compress(pieces, core.is_control(rows))
        self._special = {ids[name] for name in {*control, *self._symbols, self.names[self.end]} & ids.keys()}
        self.pad, self.mask = (ids.get(name) for name in ("<pad>", "<mask>"))
        self.sentinels = ids_by_number({name: ids[name] for name in self._symbols}, SENTINEL)
        spoken = [id for id in ids.values() if id not in self._special]
        self.ordinary = np.array([id for id in spoken if id != self.unknown], np.int64)
        self.alone_V = np.isin(np.arange(self.size + 1), spoken, invert=True)
        self._bytes = {ids[name] for name in compress(pieces, core.is_byte(rows)) if name in ids}
        self._ids = [ids.get(name, self.unknown) for name in pieces]
        self._ids_V, own = np.array(self._ids, np.int64), {*pieces}
        self._spoken = dict.fromkeys(range(self.size + 1), "")
        """Of each id what the library joins, empty for symbols; a piece of the table alone it would leave as it is."""
        for id in spoken:
            name = self.names[id]
            self._spoken[id] = name if name in own else name.replace("▁", " ")
        self._spoken[self.unknown] = pieces[core.unk_id()]
        self._ends_words = self._call(lambda: core.normalize("a")).endswith("▁")

    def _call(self, question: Callable[[], Answer]) -> Answer:
        return call_library(question, self._where, "sentencepiece")

    def _find(self, ids: Mapping[str, int], usual: Sequence[str]) -> int:
        """The id of the first of these names that there is."""
        for name in usual:
            if name in ids:
                return ids[name]
        raise RegardError(f"names no {usual[-1]}; a row of that name is needed", self._where)

    @classmethod
    def read(
        cls, path: Path | str, names: Sequence[str] | None = None, symbols: Collection[str] = (), begin: str = ""
    ) -> SentencePieceTokenizer:
        """The tokenizer of a model's file.

        Raises:
            RegardError: the file is missing or too large, or as the class.
        """
        return cls(disk.content(path, MOST, "SentencePiece model"), names, symbols, str(path), begin)

    @classmethod
    def of(cls, document: Mapping[str, Any], where: str) -> SentencePieceTokenizer:
        """The tokenizer of a parsed :attr:`content`.

        Raises:
            RegardError: it is damaged or newer, or as the class.
        """
        try:
            held = document[KEY]
            if held["format"] > FORMAT:
                raise RegardError(written_by_newer(held["format"], FORMAT), where)
            model, names, symbols = base64.b64decode(held["model"], validate=True), held["names"], held["symbols"]
            begin = held.get("begin", "")
            sound = len(model) <= MOST and len(names or ()) <= ROWS
            sound = sound and all(isinstance(name, str) for name in (*(names or ()), *symbols, begin))
        except (KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise RegardError("is damaged: a SentencePiece model of Regard was expected", where)
        return cls(model, names, symbols, where, begin)

    @cached_property
    def content(self) -> bytes:  # type: ignore[override]
        """The file: the model as it came, in letters, and the names of ids."""
        model = base64.b64encode(self.model).decode()
        held = {"format": FORMAT, "model": model, "names": self._given and list(self._given), "symbols": self._symbols}
        held |= {"begin": self._begin} if self._begin else {}
        return (json.dumps({KEY: held}, ensure_ascii=False) + "\n").encode("utf-8", "replace")

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """The pieces of each text with their offsets in the text itself, whatever the model makes of its characters."""
        normal = [self.normalise(text) for text in texts]
        found = self._call(lambda: self._core.encode(normal, return_type="offset_mapping", num_threads=1))
        return [
            Encoding([self._ids[id] for id in one["ids"]], one["offsets"], text)
            for one, text in zip(found, normal, strict=True)
        ]

    def ids_batch(self, texts: Sequence[str], ended: bool = False) -> list[NDArray[np.int64]]:
        """The ids alone of each text, ``</s>`` last where ``ended``; the fastest way in."""
        normal = [self.normalise(text) for text in texts]
        found = self._call(lambda: self._core.encode(normal, return_type="numpy", num_threads=1))
        ids_T = self._ids_V[np.concatenate([np.zeros(0, np.int32), *found])]
        ends = [*accumulate(map(len, found))]
        if ended:
            ids_T, ends = np.insert(ids_T, ends, self.end), [end + number for number, end in enumerate(ends, 1)]
        return [ids_T[begin:end] for begin, end in pairwise((0, *ends))]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of pieces, as the library joins them; symbols and rows without a name are skipped."""
        return self.decode_batch([ids])[0]

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        try:
            spoken = [[*filter(None, map(self._spoken.__getitem__, map(int, ids)))] for ids in batch]
        except KeyError:
            raise RegardError(f"one is not below the vocabulary's {self.size} pieces", "ids") from None
        texts = self._call(lambda: self._core.decode(spoken, num_threads=1)) if spoken else []
        # a piece of the table alone begins with a blank that the library does not take away
        return [text[1:] if names and names[0][:1] == " " else text for names, text in zip(spoken, texts, strict=True)]

    def pieces_of(self, word: str) -> list[int]:
        """The ids of a word, which begins with a blank or ``▁``, or of a part of one, which does not."""
        apart = "" if word[:1] in " ▁" else APART
        (found,) = self.encode_batch([apart + word.replace("▁", " ")])
        return [id for id, (_, end) in zip(found.ids, found.offsets, strict=True) if end > len(apart)]

    def extend(self, counter: ChunkCounter, count: int, rows: Sequence[str] = ()) -> SentencePieceTokenizer:
        """The tokenizer with at most ``count`` pieces more, merged of its own by the words of texts that are counted.

        Ids stay, and texts without a new piece have the ids that they had: of unigrams a new piece is hardly more
        probable than its parts together, and of byte pairs it is merged after all others.

        Args:
            counter: has the texts.
            count: of pieces.
            rows: names of further ids that come before, of the other side's pieces where both have one table.
        """
        words = Counter[tuple[int, ...]]()
        for letters, often in counter.counts(blank=True).items():
            ids = self.pieces_of(unspell(letters).decode("utf-8", "replace"))
            if ids and not any(map(self.is_byte, ids)):
                words[tuple(ids)] += often
        pieces = range(self._core.piece_size())
        scores = dict(zip(self._core.id_to_piece([*pieces]), self._core.get_score([*pieces]), strict=True))
        ranks, least = all(map(float.is_integer, scores.values())), min(scores.values())
        model, names, held = self.model, [*self.names, *rows], {*self.names, *rows}
        for left, right in learn_further(self.names, words, count)[1]:
            if (piece := left + right) in scores:
                continue
            least -= ranks
            scores[piece] = least if ranks else max(scores[left] + scores[right] + MORE_PROBABLE, least)
            model += _field(1, _field(1, piece.encode()) + struct.pack("<Bf", 2 << 3 | 5, scores[piece]))
            names += [piece] if piece not in held else []
        given = None if self._given is None and not rows else names
        return SentencePieceTokenizer(model, given, self._symbols, self._where, self._begin)

    def with_names(self, names: Sequence[str]) -> SentencePieceTokenizer:
        """The same model with these names of ids."""
        return SentencePieceTokenizer(self.model, names, self._symbols, self._where, self._begin)

    def is_byte(self, id: int) -> bool:
        """Whether a piece is the sign of a character the vocabulary does not know."""
        return id == self.unknown or id in self._bytes

    def _word_starts(self, ids: Sequence[int]) -> NDArray[np.bool_]:
        """Word starts among pieces without symbols: where ``▁`` begins one, or has ended the one before."""
        names = [self.names[id] for id in ids]
        marked = [name.endswith("▁") for name in names[:-1]] if self._ends_words else [n[:1] == "▁" for n in names[1:]]
        return np.array([True, *marked], np.bool_)


def refuse_bombs(model: bytes, where: str) -> None:
    """Refuse a model whose rules write more than :data:`LONGEST` bytes for a character; the rest the library checks.

    Rules are a trie, after its size in four bytes, and what they write, each ended by a zero.

    Raises:
        RegardError: there is such a rule, or the file is no model.
    """
    specs: dict[int, bytes] = {}  # one may come in parts
    for found, value in fields(model, where):
        if found in _NORMALISERS:
            specs[found] = specs.get(found, b"") + value
    rules = [value for spec in specs.values() for found, value in fields(spec, where) if found == _CHARACTERS]
    written = (part for held in rules for part in held[4 + int.from_bytes(held[:4], "little") :].split(b"\0"))
    if max(map(len, written), default=0) > LONGEST:
        raise RegardError(f"has a rule that writes more than {LONGEST} bytes; the file is damaged", where)


def fields(message: bytes, where: str) -> Iterator[tuple[int, bytes]]:
    """``(number, bytes)`` of each field of a protocol buffer that has bytes; the others are skipped.

    Raises:
        RegardError: it is cut short, or none.
    """
    place = 0
    try:
        while place < len(message):
            key, place = _number(message, place)
            kind = key & 7
            size, place = _number(message, place) if kind in (0, 2) else (_FIXED[kind], place)
            if kind == 0:
                continue
            begin, place = place, place + size
            if place > len(message):
                raise IndexError
            if kind == 2:
                yield key >> 3, message[begin:place]
    except LookupError:
        raise RegardError("is no SentencePiece model, or cut short; bring the file again", where) from None


def _field(number: int, value: bytes) -> bytes:
    """A field of a protocol buffer that has bytes."""
    size, left = b"", len(value)
    while left > 127:
        size, left = size + bytes([left & 127 | 128]), left >> 7
    return bytes([number << 3 | 2]) + size + bytes([left]) + value


def _number(message: bytes, place: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and the place behind it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = message[place]
        place, value = place + 1, value | (byte & 127) << shift
        if byte < 128:
            return value, place
    raise IndexError
