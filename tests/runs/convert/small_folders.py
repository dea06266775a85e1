"""Small folders as ``transformers`` writes them: a random model and a tokenizer learned from a few sentences."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from tests.runs.convert.small_peers import BERT, GPT2, T5, VIT, theirs, transformers
from tests.text.tokenizers import library_tokenizers as library

TEXTS = ["A dog runs over the grass.", "Two men sit on a wall!", "the grass is green", "Ein Hund läuft."]
PAIRS = [(TEXTS[0], TEXTS[1]), (TEXTS[3], "x"), ("Two men", f"{TEXTS[2]}, {TEXTS[0]}"), (TEXTS[2], TEXTS[2])]
LABELS = ("red", "green", "blue", "grey", "white")
TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")

word_pieces = partial(library.word_pieces, TEXTS, 90)
byte_pairs = partial(library.byte_pairs, TEXTS, 280)


def unigrams() -> Tokenizer:
    """Whose sentinels stand behind the pieces."""
    core = library.unigrams(TEXTS, 60)
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


def untied_t5(path: Path) -> Any:
    """A folder of a T5 1.1, whose output has a table of its own; the model it was written from."""
    peer, _ = folder_of("T5ForConditionalGeneration", path, feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    peer.lm_head.weight = torch.nn.Parameter(torch.randn_like(peer.lm_head.weight))
    peer.save_pretrained(path)
    return peer


def around(
    folder: Path, way: str = "mean_tokens", kinds: tuple[str, ...] = ("Transformer", "Pooling"), **more: Any
) -> None:
    """The files of an encoder of sentences beside a bare encoder."""
    names = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    pooling = {"word_embedding_dimension": 12, **{f"pooling_mode_{name}": name == way for name in names}}
    modules = [{"idx": n, "type": f"sentence_transformers.models.{kind}"} for n, kind in enumerate(kinds)]
    values = {"1_Pooling/config.json": pooling, "modules.json": modules, "sentence_bert_config.json": more}
    write(folder, {name: json.dumps(value).encode() for name, value in values.items()})


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
