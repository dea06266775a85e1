"""Files beside a folder's config and weights: tokenizers, scaling of pixels, pooling as sentence-transformers has it.

Tokenizers of Hugging Face folders are read in their fast and slow formats, and written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from regard.config import FORMAT, Text, VitSection
from regard.data.batches.patches import Scale
from regard.runs.convert.hub import FLAG, NUMBERS, POSITIVE, WHOLE, Fields
from regard.system import disk
from regard.system.errors import RegardError
from regard.text.tokenizers.hugging_face import HuggingFaceTokenizer, special_token_names
from regard.text.tokenizers.tokenizer import Tokenizer, read_document
from regard.text.tokenizers.vocabulary import AnyTokenizer

FILE, SETTINGS, ROLES = "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"
PAD = "<pad>"
"""The symbol we add where the other side needs one to start or to fill up."""
NOTHING: dict[str, object] = {
    "type": "TemplateProcessing",
    "single": [{"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {},
}
"""The post-processor of `transformers` that adds nothing."""
SPOKEN = {"source_language": "source_lang", "target_language": "target_lang"}
"""Our keys for the languages of a translator to their words."""
MOST_TOKENS = 1 << 24
"""Of a text; where they say more they mean any."""
WORDS, PIECES, MERGES, MODEL = "vocab.txt", "vocab.json", "merges.txt", "spiece.model"
PIXELS = "preprocessor_config.json"
BRIGHTEST = 255.0
Pool = Literal["first", "mean", "max"]
MODULES, POOLING, SENTENCES = "modules.json", "1_Pooling/config.json", "sentence_bert_config.json"
WAYS: dict[str, Pool] = {
    "pooling_mode_cls_token": "first",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
}
"""Their fields for pooling to our words; of all their fields just one is true."""
KNOWN = ("Transformer", "Pooling", "Normalize")
"""The modules that have a counterpart here."""


def tokenizer_of(folder: Path, pieces: int) -> AnyTokenizer:
    """The tokenizer of a folder in Hugging Face's layout, for ``pieces``; ours if :func:`tokenizer_contents` wrote it.

    Raises:
        RegardError: it is missing, damaged, has too many pieces, or names less than half of them. (A table may have
            rows without a piece: it is often filled up to a multiple.)
    """
    there = (folder / FILE).exists()
    document, where = (read_document(folder / FILE), str(folder / FILE)) if there else _build_tokenizer(folder, pieces)
    own = _own_tokenizer(document) if there else None
    if own is not None and own.size == pieces:
        return own
    found = HuggingFaceTokenizer(document, special_token_names(folder), pieces, where)
    count = sum(map(bool, found.names))
    if found.size > pieces or 2 * count < pieces or not len(found.ordinary):
        few = "" if len(found.ordinary) else ", all of them symbols"
        message = f"has a tokenizer of {count:,} pieces{few}; the model's table has {pieces:,} rows"
        raise RegardError(message, str(folder))
    return found


def has_own_tokenizer(folder: Path) -> bool:
    """Whether the tokenizer of a folder is one that we wrote.

    Raises:
        RegardError: its file is damaged.
    """
    return (folder / FILE).exists() and _own_tokenizer(read_document(folder / FILE)) is not None


def _own_tokenizer(document: Any) -> Tokenizer | None:
    """Our tokenizer, if :func:`tokenizer_contents` wrote the document; ``None`` for a foreign one."""
    try:
        model = {**document["model"], "format": FORMAT}
        added = document["added_tokens"]
        bare = {**document, **dict.fromkeys(("post_processor", "padding", "truncation")), "added_tokens": []}
        found = Tokenizer.of({**bare, "model": model}, FILE)
    except (RegardError, KeyError, TypeError):
        return None
    symbols = _added_to(found)
    same = json.loads(found.content) == {**bare, "model": model}
    framed = document.get("post_processor") in (None, _frame(found), _frame(found, 2), NOTHING)
    return found if same and framed and added in (symbols, [*symbols, _added_token(found.size, PAD)]) else None


def max_length_of(folder: Path) -> int | None:
    """Most tokens of a text, symbols included; ``None`` if the folder does not say."""
    longest = Fields.of(folder / SETTINGS, optional=True).get("model_max_length")  # where it means "any", it is 10^30
    if not isinstance(longest, int) or isinstance(longest, bool):
        return None
    return longest if 2 <= longest <= MOST_TOKENS else None


def language_codes(folder: Path) -> dict[str, str]:
    """The languages of a translator, by our keys, as far as its folder names them.

    Raises:
        RegardError: something else stands there.
    """
    settings, found = Fields.of(folder / SETTINGS, optional=True), {}
    for key, name in (*SPOKEN.items(), ("source_language", "src_lang"), ("target_language", "tgt_lang")):
        if settings.get(name) is not None:
            found[key] = settings.language(name)
    return found


def _build_tokenizer(folder: Path, pieces: int) -> tuple[dict[str, object], str]:
    """The document of a tokenizer that lies there in the files of the first releases."""
    if (folder / WORDS).exists():
        return json.loads(_word_pieces(folder).to_str()), str(folder / WORDS)
    if (folder / PIECES).exists() and (folder / MERGES).exists():
        return json.loads(_byte_pairs(folder, pieces).to_str()), str(folder / PIECES)
    if (folder / MODEL).exists():
        message = f"is the form of another library; load it with `transformers` and save it again to have a {FILE}"
        raise RegardError(message, str(folder / MODEL))
    raise RegardError(f"has no {FILE}", str(folder))


def _word_pieces(folder: Path) -> tokenizers.Tokenizer:
    """BERT's: a piece a line, its number the line's [Devlin19 §3]."""
    settings = Fields.of(folder / SETTINGS, optional=True)
    small = settings.parse("do_lower_case", FLAG, True)
    try:
        text = disk.content(folder / WORDS, kind="vocabulary").decode("utf-8")
    except ValueError as error:
        raise RegardError(f"cannot be read: {error}", str(folder / WORDS)) from None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    ids = {line: number for number, line in enumerate(lines if lines[-1] else lines[:-1])}
    if missing := [name for name in ("[UNK]", "[CLS]", "[SEP]") if name not in ids]:
        raise RegardError(f"lacks {missing[0]}: is no vocabulary of BERT", str(folder / WORDS))
    core = tokenizers.Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.parse("tokenize_chinese_chars", FLAG, True),
        strip_accents=settings.parse("strip_accents", FLAG, small),
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


def _byte_pairs(folder: Path, pieces: int) -> tokenizers.Tokenizer:
    """GPT-2's and RoBERTa's: pieces by number, and merges a line each [Radford19 §2.2]."""
    ids = disk.json_of(folder / PIECES, "vocabulary")
    disk.content(folder / MERGES, kind="vocabulary")  # the library would read all there is
    if not isinstance(ids, dict) or not all(isinstance(id, int) and 0 <= id < pieces for id in ids.values()):
        # of one beyond them the library would write a list of all numbers that are free
        raise RegardError(f"is no vocabulary of pieces with numbers from 0 to {pieces - 1:,}", str(folder / PIECES))
    try:
        model = models.BPE.from_file(str(folder / PIECES), str(folder / MERGES))
    except Exception as error:  # the library raises nothing narrower
        raise RegardError(f"cannot be read: {error}", str(folder / PIECES)) from None
    core = tokenizers.Tokenizer(model)
    blank = Fields.of(folder / SETTINGS, optional=True).parse("add_prefix_space", FLAG, False)
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=blank)
    core.decoder = decoders.ByteLevel()
    if core.token_to_id("<|endoftext|>") is not None:
        core.add_special_tokens([AddedToken("<|endoftext|>", normalized=True)])
    elif {"<s>", "</s>"} <= ids.keys():  # RoBERTa's
        core.add_special_tokens([name for name in ("<s>", "<pad>", "</s>", "<unk>", "<mask>") if name in ids])
        core.post_processor = processors.RobertaProcessing(("</s>", ids["</s>"]), ("<s>", ids["<s>"]), True, blank)
    return core


def tokenizer_contents(
    tokenizer: AnyTokenizer, longest: int, *, framed: bool, pad: bool, segments: int = 0, text: Text | None = None
) -> dict[str, bytes]:
    """The files that ``transformers`` reads a tokenizer from.

    Args:
        longest: tokens of a text, as written into the settings.
        framed: the file adds our symbols before and after a text.
        pad: add a symbol for the row after the pieces.
        segments: of two texts, 2 where the second is another one; 0: an example has one text.
        text: of a translator, for its language codes where known.
    """
    document = json.loads(tokenizer.content)
    document["model"].pop("format" if isinstance(tokenizer, Tokenizer) else "regard", None)  # ours alone
    roles = _roles(tokenizer)
    if isinstance(tokenizer, Tokenizer):
        document["added_tokens"] = _added_to(tokenizer)
        document["post_processor"] = _frame(tokenizer, max(1, segments)) if framed else None
    elif segments and isinstance(tokenizer, HuggingFaceTokenizer) and not frames_pairs(tokenizer, segments):
        document["post_processor"] = _frame(tokenizer, segments)
    if not framed:
        roles["bos_token"] = roles["eos_token"]  # it separates texts, so a text begins after one
    if pad:
        document["added_tokens"] = [*document["added_tokens"], _added_token(tokenizer.size, PAD)]
        roles["pad_token"] = PAD
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": longest,
        "clean_up_tokenization_spaces": False,
        **roles,
        **({"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]} if segments > 1 else {}),
        **{name: said for key, name in SPOKEN.items() if text and (said := getattr(text, key)) != getattr(Text(), key)},
    }
    return {FILE: as_json(document), SETTINGS: as_json(settings), ROLES: as_json(roles)}


def _roles(tokenizer: AnyTokenizer) -> dict[str, str]:
    """The roles of the symbols; always with an unknown symbol, which CTranslate2 requires."""
    names = tokenizer.names
    end = names[tokenizer.end]
    roles = {"unk_token": names[tokenizer.unknown], "eos_token": end, "pad_token": end}
    if tokenizer.begin:
        roles |= {"cls_token": names[tokenizer.begin[0]], "sep_token": end}
    if tokenizer.mask is not None:
        roles["mask_token"] = names[tokenizer.mask]
    if isinstance(tokenizer, HuggingFaceTokenizer) and tokenizer.pad is not None:
        roles["pad_token"] = names[tokenizer.pad]
    return roles


def _added_to(tokenizer: Tokenizer) -> list[dict[str, object]]:
    """The added-token entries of our symbols, so that their names are not split."""
    return [_added_token(id, name) for id, name in enumerate(tokenizer.names[: tokenizer.symbols])]


def _added_token(id: int, name: str) -> dict[str, object]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": id, "content": name, **flags, "special": True}


def _frame(tokenizer: AnyTokenizer, segments: int = 1) -> dict[str, object]:
    """The step of the file that puts our symbols around a text, or two, the second another segment if there are two."""
    names = [tokenizer.names[id] for id in (*tokenizer.begin, tokenizer.end)]
    symbols = [{"SpecialToken": {"id": name, "type_id": 0}} for name in names]
    last = {"SpecialToken": {"id": names[-1], "type_id": segments - 1}}
    one, two = ({"Sequence": {"id": which, "type_id": kind}} for which, kind in (("A", 0), ("B", segments - 1)))
    single = [*symbols[:-1], one, symbols[-1]]
    more = [symbols[-1]] * (tokenizer.ends_between - 1 if segments == 1 else 0)
    ids = zip(names, (*tokenizer.begin, tokenizer.end), strict=True)
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, *more, two, last],
        "special_tokens": {name: {"id": name, "ids": [id], "tokens": [name]} for name, id in ids},
    }


def frames_pairs(tokenizer: HuggingFaceTokenizer, segments: int) -> bool:
    """Whether the file puts two texts into one as we do: begin, first, end, second, end.

    The second is another segment; if there are none, several ends may stand between.
    """
    ids, kinds = tokenizer.frame_pair("a", "b a")
    first, second = (tokenizer.encode(text).ids for text in ("a", "b a"))
    ends = [tokenizer.end] * (tokenizer.ends_between if segments < 2 else 1)
    before, behind = [*tokenizer.begin, *first, *ends], [*second, tokenizer.end]
    apart = [0] * len(before) + [1] * len(behind)
    return ids == before + behind and (segments < 2 or kinds == apart)


def as_json(value: object) -> bytes:
    """A JSON file's content."""
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")


def scale_of(folder: Path, channels: int) -> Scale:
    """The scale in a Hugging Face folder for images of ``channels`` channels; default: that of ViT.

    Raises:
        RegardError: the file is damaged, divides by what is not above zero, or has numbers for other channels.
    """
    said = Fields.of(folder / PIXELS, optional=True)
    largest = 1 / said.parse("rescale_factor", POSITIVE, 1 / BRIGHTEST) if said.parse("do_rescale", FLAG, True) else 1.0
    normal = said.parse("do_normalize", FLAG, True)
    mean = said.parse("image_mean", NUMBERS, 0.5) if normal else (0.0,)
    deviation = said.parse("image_std", NUMBERS, 0.5) if normal else (1.0,)
    largest = round(largest, 6)
    if not isfinite(largest) or min(largest, *deviation) <= 0:
        raise RegardError("is damaged: pixel values are divided by numbers above zero", said.where)
    scale = Scale(largest, mean, deviation)
    scale.refuse_others(channels, said.where)
    return scale


def processor(model: VitSection, scale: Scale) -> dict[str, object]:
    """The values of ``preprocessor_config.json``; each channel has a number of its own there."""
    mean, deviation = (
        list(value * model.channels if len(value) == 1 else value) for value in (scale.mean, scale.deviation)
    )
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": model.height, "width": model.width},
        "do_rescale": True,
        "rescale_factor": 1 / scale.largest,
        "do_normalize": True,
        "image_mean": mean,
        "image_std": deviation,
    }


@dataclass(frozen=True)
class SentenceTransformersConfig:
    """Pooling and normalisation of a text encoder.

    Args:
        pool: the pooling; ``None``: the folder is not that of a sentence encoder.
        normalise: the vector gets length one.
        longest: tokens of a text, the symbols counted; ``None``: the folder does not say.
        lowers: texts are lower-cased before the tokenizer has them.
    """

    pool: Pool | None = None
    normalise: bool = False
    longest: int | None = None
    lowers: bool = False

    @classmethod
    def of(cls, folder: Path) -> SentenceTransformersConfig:
        """Read a folder.

        Raises:
            RegardError: it pools in a way or has a module that is not supported, or a file is damaged.
        """
        if not (folder / POOLING).exists():
            return cls()
        settings = Fields.of(folder / SENTENCES, optional=True)
        longest = None if settings.get("max_seq_length") is None else settings.parse("max_seq_length", WHOLE)
        if longest == 1:
            raise RegardError("max_seq_length is 1, which leaves no room for the symbols", settings.where)
        return cls(
            _pool(folder), "Normalize" in _modules(folder), longest, settings.parse("do_lower_case", FLAG, False)
        )


def _pool(folder: Path) -> Pool:
    said = Fields.of(folder / POOLING)
    asked = {name for name in said.values if name.startswith("pooling_mode") and said.parse(name, FLAG, False)}
    if len(asked) != 1 or not asked <= WAYS.keys():
        raise RegardError(f"pools by {', '.join(sorted(asked)) or 'nothing'}; known: {', '.join(WAYS)}", said.where)
    return WAYS[asked.pop()]


def _modules(folder: Path) -> list[str]:
    """The kinds of modules a text passes, in their order."""
    path = folder / MODULES
    if not path.exists():
        return []
    modules = disk.json_of(path)
    try:
        kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
    except (KeyError, TypeError) as error:
        raise RegardError(f"is damaged: {error}", str(path)) from None
    if strange := [kind for kind in kinds if kind not in KNOWN]:
        raise RegardError(f"has the module {strange[0]!r}, which is not supported", str(path))
    return kinds


def pooling_files(pool: Pool, size: int, longest: int, *, normalise: bool) -> dict[str, bytes]:
    """The files of sentence-transformers, by name; ``size``: entries of a vector."""
    paths = {"Transformer": "", "Pooling": "1_Pooling", **({"Normalize": "2_Normalize"} if normalise else {})}
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (kind, path) in enumerate(paths.items())
    ]
    pooling = {"word_embedding_dimension": size, **{name: way == pool for name, way in WAYS.items()}}
    settings = {"max_seq_length": longest, "do_lower_case": False}
    return {MODULES: as_json(modules), POOLING: as_json(pooling), SENTENCES: as_json(settings)}
