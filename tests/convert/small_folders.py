"""Small folders as ``transformers`` writes them: a random model and a tokenizer learned from a few sentences."""

import json
from functools import partial
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from tests.convert.small_peers import BERT, GPT2, T5, VIT, theirs, transformers
from tests.text.tokenizers import library_tokenizers as library

TEXTS = ["A dog runs over the grass.", "Two men sit on a wall!", "the grass is green", "Ein Hund läuft."]
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
