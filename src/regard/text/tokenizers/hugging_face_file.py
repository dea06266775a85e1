"""Reader of foreign ``tokenizer.json`` files; symbols are guarded so that no text encodes to one."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import tokenizers

from regard.config import FORMAT
from regard.system.errors import RegardError
from regard.text.tokenizers.tokenizer_file import read_document

Answer = TypeVar("Answer")

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
    """Settings of a tokenizer that its file lacks; embedded in it when it is saved.

    Args:
        names: role to name, e.g. ``{"eos": "<|endoftext|>"}``.
        size: rows of the model's table, where there are more than the file has names for.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    size: int = 0

    @classmethod
    def of(cls, document: Any, where: str) -> TokenizerSettings:
        """The settings that :meth:`embed_in` wrote; empty if there are none."""
        try:
            found = document["model"].get(KEY, {})
            if found.get("format", FORMAT) > FORMAT:
                message = f"format {found['format']} was written by a newer Regard; this one reads format {FORMAT}"
                raise RegardError(message, where)
            names, size = dict(found.get("symbols", {})), found.get("size", 0)
            sound = all(isinstance(name, str) and role in KNOWN for role, name in names.items())
        except (KeyError, TypeError, ValueError, AttributeError):
            sound = False
        if not sound or not isinstance(size, int) or not 0 <= size <= 1 << 24:
            raise RegardError("is damaged, or no tokenizer of the tokenizers library", where)
        return cls(names, size)

    def embed_in(self, document: Any) -> Any:
        """The document with these settings embedded."""
        if not self.names and not self.size:
            return document
        value = {"format": FORMAT, "symbols": dict(sorted(self.names.items())), "size": self.size}
        return {**document, "model": {**document["model"], KEY: value}}


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
    document: Any, told: TokenizerSettings, where: str
) -> tuple[tokenizers.Tokenizer, list[str], Symbols]:
    """The guarded library tokenizer, the name of each id (empty where there is none), and the symbols.

    Raises:
        RegardError: the library cannot read it, or a given symbol is not in it.
    """
    plain = _library(_bare(document, where), where)
    ids: dict[str, int] = plain.get_vocab(with_added_tokens=True)
    largest = max(ids.values(), default=-1)
    if not ids or largest >= 1 << 24:
        raise RegardError("has no pieces, or ids above 16 million; is it a tokenizer?", where)
    names = [""] * max(largest + 1, told.size)
    for name, id in ids.items():
        names[id] = name
    symbols = _symbols(document, plain, ids, told, where)
    guarded = _library(_guard(document, {names[id] for id in symbols.every}), where)
    if any(guarded.token_to_id(GUARD + names[id]) != id for id in symbols.every):
        raise RegardError("has symbols whose ids do not fit its vocabulary; the file is damaged", where)
    return guarded, names, symbols


def _bare(document: Any, where: str) -> Any:
    """The document without padding and truncation."""
    if not isinstance(document, dict) or not isinstance(document.get("model"), dict):
        raise RegardError("is damaged, or no tokenizer of the tokenizers library", where)
    model = {key: value for key, value in document["model"].items() if key != KEY}
    return {**document, "model": model, "padding": None, "truncation": None}


def _library(document: Any, where: str) -> tokenizers.Tokenizer:
    return call_library(lambda: tokenizers.Tokenizer.from_str(json.dumps(document)), where)


def call_library(question: Callable[[], Answer], where: str) -> Answer:
    """Call the library; its errors become a RegardError."""
    try:
        return question()
    except BaseException as error:
        # The library answers some files with a panic, which is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise RegardError(f"cannot be read by the tokenizers library: {error}", where) from None


def _symbols(
    document: Any, plain: tokenizers.Tokenizer, ids: Mapping[str, int], told: TokenizerSettings, where: str
) -> Symbols:
    for role, name in told.names.items():
        if name not in ids:
            raise RegardError(f"the {role} symbol {name!r} is not in the vocabulary", where)
    added = document.get("added_tokens") or []
    special = {token["content"] for token in added if token.get("special")}
    # With merges a name may be an ordinary piece that they build; then only what the file added is a symbol.
    possible = {token["content"] for token in added} if "merges" in document["model"] else ids.keys()
    roles = {role: ids[name] for role, name in told.names.items()}
    for role, usual in KNOWN.items():
        here = [name for name in usual if name in ids and name in possible]
        if role not in roles and here:
            roles[role] = ids[here[0]]
    if (unknown := _unknown(document["model"], ids)) is not None:
        roles["unk"] = unknown
    before, behind = call_library(lambda: _template_ids(plain), where)
    every = {*roles.values(), *(ids[name] for name in special if name in ids), *before, *behind}
    return Symbols(roles, frozenset(every), before, behind, unknown)


def _unknown(model: Any, ids: Mapping[str, int]) -> int | None:
    """The model's own piece for what it has no piece for: by name, or in a Unigram model by id."""
    unknown = model["unk_id"] if "unk_id" in model else ids.get(model.get("unk_token") or "")
    return unknown if isinstance(unknown, int) else None


def _template_ids(plain: tokenizers.Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The symbols that the post-processor puts before and after a text."""
    for probe in ("a", "1", "。"):
        encoding = plain.encode(probe)
        marked = encoding.special_tokens_mask
        if 0 in marked:
            begin, end = marked.index(0), len(marked) - marked[::-1].index(0)
            return tuple(encoding.ids[:begin]), tuple(encoding.ids[end:])
    return (), ()


def _guard(document: Any, names: set[str]) -> Any:
    """The document with every symbol renamed, so that no text can hold one: a literal ``[MASK]`` stays text."""
    document = copy.deepcopy(_bare(document, ""))
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


def step_types(part: Any) -> Iterator[str]:
    """The kinds of all steps of a part of the file, those inside a sequence too."""
    if isinstance(part, dict):
        yield str(part.get("type"))
        for inner in (*(part.get("pretokenizers") or ()), *(part.get("decoders") or ())):
            yield from step_types(inner)
