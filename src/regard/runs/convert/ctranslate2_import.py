"""Import: a CTranslate2 folder of an encoder-decoder, or a package of Argos Translate → weights, recipe, vocabularies.

CTranslate2 itself reads and writes tokens. Where a SentencePiece model or a tokenizer lies beside, texts are read and
written by it; else texts are tokens between blanks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from regard.config import TransformerSection, merge, recipe_from
from regard.models.presets import meta_model
from regard.runs.convert.ctranslate2_file import ModelFile, read_model_file
from regard.runs.convert.hub import CONFIG, FLAG, OF_CTRANSLATE2, POSITIVE, TEXT, TEXTS, Fields
from regard.runs.convert.hub_import import LONGEST, ImportedModel
from regard.runs.convert.layouts import ctranslate2 as layout
from regard.runs.convert.layouts.format import inward, refuse_other_shapes
from regard.runs.convert.side_files import FILE, tokenizer_of
from regard.runs.convert.translator_files import LABEL, MODEL, SOURCE_MODEL, TARGET_MODEL, UNDERSCORED
from regard.system import disk
from regard.system.errors import Option, RegardError, UsageError
from regard.text.language_tokens import LanguageTokens, TextFrame
from regard.text.tokenizers.hugging_face import HuggingFaceTokenizer
from regard.text.tokenizers.sentencepiece import SentencePieceTokenizer
from regard.text.tokenizers.tokenizer import END, UNKNOWN
from regard.text.tokenizers.vocabulary import AnyTokenizer, Vocabularies

SHARED, SOURCE, TARGET = "shared_vocabulary", "source_vocabulary", "target_vocabulary"
BEGIN = "<s>"
SYMBOLS = (BEGIN, END, "<pad>", "<blank>", "<mask>")
"""Names of what no text has, and no translation."""
CODE = re.compile("[a-z]{3}_[A-Z][a-z]{3}|[a-z]{2}_[A-Z]{2}")
"""NLLB's and mBART's names of languages' tokens; stricter than where a folder says which they are."""
MODELS = (MODEL, "sentencepiece.model", "spm.model")
"""Names of one SentencePiece model for both sides."""


class Symbols(NamedTuple):
    """The names of symbols, and where they are put.

    Args:
        begin, end, unknown: by their roles.
        start: what the decoder starts with.
        begun, ended: whether ``begin`` and ``end`` stand around a source.
    """

    begin: str
    end: str
    unknown: str
    start: str
    begun: bool
    ended: bool


def read_ctranslate2(
    folder: Path,
    wanted: str | None = None,
    text: dict[str, str] | None = None,
    prefix: str = "",
    pieces: Path | None = None,
) -> ImportedModel:
    """The model of a folder that CTranslate2 reads, of an encoder-decoder.

    Args:
        folder: with ``model.bin`` and vocabularies.
        wanted: the task it is to be for; only translation is known.
        text: its languages, by our keys.
        prefix: a token that every translation begins with.
        pieces: the SentencePiece model of both sides; default: a known one beside.

    Raises:
        UsageError: another task is wanted.
        RegardError: it is damaged, of an unknown version, or has what there is nothing for here; names it.
    """
    if wanted not in (None, "translation"):
        raise UsageError(f"this CTranslate2 model is for translation, not for {wanted}", Option("task"))
    held = read_model_file(folder / OF_CTRANSLATE2)
    layout.refuse_unknown(held)
    config = Fields.of(folder / CONFIG, optional=True)
    symbols = _symbols(held, config)
    model = layout.section_of(held, config.parse("layer_norm_epsilon", POSITIVE, 1e-5))
    first, second = layout.tables_of(held)
    sizes = held.shape(first)[0], held.shape(second)[0]
    names = _names(folder, symbols.unknown, sizes)
    zero = layout.attribute(held, "start_from_zero_embedding", "decoder") != 0
    symbols = symbols._replace(ended=symbols.ended or zero or symbols.start != symbols.begin)
    vocabularies = _vocabularies(folder, names, symbols, prefix, pieces)
    values: dict[str, object] = {
        "task": "translation",
        "model": model,
        "text": {"vocabulary": max(300, *sizes), "joint": names[0] == names[1], **(text or {})},
        "data": {"max_tokens": LONGEST},
        "decoding": {"refill": True},
    }
    if model["positions"] == "learned":  # of a text and of what is written there are as many
        half = max(1, min(LONGEST, int(str(model["max_positions"]))) // 2)
        values = merge(values, {"data": {"max_tokens": half}, "decoding": {"max_extra": max(1, half - 1)}})
    recipe = recipe_from(values, str(held.path))
    assert isinstance(recipe.model, TransformerSection)
    start = None if zero else _find(names[1], symbols.start, folder)
    table = layout.rows(recipe.model, first, start)
    layout.refuse_surplus(held, table, first)
    weights = inward(table, {each.theirs: held.numbers(each.theirs) for each in table}, str(held.path))
    refuse_other_shapes(weights, meta_model(recipe.model, *sizes), str(held.path), OF_CTRANSLATE2)
    kinds = {one.type for one in held.variables.values() if one.shape}
    whole = ", its int8 or int16 weights made float32" if kinds & {torch.int8, torch.int16} else ""
    words = f"CTranslate2's layout (version {held.version} of its files{whole})"
    split = isinstance(vocabularies.source, HuggingFaceTokenizer) and not (folder / FILE).exists()
    note = f"no tokenizer ({', '.join(MODELS)}) lies beside the model: texts are tokens between blanks" if split else ""
    return ImportedModel(recipe, weights, vocabularies, layout=words, file=OF_CTRANSLATE2, note=note)


def _symbols(held: ModelFile, config: Fields) -> Symbols:
    """Of ``config.json``, which files have from version 6 on, or of the variables of older ones."""

    def said(role: str, usual: str) -> str:
        name = f"{role}_token"
        return bytes(held[name].numpy()).decode("utf-8", "replace") if name in held else config.parse(name, TEXT, usual)

    begin, end = said("bos", BEGIN), said("eos", END)
    begun, ended = (
        bool(layout.attribute(held, f"with_source_{role}")) or config.parse(f"add_source_{role}", FLAG, False)
        for role in ("bos", "eos")
    )
    start = begin if layout.attribute(held, "with_target_bos", default=1) else end
    if "decoder_start_token" in config.values and config.get("decoder_start_token") is None:
        raise RegardError("leaves decoder_start_token to its caller, which is not supported", config.where)
    return Symbols(begin, end, said("unk", UNKNOWN), config.parse("decoder_start_token", TEXT, start), begun, ended)


def _names(folder: Path, unknown: str, sizes: tuple[int, int]) -> list[list[str]]:
    """The tokens of each side, by their ids; the unknown one is the last where it is not named."""
    found = []
    for side, size in zip((SOURCE, TARGET), sizes, strict=True):
        paths = [folder / f"{name}.{end}" for name in (SHARED, side) for end in ("json", "txt")]
        there = [path for path in paths if path.exists()]
        if not there:
            raise RegardError(f"has neither {SHARED} nor {side}", str(folder))
        names = _tokens(there[0])
        names += [] if unknown in names else [unknown]
        if len(names) != size:
            raise RegardError(f"has {len(names):,} tokens, the model's table {size:,} rows", str(there[0]))
        found.append(names)
    return found


def _tokens(path: Path) -> list[str]:
    if path.suffix == ".json":
        return Fields({"tokens": disk.json_of(path, "vocabulary")}, str(path)).parse("tokens", TEXTS)
    try:
        lines = disk.content(path, kind="vocabulary").decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise RegardError(f"is not in UTF-8: {error}", str(path)) from None
    lines = lines[:-1] if not lines[-1] else lines
    return [line[:-1] for line in lines] if all(line.endswith("\r") for line in lines) else lines


def _find(names: Sequence[str], name: str, folder: Path) -> int:
    if name not in names:
        raise RegardError(f"has no token {name!r}, which the model needs", str(folder))
    return names.index(name)


def _vocabularies(
    folder: Path, names: list[list[str]], symbols: Symbols, prefix: str, pieces: Path | None
) -> Vocabularies:
    """The tokenizers of both sides, the languages that the target names, and what stands around texts."""
    begins, codes = _languages(names[1]) if symbols.ended and names[0] == names[1] else (False, {})
    files = [[pieces] if pieces else [folder / name for name in (own, *MODELS)] for own in (SOURCE_MODEL, TARGET_MODEL)]
    source, target = (
        _tokenizer(folder, file, one, symbols, {*codes, prefix}) for file, one in zip(files, names, strict=True)
    )
    joint = names[0] == names[1] and source.content == target.content
    source = target if joint else source
    before = (_find(names[0], symbols.begin, folder),) if symbols.begun else ()
    frame = TextFrame(before, symbols.ended, (_find(names[1], prefix, folder),) if prefix else ())
    languages = None
    if codes:
        languages = LanguageTokens({code: names[1].index(name) for name, code in codes.items()}, begins)
    return Vocabularies(source, target, joint, languages=languages, frame=frame)


def _languages(names: Sequence[str]) -> tuple[bool, dict[str, str]]:
    """Whether translations begin with the token of their language, and the codes of such tokens, by name."""
    for pattern, begins in ((CODE, True), (UNDERSCORED, True), (LABEL, False)):
        found = {name: match[match.lastindex or 0] for name in names if (match := pattern.fullmatch(name))}
        if found:
            return begins, found
    return False, {}


def _tokenizer(
    folder: Path, models: Sequence[Path], names: Sequence[str], symbols: Symbols, more: set[str]
) -> AnyTokenizer:
    """By the first of these SentencePiece models that is there, or by a tokenizer beside; else tokens are words."""
    alone = {name for name in names if name in {*SYMBOLS, symbols.begin, symbols.end, *more}}
    for file in models:
        if file.exists():
            first = {name: place for place, name in reversed([*enumerate(names)])}
            own = [name if first[name] == place else "" for place, name in enumerate(names)]
            return SentencePieceTokenizer.read(file, own, sorted(alone))
    if (folder / FILE).exists():
        found = tokenizer_of(folder, len(names))
        if list(found.names) != list(names):
            raise RegardError("does not have the tokens of the vocabulary in their order", str(folder / FILE))
        return found
    return word_tokenizer(names, symbols, sorted(alone), str(folder))


def word_tokenizer(names: Sequence[str], symbols: Symbols, alone: Sequence[str], where: str) -> HuggingFaceTokenizer:
    """Tokens between blanks, as the ``tokenizers`` library has it; the first of equal names counts.

    Args:
        names: by their ids.
        symbols: which of them have which role.
        alone: those that no text has.
        where: the folder, for errors.
    """
    ids = {name: id for id, name in reversed([*enumerate(names)])}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added = [{"id": ids[name], "content": name, "special": True, **flags} for name in sorted({*alone}, key=ids.get)]  # type: ignore[arg-type]
    document = {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": dict(sorted(ids.items(), key=lambda one: one[1])),
            "unk_token": symbols.unknown,
        },
    }
    return HuggingFaceTokenizer(document, {"eos": symbols.end, "unk": symbols.unknown}, len(names), where)
