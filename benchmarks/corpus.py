"""The work: Multi30k English-German, one joint byte-level vocabulary, the same pieces for every peer.

A piece is written as ``p`` and its id (``p17``): no peer refuses, splits or normalises such a word.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from regard.text.lines import lines
from regard.text.tokenizers.tokenizer import Tokenizer
from regard.text.tokenizers.vocabulary import learn_vocabularies

SPLITS = {"train": "train", "val": "val", "test": "test_2016_flickr"}
LANGUAGES = ("en", "de")


@dataclass(frozen=True)
class Corpus:
    """Where the prepared corpus lies, and its figures."""

    folder: str
    pieces: int
    sentences: int
    source_tokens: int
    """Of the training text, with ``</s>``."""
    target_tokens: int


DATA = Path(os.environ.get("REGARD_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
"""Where the data sets lie: ``REGARD_DATA``, else ``../shared/data`` beside the repository."""


def data_folder() -> Path:
    """Where the captions lie."""
    folder = DATA / "multi30k"
    if not (folder / "train.en.gz").exists():
        raise SystemExit("benchmarks need multi30k/train.en.gz and so on below REGARD_DATA; set that variable")
    return folder


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")


def _write_pieces(folder: Path, name: str, tokenizer: Tokenizer, lines: list[str]) -> int:
    """Writes a text as piece names; returns its tokens, ``</s>`` counted."""
    ids = tokenizer.ids_batch(lines)
    _write(folder / f"pieces.{name}", [" ".join(f"p{i}" for i in sentence) for sentence in ids])
    return sum(len(sentence) + 1 for sentence in ids)


def prepare(folder: Path, pieces: int = 8000) -> Corpus:
    """Learns the vocabulary and writes all texts, once; afterwards reads what stands there."""
    index = folder / "corpus.json"
    if index.exists():
        return Corpus(**{**json.loads(index.read_text()), "folder": str(folder)})
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        f"{split}.{language}": list(lines(data_folder() / f"{name}.{language}.gz"))
        for split, name in SPLITS.items()
        for language in LANGUAGES
    }
    tokenizer = learn_vocabularies(zip(texts["train.en"], texts["train.de"], strict=True), pieces).source
    tokenizer.save(folder / "tokenizer.json")
    _write(folder / "pieces.txt", [f"p{i}" for i in range(2, tokenizer.size)])
    counts = {}
    for name, text in texts.items():
        _write(folder / name, text)
        counts[name] = _write_pieces(folder, name, tokenizer, text)
    corpus = Corpus(str(folder), tokenizer.size, len(texts["train.en"]), counts["train.en"], counts["train.de"])
    index.write_text(json.dumps({**asdict(corpus), "folder": ""}))
    return corpus
