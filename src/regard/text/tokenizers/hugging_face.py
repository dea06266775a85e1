"""Hugging Face tokenizers behind our interface: WordPiece, byte-level BPE, Unigram.

As BERT, GPT-2 and T5 have them [Devlin19 §3; Radford19 §2.2; Raffel20 §2.1]: everything a task needs to encode a
text, to find its words and symbols, and to read ids again. What they read is not always what was written: many of them
lower-case, drop accents or join white space. Symbols are guarded so that no text encodes to one.
"""

from __future__ import annotations

import base64
import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import tokenizers
from numpy.typing import NDArray

from regard.config import FORMAT
from regard.system.errors import RegardError, written_by_newer
from regard.text.tokenizers.byte_pieces import BYTE_OF, readable, unspell, word_starts
from regard.text.tokenizers.tokenizer import SENTINEL, BaseTokenizer, Encoding, ids_by_number, read_document

Answer = TypeVar("Answer")
Document = dict[str, Any]
"""The parsed JSON of a file."""

KNOWN: dict[str, tuple[str, ...]] = {
    "cls": ("[CLS]",),
    "sep": ("[SEP]",),
    "bos": ("<s>", "<bos>", "<|endoftext|>", "<|begin_of_text|>", "[BOS]"),
    "eos": ("</s>", "<eos>", "<|endoftext|>", "<|end_of_text|>", "[EOS]"),
    "mask": ("[MASK]", "<mask>"),
    "pad": ("[PAD]", "<pad>"),
    "unk": ("[UNK]", "<unk>"),
}
"""Usual names of symbols, for files that do not declare them."""

GUARD = "\ufdd0"
"""Stands before the name of each symbol inside the library: no character, and taken out of every text."""

KEY = "regard"
"""Below ``model``, the one place where the library accepts a foreign key: settings that are not part of the file."""
SENTINEL_OF_T5 = re.compile("<extra_id_([0-9]+)>")
BYTE = re.compile("<0x[0-9A-F]{2}>")
ONCE, MOST = 64, 1 << 14
"""Times that one step of a file may make a text longer, and all that follow each other."""
MOST_WRITTEN = 1 << 22
"""Characters that a file's own tokens may become by its steps, which apply to them too."""
PARTS = (("normalizer", "pre_tokenizer"), ("post_processor",), ("decoder",))
"""What a text, its pieces, and pieces that are read again pass."""
INNER = ("normalizers", "pretokenizers", "processors", "decoders")
"""The steps of a sequence."""
GROWTH = {"NFC": 3, "NFD": 4, "NFKC": 18, "NFKD": 18, "Lowercase": 2, "BertNormalizer": 8, "Metaspace": 2}
GROWTH |= {"ByteLevel": 5, "BertProcessing": 5, "RobertaProcessing": 5, "BPEDecoder": 3, "CTC": 3, "WordPiece": 2}
"""How many characters or pieces a step at most writes for one, where its fields do not say it."""


@dataclass(frozen=True)
class Symbols:
    """The ids of the symbols by role; roles without a symbol are missing.

    Args:
        roles: ``cls``, ``sep``, ``bos``, ``eos``, ``mask``, ``pad``, ``unk``.
        every: all of them, and further ones of the file, that texts never give.
        before: what the file puts before a text.
        behind: what it puts after one.
        unknown: what the model makes of a word or character that it has no piece for, if it has such a symbol.
    """

    roles: Mapping[str, int]
    every: frozenset[int]
    before: tuple[int, ...]
    behind: tuple[int, ...]
    unknown: int | None


@dataclass(frozen=True)
class TokenizerSettings:
    """Settings of a tokenizer that its file lacks; embedded in it, below :data:`KEY`, when it is saved.

    Args:
        names: role to name, e.g. ``{"eos": "<|endoftext|>"}``.
        size: rows of the model's table, where there are more than the file has names for.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    size: int = 0

    @classmethod
    def of(cls, document: Document, where: str) -> TokenizerSettings:
        """The settings that were embedded in a file; empty if there are none."""
        try:
            found = document["model"].get(KEY, {})
            if found.get("format", FORMAT) > FORMAT:
                raise RegardError(written_by_newer(found["format"], FORMAT), where)
            names, size = dict(found.get("symbols", {})), found.get("size", 0)
            sound = all(isinstance(name, str) and role in KNOWN for role, name in names.items())
        except (KeyError, TypeError, ValueError, AttributeError):
            sound = False
        if not sound or not isinstance(size, int) or not 0 <= size <= 1 << 24:
            raise RegardError("is damaged, or no tokenizer of the tokenizers library", where)
        return cls(names, size)


def special_token_names(folder: Path | str) -> dict[str, str]:
    """The names of symbols that ``tokenizer_config.json`` and ``special_tokens_map.json`` of a folder tell, by role.

    Raises:
        RegardError: one of the files is damaged.
    """
    names: dict[str, str] = {}
    for file in ("tokenizer_config.json", "special_tokens_map.json"):
        path = Path(folder) / file
        if not path.exists():
            continue
        document = read_document(path)
        if not isinstance(document, dict):
            raise RegardError("is damaged: an object of names was expected", str(path))
        for role in KNOWN:
            name = document.get(f"{role}_token")
            name = name.get("content") if isinstance(name, dict) else name
            if isinstance(name, str):
                names[role] = name
    return names


def open_tokenizer(
    document: Document, told: TokenizerSettings, where: str
) -> tuple[tokenizers.Tokenizer, list[str], Symbols]:
    """The guarded library tokenizer, the name of each id (empty where there is none), and the symbols.

    Raises:
        RegardError: the library cannot read it, it multiplies texts, or a given symbol is not in it.
    """
    refuse_growth(document, where)
    plain = _library(document, where)
    ids: dict[str, int] = plain.get_vocab(with_added_tokens=True)
    largest = max(ids.values(), default=-1)
    if not ids or largest >= 1 << 24:
        raise RegardError("has no pieces, or ids above 16 million; is it a tokenizer?", where)
    if len(own := plain.get_vocab(with_added_tokens=False)) > len({*own.values()}):
        raise RegardError("gives two pieces one id; the file is damaged", where)
    names = [""] * max(largest + 1, told.size)
    for name, id in ids.items():
        names[id] = name
    symbols = _symbols(document, plain, ids, told, where)
    guarded = _library(_guard(document, {names[id] for id in symbols.every}), where)
    if any(guarded.token_to_id(GUARD + names[id]) != id for id in symbols.every):
        raise RegardError("has symbols whose ids do not fit its vocabulary; the file is damaged", where)
    return guarded, names, symbols


def refuse_growth(document: Document, where: str) -> None:
    """Refuse a file whose steps multiply texts: the library applies them to added tokens as soon as it reads it.

    Raises:
        RegardError: they do, or they are no steps.
    """
    for parts in PARTS:
        try:
            growth = prod(_growth(document[part]) for part in parts if document.get(part) is not None)
            added = sum(len(one["content"]) for one in document.get("added_tokens") or () if one.get("normalized"))
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            raise RegardError(
                f"is damaged: a step of its {' or '.join(parts)} is not what it should be", where
            ) from None
        if growth > MOST or (parts == PARTS[0] and growth * added > MOST_WRITTEN):
            message = (
                f"multiplies texts in its {' and '.join(parts)}: by more than {ONCE} in one step or {MOST:,} in all"
            )
            raise RegardError(message, where)


def _growth(step: Document) -> float:
    """How many characters or pieces a step may write for one; a sequence, all its steps together."""
    own: float = GROWTH.get(step.get("type", ""), 1)
    if "pattern" in step and "content" in step:
        ((kind, pattern),) = step["pattern"].items()
        # what may be empty is found around each character
        own = len(step["content"]) / len(pattern) if kind == "String" and pattern else 1 + len(step["content"])
    elif "prepend" in step:
        own = 1 + len(step["prepend"])
    elif "precompiled_charsmap" in step:
        own = max(map(len, _rules(base64.b64decode(step["precompiled_charsmap"], validate=True))))
    elif "special_tokens" in step:
        tokens = {name: len(token["ids"]) for name, token in step["special_tokens"].items()}
        templates = (step["single"], step["pair"])
        own = max(
            sum(tokens[one["SpecialToken"]["id"]] if "SpecialToken" in one else 1 for one in t) for t in templates
        )
    inner = (_growth(one) for name in INNER for one in step.get(name) or ())
    return prod(inner, start=inf if own > ONCE else max(1.0, own))


def _rules(held: bytes) -> list[str]:
    """What rules of normalisation write: behind a trie, and its size in four bytes, texts that each a zero ends."""
    begin = 4 + int.from_bytes(held[:4], "little")
    if not 4 < begin <= len(held):
        raise ValueError
    return held[begin:].decode().split("\0")


def _library(document: Document, where: str) -> tokenizers.Tokenizer:
    """The library's tokenizer of a document, without padding and truncation."""
    model = {key: value for key, value in document["model"].items() if key != KEY}
    bare = {**document, "model": model, "padding": None, "truncation": None}
    return call_library(lambda: tokenizers.Tokenizer.from_str(json.dumps(bare)), where)


def call_library(question: Callable[[], Answer], where: str, library: str = "tokenizers") -> Answer:
    """Call a library; its errors become a RegardError."""
    try:
        return question()
    except BaseException as error:
        # That of tokenizers answers some files with a panic, which is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise RegardError(f"cannot be read by the {library} library: {str(error).strip()}", where) from None


def _symbols(
    document: Document, plain: tokenizers.Tokenizer, ids: Mapping[str, int], told: TokenizerSettings, where: str
) -> Symbols:
    for role, name in told.names.items():
        if name not in ids:
            raise RegardError(f"the {role} symbol {name!r} is not in the vocabulary", where)
    model, added = document["model"], document.get("added_tokens") or []
    special = {token["content"] for token in added if token.get("special")}
    # With merges a name may be an ordinary piece that they build; then only what the file added is a symbol.
    possible = {token["content"] for token in added} if "merges" in model else ids.keys()
    roles = {role: ids[name] for role, name in told.names.items()}
    for role, usual in KNOWN.items():
        here = [name for name in usual if name in ids and name in possible]
        if role not in roles and here:
            roles[role] = ids[here[0]]
    # its own piece for what it has no piece for: by name, or in a Unigram model by id
    unknown = model["unk_id"] if "unk_id" in model else ids.get(model.get("unk_token") or "")
    unknown = unknown if isinstance(unknown, int) else None
    if unknown is not None:
        roles["unk"] = unknown
    before, behind = call_library(lambda: _template_ids(plain), where)
    every = {*roles.values(), *(ids[name] for name in special if name in ids), *before, *behind}
    return Symbols(roles, frozenset(every), before, behind, unknown)


def _template_ids(plain: tokenizers.Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The symbols that the post-processor puts before and after a text."""
    for probe in ("a", "1", "。"):
        encoding = plain.encode(probe)
        marked = encoding.special_tokens_mask
        if 0 in marked:
            begin, end = marked.index(0), len(marked) - marked[::-1].index(0)
            return tuple(encoding.ids[:begin]), tuple(encoding.ids[end:])
    return (), ()


def _guard(document: Document, names: set[str]) -> Document:
    """The document with every symbol renamed, so that no text can hold one: a literal ``[MASK]`` stays text."""
    document = copy.deepcopy(document)
    model = document["model"]

    def safe(name: str) -> str:
        return GUARD + name if name in names else name

    vocab = model["vocab"]
    if isinstance(vocab, dict):
        model["vocab"] = {safe(name): id for name, id in vocab.items()}
    else:
        model["vocab"] = [[safe(name), score] for name, score in vocab]
    if isinstance(model.get("unk_token"), str):
        model["unk_token"] = safe(model["unk_token"])
    for token in document.get("added_tokens") or []:
        token["content"] = safe(token["content"])
    document["post_processor"] = None
    return document


def step_types(part: object) -> Iterator[str]:
    """The kinds of all steps of a part of the file, those inside a sequence too."""
    if isinstance(part, dict):
        yield str(part.get("type"))
        for inner in (*(part.get("pretokenizers") or ()), *(part.get("decoders") or ())):
            yield from step_types(inner)


class HuggingFaceTokenizer(BaseTokenizer):
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
        self, document: Document, names: Mapping[str, str] | None = None, size: int = 0, where: str = "tokenizer.json"
    ) -> None:
        kept = TokenizerSettings.of(document, where)
        given = {role.removesuffix("_token"): name for role, name in (names or {}).items()}
        if strange := sorted(set(given) - set(KNOWN)):
            raise RegardError(f"no symbol is for {strange[0]!r}; known are {', '.join(KNOWN)}", where)
        told = TokenizerSettings({**kept.names, **given}, size or kept.size)
        self._core, self.names, symbols = open_tokenizer(document, told, where)
        self._document, self._where = document, where
        self._special = symbols.every
        pieces = [id for id, name in enumerate(self.names) if name and id not in self._special]
        self.ordinary = np.array(pieces, np.int64)
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
        own = [*pieces, *(id for id in (self._strange,) if id is not None)]
        self.alone_V = np.isin(np.arange(self.size + 1), own, invert=True)
        names_of = {self.names[id]: id for id in sorted(self._special)}
        self.sentinels = ids_by_number(names_of, SENTINEL) or ids_by_number(names_of, SENTINEL_OF_T5)
        steps = {*step_types(document.get("pre_tokenizer")), *step_types(document.get("decoder"))}
        # of a byte-level file a piece that was added beside the others stands for its own text
        held = (unspell(name) if set(name) <= BYTE_OF.keys() else name.encode() for name in self.names)
        self._held = list(held) if "ByteLevel" in steps else None
        self._spaced = any(name.startswith("▁") for name in self.names)
        if told.names or told.size:
            value = {"format": FORMAT, "symbols": dict(sorted(told.names.items())), "size": told.size}
            document = {**document, "model": {**document["model"], KEY: value}}
        self.content = (json.dumps(document, ensure_ascii=False) + "\n").encode("utf-8", "replace")

    def frame_pair(self, first: str, second: str) -> tuple[list[int], list[int]]:
        """The ids that the file makes of two texts with all symbols, and the segment of each."""
        found = call_library(lambda: _library(self._document, self._where).encode(first, second), self._where)
        return found.ids, found.type_ids

    @cached_property
    def ends_between(self) -> int:  # type: ignore[override]
        """How often the file puts its end between two texts: twice in RoBERTa."""
        texts = ("a", "b a")
        pieces = sum(len(self.encode(text).ids) for text in texts)
        return max(1, len(self.frame_pair(*texts)[0]) - len(self.begin) - pieces - 1)

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """The pieces of each text with their offsets in the text itself, whatever the file makes of its characters."""
        normal = [self.normalise(text) for text in texts]
        guarded = [text.replace(GUARD, "\ufffd") for text in normal]
        found = call_library(lambda: self._core.encode_batch(guarded, add_special_tokens=False), self._where)
        return [Encoding(one.ids, one.offsets, text) for one, text in zip(found, normal, strict=True)]

    def ids_batch(self, texts: Sequence[str], ended: bool = False) -> list[NDArray[np.int64]]:
        """The ids alone of each text, its end last where ``ended``; the fastest way in."""
        normal = [self.normalise(text).replace(GUARD, "\ufffd") for text in texts]
        found = call_library(lambda: self._core.encode_batch_fast(normal, add_special_tokens=False), self._where)
        end = [self.end] if ended else []
        return [np.array(one.ids + end, dtype=np.int64) for one in found]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of pieces, as the file joins them; symbols and rows without a name are skipped."""
        ids = [int(id) for id in ids]
        if ids and not 0 <= min(ids) <= max(ids) <= self.size:
            raise RegardError(f"one is not below the vocabulary's {self.size} pieces", "ids")
        spoken = [id for id in ids if id < self.size and self.names[id] and id not in self._special]
        return call_library(lambda: self._core.decode(spoken, skip_special_tokens=False), self._where)

    def piece(self, id: int) -> str:
        """A piece as people read it: byte-level ones as ours, others as the file names them."""
        if self._held is None or id == self.start or id in self._special:
            return super().piece(id)
        return readable(self._held[id])

    def is_byte(self, id: int) -> bool:
        """Whether a piece is the sign of a character the vocabulary does not know."""
        if id >= self.size or id == self._strange:
            return id == self._strange
        return bool(BYTE.match(self.piece(id))) and id not in self._special

    def _word_starts(self, ids: Sequence[int]) -> NDArray[np.bool_]:
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
