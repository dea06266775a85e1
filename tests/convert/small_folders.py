"""Small folders as ``transformers`` writes them: a random model and a tokenizer learned from a few sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tests.convert.small_peers import BERT, GPT2, T5, VIT, theirs, transformers

TEXTS = ["A dog runs over the grass.", "Two men sit on a wall!", "the grass is green", "Ein Hund läuft."]
LABELS = ("red", "green", "blue", "grey", "white")
TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")


def word_pieces() -> Tokenizer:
    """As BERT's."""
    symbols = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    core = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.decoder = decoders.WordPiece()
    core.train_from_iterator(
        TEXTS, trainers.WordPieceTrainer(vocab_size=90, special_tokens=symbols, show_progress=False)
    )
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return core


def byte_pairs() -> Tokenizer:
    """As GPT-2's."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    core.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=280, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"], show_progress=False
        ),
    )
    return core


def unigrams() -> Tokenizer:
    """As T5's."""
    core = Tokenizer(models.Unigram())
    core.pre_tokenizer = pre_tokenizers.Metaspace()
    core.decoder = decoders.Metaspace()
    core.train_from_iterator(
        TEXTS,
        trainers.UnigramTrainer(
            vocab_size=60, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
        ),
    )
    core.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    core.add_special_tokens([f"<extra_id_{number}>" for number in (2, 1, 0)])
    return core


ROLES = {
    "bert": {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
    "gpt2": {"eos": "<|endoftext|>", "bos": "<|endoftext|>", "unk": "<|endoftext|>"},
    "t5": {"eos": "</s>", "pad": "<pad>", "unk": "<unk>"},
}


def folder_of(kind: str, path: Path, **changes: Any) -> tuple[Any, Any]:
    """A folder of an architecture; the model and the tokenizer it was written from."""
    family = {"B": "bert", "G": "gpt2", "T": "t5", "V": "vit"}[kind[0]]
    labels = changes.pop("labels", LABELS)
    named = {"num_labels": len(labels), "id2label": dict(enumerate(labels))}
    if family == "vit":
        config = transformers.ViTConfig(**{**VIT, **named, **changes})
        peer = theirs(kind, config).float()
        peer.save_pretrained(path)
        return peer, None
    core = {"bert": word_pieces, "gpt2": byte_pairs, "t5": unigrams}[family]()
    size = {"vocab_size": core.get_vocab_size()}
    if family == "bert":
        config = transformers.BertConfig(**{**BERT, "max_position_embeddings": 40, **named, **size, **changes})
    elif family == "gpt2":
        config = transformers.GPT2Config(**{**GPT2, "n_positions": 40, **size, **changes})
    else:
        config = transformers.T5Config(**{**T5, "num_decoder_layers": 2, "eos_token_id": 1, **size, **changes})
    peer = theirs(kind, config).float()
    peer.save_pretrained(path)
    roles = {f"{role}_token": name for role, name in ROLES[family].items()}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=core, **roles)
    tokenizer.save_pretrained(path)
    return peer, tokenizer


def write(folder: Path, files: dict[str, bytes]) -> Path:
    """A folder of these files."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def config_of(path: Path) -> dict[str, Any]:
    return json.loads((path / "config.json").read_text(encoding="utf-8"))


def rewrite(path: Path, **changes: Any) -> None:
    """Change fields of ``config.json``; None takes one away."""
    values = {name: value for name, value in (config_of(path) | changes).items() if value is not None}
    (path / "config.json").write_text(json.dumps(values), encoding="utf-8")
