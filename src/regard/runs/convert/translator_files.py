"""Vocabularies of translators and of XLM-R in Hugging Face's layout: SentencePiece models, ids, languages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from regard.config import LANGUAGE, Recipe
from regard.runs.convert.hub import TEXTS, Fields, HubFolder
from regard.runs.convert.side_files import FILE, PIECES, ROLES, SETTINGS, as_json, tokenizer_of
from regard.system import disk
from regard.system.errors import RegardError
from regard.text.language_tokens import LanguageTokens
from regard.text.tokenizers.sentencepiece import FAIRSEQ, SentencePieceTokenizer, fairseq_names, names_by_id
from regard.text.tokenizers.vocabulary import AnyTokenizer, Vocabularies

SOURCE_MODEL, TARGET_MODEL = "source.spm", "target.spm"
MODEL, TARGET_PIECES = "sentencepiece.bpe.model", "target_vocab.json"
LABEL = re.compile(f">>({LANGUAGE[1:-1]})<<")
"""Marian's name of a language's token; what has other characters is no code."""
UNDERSCORED = re.compile(r"__([a-z]{2,3})__")
"""M2M-100's."""
CODED = re.compile(r"[a-z]{2,3}_[A-Za-z]{2,4}")
"""NLLB's and mBART's, such as ``deu_Latn`` and ``de_DE``."""
SYMBOLS = (*FAIRSEQ, "<mask>")


def vocabularies_of(hub: HubFolder, sizes: tuple[int, int]) -> Vocabularies:
    """The vocabularies of a translator of others, and the tokens of its languages where it has several.

    Args:
        hub: the folder.
        sizes: pieces of each side; rows beyond those that a file names have none.

    Raises:
        RegardError: a file is missing or damaged, or does not fit the sizes.
    """
    if (hub.path / SOURCE_MODEL).exists():
        names = _names(hub.path / PIECES)
        apart = Fields.of(hub.path / SETTINGS, optional=True).get("separate_vocabs") is True
        other = _names(hub.path / TARGET_PIECES) if apart or (hub.path / TARGET_PIECES).exists() else names
        return of_sides(hub.path, names, other, sizes)
    if (hub.path / MODEL).exists():
        names, codes = _of_fairseq(hub.path)
        tokenizer = _tokenizer(hub.path / MODEL, names, sizes[0], codes.values())
    elif (hub.path / FILE).exists():
        found = tokenizer_of(hub.path, sizes[0])
        return Vocabularies(found, found, joint=True, languages=language_tokens(found.names, begins=True))
    else:
        raise RegardError(f"has neither {SOURCE_MODEL} nor {MODEL}: its vocabulary is missing", str(hub.path))
    languages = LanguageTokens({code: names.index(name) for code, name in codes.items()}, begins=True)
    return Vocabularies(tokenizer, tokenizer, joint=True, languages=languages)


def of_sides(folder: Path, names: Sequence[str], other: Sequence[str], sizes: tuple[int, int]) -> Vocabularies:
    """The vocabularies of Marian: a model for each side, and the pieces of each side's ids."""
    source = _tokenizer(folder / SOURCE_MODEL, names, sizes[0], filter(LABEL.fullmatch, names))
    target = _tokenizer(folder / TARGET_MODEL, other, sizes[1], filter(LABEL.fullmatch, other))
    same = source.content == target.content
    return Vocabularies(source, target, joint=same, languages=language_tokens(source.names, begins=False))


def _of_fairseq(folder: Path) -> tuple[list[str], dict[str, str]]:
    """The name of each id of M2M-100, NLLB or mBART, and the symbol of each language by its code."""
    if (folder / PIECES).exists():  # M2M-100
        names, symbols = _names(folder / PIECES), _further(folder)
        return names + symbols, {match[1]: name for name in symbols if (match := UNDERSCORED.fullmatch(name))}
    pieces = SentencePieceTokenizer.read(folder / MODEL).names
    symbols = [name for name in _further(folder) if name not in SYMBOLS]
    codes = {name: name for name in symbols if CODED.fullmatch(name)}
    return fairseq_names(pieces, [*symbols, "<mask>"]), codes


def _names(path: Path) -> list[str]:
    return names_by_id(disk.json_of(path, "vocabulary"), str(path))


def _further(folder: Path) -> list[str]:
    """The symbols after the pieces, in the order of their ids."""
    more = "additional_special_tokens"
    for file, key in ((ROLES, more), (SETTINGS, more), (SETTINGS, "extra_special_tokens")):
        fields = Fields.of(folder / file, optional=True)
        if fields.get(key):
            return fields.parse(key, TEXTS)
    raise RegardError("names no languages (additional_special_tokens)", str(folder / ROLES))


def xlm_roberta_tokenizer(folder: Path, size: int) -> SentencePieceTokenizer:
    """The tokenizer of an XLM-R whose folder has no ``tokenizer.json``, as its SentencePiece model says.

    Raises:
        RegardError: the file is damaged, or does not fit the size.
    """
    names = fairseq_names(SentencePieceTokenizer.read(folder / MODEL).names, ["<mask>"])
    return _tokenizer(folder / MODEL, names, size, (), FAIRSEQ[0])


def encoder_contents(tokenizer: AnyTokenizer, longest: int) -> dict[str, bytes]:
    """The files of :func:`xlm_roberta_tokenizer`."""
    settings = {"tokenizer_class": "XLMRobertaTokenizer", "model_max_length": longest}
    return {MODEL: tokenizer.model or b"", SETTINGS: as_json(settings)}


def _tokenizer(path: Path, names: Sequence[str], size: int, symbols: object, begin: str = "") -> SentencePieceTokenizer:
    """The tokenizer of a model whose table has so many rows, of which names may be fewer."""
    if not len(names) - 1 <= size <= 2 * len(names):
        raise RegardError(f"has {len(names):,} pieces, the model's table {size:,}", str(path))
    held = [*names, *[""] * (size - len(names))][:size]
    more = {name for name in (*SYMBOLS, *list(symbols)) if name in held}  # type: ignore[call-overload]
    return SentencePieceTokenizer.read(path, held, sorted(more), begin)


def language_tokens(names: Sequence[str], *, begins: bool) -> LanguageTokens | None:
    """The tokens of languages among names."""
    pattern = CODED if begins else LABEL
    ids = {match[match.lastindex or 0]: id for id, name in enumerate(names) if (match := pattern.fullmatch(name))}
    return LanguageTokens(ids, begins) if ids else None


def translator_contents(vocabularies: Vocabularies, recipe: Recipe, own: bool) -> dict[str, bytes]:
    """The files of vocabularies that came in, as they were.

    Args:
        vocabularies: of SentencePiece models.
        recipe: of the translator, for its languages.
        own: a row after the pieces starts a translation: ``<pad>``, as in Marian.
    """
    source, target, text = vocabularies.source, vocabularies.target, recipe.text
    longest: dict[str, object] = {"model_max_length": recipe.data.max_tokens}
    if vocabularies.languages and vocabularies.languages.begins:
        spoken = {"src_lang": text.source_language, "tgt_lang": text.target_language}
        return _of_languages(source, min(vocabularies.languages.ids.values()), {**spoken, **longest})
    names = [[*one.names, *(["<pad>"] * own)] for one in (source, target)]
    tables = {PIECES: names[0], **({TARGET_PIECES: names[1]} if names[0] != names[1] else {})}
    files = {name: as_json(_ids(table)) for name, table in tables.items()}
    models = {SOURCE_MODEL: source.model or b"", TARGET_MODEL: target.model or b""}
    kind = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": TARGET_PIECES in tables}
    spoken = {"source_lang": text.source_language, "target_lang": text.target_language}
    return {**files, **models, SETTINGS: as_json({**kind, **spoken, **longest})}


def _of_languages(tokenizer: AnyTokenizer, first: int, settings: dict[str, object]) -> dict[str, bytes]:
    """The files of M2M-100, NLLB or mBART; ``first``: the id of the first language."""
    pieces = {*SentencePieceTokenizer(tokenizer.model or b"").names}
    if any(id > first and tokenizer.names[id] in pieces for id in tokenizer.ordinary):
        message = "further pieces stand behind its languages, and this layout wants them before"
        raise RegardError(f"{message}; it goes out as it is with --to ctranslate2", "text.extend_vocabulary")
    languages = [name for name in tokenizer.names[first:] if name and name not in SYMBOLS]
    kind = "M2M100" if UNDERSCORED.fullmatch(languages[0]) else "Nllb" if "eng_Latn" in languages else "MBart50"
    files = {PIECES: as_json(_ids(tokenizer.names[:first]))} if kind == "M2M100" else {}
    named: dict[str, object] = {"additional_special_tokens": languages}
    settings = {"tokenizer_class": f"{kind}Tokenizer", **settings, **named}
    return {**files, MODEL: tokenizer.model or b"", ROLES: as_json(named), SETTINGS: as_json(settings)}


def _ids(names: Sequence[str]) -> dict[str, int]:
    return {name: id for id, name in enumerate(names) if name}
