"""Folders of translators as they lie on the hub, made by the libraries of others: small models, random weights."""

import io
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.runs.convert.small_peers import transformers

sentencepiece = pytest.importorskip("sentencepiece")
m2m, nllb, mbart50 = (
    pytest.importorskip(f"transformers.models.{name}.tokenization_{name}") for name in ("m2m_100", "nllb", "mbart50")
)
SYLLABLES = "ka to mi ne su ra lo wa shi gu ber stein groß haus ein ver lich ung tion ness the ing er ed".split()
SIZES = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 128}
SIZES |= dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 24)
SIZES |= dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2)
CODES = {
    "m2m": m2m.FAIRSEQ_LANGUAGE_CODES["m2m100"],
    "nllb": nllb.FAIRSEQ_LANGUAGE_CODES,
    "mbart": mbart50.FAIRSEQ_LANGUAGE_CODES,
}
SPOKEN = {"m2m": ("en", "de"), "nllb": ("eng_Latn", "deu_Latn"), "mbart": ("en_XX", "de_DE")}


def sentences(count: int, seed: int = 3) -> list[str]:
    draws = random.Random(seed)
    words = ["".join(draws.choices(SYLLABLES, k=draws.randint(1, 4))) for _ in range(200)]
    return [" ".join(draws.choices(words, k=draws.randint(1, 9))) for _ in range(count)]


def piece_model(kind: str, size: int = 120, seed: int = 3, **more: int) -> bytes:
    """A SentencePiece model of such sentences."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(400, seed)),
        model_writer=written,
        vocab_size=size,
        model_type=kind,
        minloglevel=2,
        **more,
    )
    return written.getvalue()


def pieces_of(model: bytes) -> list[str]:
    core = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [core.id_to_piece(id) for id in range(core.piece_size())]


def _json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def write(kind: str, folder: Path) -> Any:
    """Write a folder of this kind, its weights pickled; the model, its scores far apart."""
    torch.manual_seed(5)
    model = {"marian": _marian, "separate": _separate, "m2m": _m2m, "nllb": _nllb, "mbart": _mbart}[kind](folder)
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embed_positions" not in name:
                weight.add_(0.3 * torch.randn(weight.shape, generator=generator))
        for name, bias in model.named_buffers():
            if name == "final_logits_bias" and kind != "mbart":
                bias.copy_(torch.randn(bias.shape, generator=generator))
                bias[:, -1] = -1e4  # that of <pad>, whose zeros have a share of the probability there and none here
    model = model.eval()
    model.save_pretrained(folder)
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return model


def _never(ids: Sequence[int]) -> dict[str, object]:
    """Settings by which their search writes no symbols, as ours never does."""
    return {"suppress_tokens": [*ids], "num_beams": 4, "max_length": 64}


def _marian(folder: Path) -> Any:
    source, target = piece_model("unigram"), piece_model("unigram", 110, seed=4)
    pieces = dict.fromkeys([*pieces_of(source)[3:], *pieces_of(target)[3:]])
    names = ["</s>", "<unk>", *pieces, ">>deu<<", ">>fra<<", "<pad>"]
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    _json(folder / "vocab.json", {name: id for id, name in enumerate(names)})
    _json(folder / "tokenizer_config.json", {"source_lang": "en", "target_lang": "de"})
    return _of_marian(names, names, swish=True)


def _separate(folder: Path) -> Any:
    source, target = piece_model("bpe"), piece_model("unigram", 110, seed=4)
    tables = [["</s>", "<unk>", *pieces_of(model)[3:]] for model in (source, target)]
    names, other = ([*table, *["x" * n for n in range(40, 40 + 130 - len(table))], "<pad>"] for table in tables)
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    _json(folder / "vocab.json", {name: id for id, name in enumerate(names)})
    _json(folder / "target_vocab.json", {name: id for id, name in enumerate(other)})
    _json(folder / "tokenizer_config.json", {"separate_vocabs": True, "source_lang": "en", "target_lang": "de"})
    return _of_marian(names, other, share_encoder_decoder_embeddings=False)


def _of_marian(names: list[str], other: list[str], swish: bool = False, **more: Any) -> Any:
    last = len(names) - 1
    config = transformers.MarianConfig(
        **SIZES,
        vocab_size=len(names),
        decoder_vocab_size=len(other),
        pad_token_id=last,
        decoder_start_token_id=last,
        eos_token_id=0,
        forced_eos_token_id=None,
        activation_function="swish" if swish else "relu",
        scale_embedding=True,
        **more,
    )
    model = transformers.MarianMTModel(config)
    symbols = [id for id, name in enumerate(other) if name in ("<unk>", "<pad>") or name.startswith(">>")]
    model.generation_config.update(**_never(symbols), forced_eos_token_id=None, bad_words_ids=None)
    return model


def _m2m(folder: Path) -> Any:
    held = piece_model("bpe")
    names = ["<s>", "<pad>", "</s>", "<unk>", *pieces_of(held)[3:]]
    languages = [f"__{code}__" for code in CODES["m2m"]]
    (folder / "sentencepiece.bpe.model").write_bytes(held)
    _json(folder / "vocab.json", {name: id for id, name in enumerate(names)})
    _fairseq_files(folder, languages, *SPOKEN["m2m"])
    return _of_fairseq("M2M100", names, languages)


def _nllb(folder: Path) -> Any:
    return _by_fairseq(folder, "M2M100", "nllb", piece_model("bpe"))


def _mbart(folder: Path) -> Any:
    return _by_fairseq(folder, "MBart", "mbart", piece_model("unigram"))


def _by_fairseq(folder: Path, kind: str, name: str, held: bytes) -> Any:
    languages = list(CODES[name])
    names = ["<s>", "<pad>", "</s>", "<unk>", *pieces_of(held)[3:]]
    (folder / "sentencepiece.bpe.model").write_bytes(held)
    _fairseq_files(folder, languages, *SPOKEN[name])
    return _of_fairseq(kind, names, [*languages, "<mask>"], first=2 if kind == "M2M100" else None)


def _fairseq_files(folder: Path, languages: list[str], source: str, target: str) -> None:
    named = {"additional_special_tokens": languages}
    _json(folder / "special_tokens_map.json", named)
    _json(folder / "tokenizer_config.json", {"src_lang": source, "tgt_lang": target, **named})


def _of_fairseq(kind: str, names: list[str], more: list[str], first: int | None = 2) -> Any:
    config = getattr(transformers, f"{kind}Config")(
        **SIZES, vocab_size=len(names) + len(more), decoder_start_token_id=2, activation_function="relu"
    )
    model = getattr(transformers, f"{kind}ForConditionalGeneration")(config)
    symbols = [0, 1, 3, *range(len(names), len(names) + len(more))]
    model.generation_config.update(**_never(symbols), forced_eos_token_id=None, decoder_start_token_id=2)
    return model


def tokenizer(kind: str, folder: Path) -> Any:
    """Their tokenizer of such a folder."""
    names = {"m2m": "M2M100Tokenizer", "nllb": "NllbTokenizer", "mbart": "MBart50Tokenizer"}
    return getattr(transformers, names.get(kind, "MarianTokenizer")).from_pretrained(folder)
