"""Tokenizers of others, in and out: one file where there is one, else built from the files of the first releases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from regard.convert.fields import Fields
from regard.convert.hub import fields_of
from regard.errors import RegardError
from regard.text.foreign import ForeignTokenizer
from regard.text.foreign_file import told_beside
from regard.text.vocabulary import AnyTokenizer

FILE, SETTINGS, ROLES = "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"
PAD = "<pad>"
"""The symbol we add where the other side needs one to start or to fill up."""
WORDS, PIECES, MERGES, MODEL = "vocab.txt", "vocab.json", "merges.txt", "spiece.model"


def foreign(folder: Path, pieces: int) -> ForeignTokenizer:
    """The tokenizer of a folder in Hugging Face's layout, for a table of ``pieces`` rows.

    Raises:
        RegardError: there is none, it is damaged, or has more pieces than the table.
    """
    names = told_beside(folder)
    if (folder / FILE).exists():
        found = ForeignTokenizer.load(folder / FILE, names, pieces)
    else:
        document, where = _built(folder)
        found = ForeignTokenizer(document, names, pieces, where)
    if found.size > pieces:
        raise RegardError(f"has {found.size} pieces, the model's table {pieces} rows", str(folder))
    return found


def _built(folder: Path) -> tuple[Any, str]:
    """The document of a tokenizer that lies there in the files of the first releases."""
    if (folder / WORDS).exists():
        return json.loads(_word_pieces(folder).to_str()), str(folder / WORDS)
    if (folder / PIECES).exists() and (folder / MERGES).exists():
        return json.loads(_byte_pairs(folder).to_str()), str(folder / PIECES)
    if (folder / MODEL).exists():
        raise RegardError(
            f"is the form of another library; load it with `transformers` and save it again to have a {FILE}",
            str(folder / MODEL),
        )
    raise RegardError(f"has no {FILE}", str(folder))


def _word_pieces(folder: Path) -> Tokenizer:
    """BERT's: a piece a line, its number the line's [Devlin19 §3]."""
    settings = fields_of(folder / SETTINGS) if (folder / SETTINGS).exists() else Fields({}, "")
    small = settings.flag("do_lower_case", True)
    try:
        lines = (folder / WORDS).read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise RegardError(f"cannot be read: {error}", str(folder / WORDS)) from None
    ids = {line.rstrip("\r"): number for number, line in enumerate(lines if lines[-1] else lines[:-1])}
    if missing := [name for name in ("[UNK]", "[CLS]", "[SEP]") if name not in ids]:
        raise RegardError(f"lacks {missing[0]}: is no vocabulary of BERT", str(folder / WORDS))
    core = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.flag("tokenize_chinese_chars", True),
        strip_accents=settings.flag("strip_accents", small),
        lowercase=small,
    )
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.decoder = decoders.WordPiece()
    core.add_special_tokens([name for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if name in ids])
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, ids[name]) for name in ("[CLS]", "[SEP]")],
    )
    return core


def _byte_pairs(folder: Path) -> Tokenizer:
    """GPT-2's: pieces by number, and merges a line each [Radford19 §2.2]."""
    try:
        model = models.BPE.from_file(str(folder / PIECES), str(folder / MERGES))
    except Exception as error:  # the library raises nothing narrower
        raise RegardError(f"cannot be read: {error}", str(folder / PIECES)) from None
    core = Tokenizer(model)
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    if core.token_to_id("<|endoftext|>") is not None:
        core.add_special_tokens([AddedToken("<|endoftext|>", normalized=True)])
    return core


def files(tokenizer: AnyTokenizer, longest: int, *, framed: bool, pad: bool) -> dict[str, bytes]:
    """The files that ``transformers`` reads a tokenizer from.

    Args:
        longest: tokens of a text, as the other side is told.
        framed: our symbols before and behind a text are put there by the file.
        pad: a symbol for the row behind the pieces is added.
    """
    theirs = isinstance(tokenizer, ForeignTokenizer)
    document = json.loads(tokenizer.content)
    document["model"].pop("regard" if theirs else "format", None)  # ours alone
    roles = _roles(tokenizer)
    if not theirs:
        symbols = list(tokenizer.names[: tokenizer.symbols])  # type: ignore[union-attr]
        document["added_tokens"] = [_added(id, name) for id, name in enumerate(symbols)]
        document["post_processor"] = _frame(tokenizer) if framed else None
    if not framed:
        roles["bos_token"] = roles["eos_token"]  # it stands between texts, so a text begins behind one
    if pad:
        document["added_tokens"] = [*document["added_tokens"], _added(tokenizer.size, PAD)]
        roles["pad_token"] = PAD
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": longest,
        "clean_up_tokenization_spaces": False,
        **roles,
    }
    return {FILE: as_json(document), SETTINGS: as_json(settings), ROLES: as_json(roles)}


def _roles(tokenizer: AnyTokenizer) -> dict[str, str]:
    """What each symbol is for; there is always one for what is unknown, without which CTranslate2 reads no model."""
    names = tokenizer.names
    end = names[tokenizer.end]
    roles = {"unk_token": names[tokenizer.unknown], "eos_token": end, "pad_token": end}
    if tokenizer.begin:
        roles |= {"cls_token": names[tokenizer.begin[0]], "sep_token": end}
    if tokenizer.mask is not None:
        roles["mask_token"] = names[tokenizer.mask]
    if isinstance(tokenizer, ForeignTokenizer) and tokenizer.pad is not None:
        roles["pad_token"] = names[tokenizer.pad]
    return roles


def _added(id: int, name: str) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": id, "content": name, **flags, "special": True}


def _frame(tokenizer: AnyTokenizer) -> Any:
    """The step of the file that puts our symbols around a text."""
    names = [tokenizer.names[id] for id in (*tokenizer.begin, tokenizer.end)]
    symbols = [{"SpecialToken": {"id": name, "type_id": 0}} for name in names]
    one, two = ({"Sequence": {"id": which, "type_id": 0}} for which in "AB")
    single = [*symbols[:-1], one, symbols[-1]]
    ids = zip(names, (*tokenizer.begin, tokenizer.end), strict=True)
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, two, symbols[-1]],
        "special_tokens": {name: {"id": name, "ids": [id], "tokens": [name]} for name, id in ids},
    }


def as_json(value: Any) -> bytes:
    """A JSON file's content."""
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")
