"""Small models of every family that have really learned something, for the page to show."""

import fcntl
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import regard
from regard.runs.demo.grammar import Pair
from regard.runs.demo.grammar.corpus import SPLITS
from tests.page.language import SIDE, antecedent, digits, pairs, spans

GERMAN, BACK = "German", "English"
"""Prefixes: the language that is written."""

# ---- Files to learn from: written into a folder, they are the arguments of ``train``


def of_sides(folder: Path) -> dict[str, Path]:
    for split in ("train", "valid"):
        _write(folder / f"{split}.en", (pair.source for pair in pairs(split)))
        _write(folder / f"{split}.de", (pair.target for pair in pairs(split)))
    given = {"source": "train.en", "target": "train.de", "valid_source": "valid.en", "valid_target": "valid.de"}
    return {name: folder / file for name, file in given.items()}


def of_texts(folder: Path) -> dict[str, Path]:
    return {split: _write(folder / f"{split}.txt", (p.source for p in pairs(split))) for split in SPLITS[:2]}


def of_labels(folder: Path) -> dict[str, Path]:
    return _of_entries(folder, lambda pair: {"text": pair.source, "label": antecedent(pair)})


def of_prefixed(folder: Path) -> dict[str, Path]:
    """Both ways, the way named by the prefix."""

    def rows(split: str) -> Iterator[str]:
        for pair in pairs(split):
            yield f"{GERMAN}\t{pair.source}\t{pair.target}"
            yield f"{BACK}\t{pair.target}\t{pair.source}"

    return {split: _write(folder / f"{split}.tsv", rows(split)) for split in SPLITS[:2]}


def of_spans(folder: Path) -> dict[str, Path]:
    return _of_entries(folder, lambda pair: {"text": pair.source, "spans": spans(pair)})


def of_images(folder: Path) -> dict[str, Path]:
    for split in SPLITS:
        images, labels = digits(split)
        np.savez(folder / f"{split}.npz", images=images, labels=labels)
    return {split: folder / f"{split}.npz" for split in SPLITS[:2]}


def _of_entries(folder: Path, entry: Callable[[Pair], dict[str, Any]]) -> dict[str, Path]:
    return {split: _write(folder / f"{split}.jsonl", map(json.dumps, map(entry, pairs(split)))) for split in SPLITS[:2]}


def _write(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


# ---- The models


@dataclass(frozen=True)
class Lesson:
    """What a model is taught, and what is expected of it.

    Args:
        recipe: its values; ``steps``: of training.
        files: writes what is learned from into a folder; the arguments of ``train`` that name it.
        loss: of sentences or images that were held out, loosely; what knows nothing has several times as much.
    """

    recipe: dict[str, Any]
    steps: int
    files: Callable[[Path], dict[str, Path]]
    loss: float


def _recipe(task: str, model: dict[str, Any], rate: float = 1e-2, tokens: int = 512, **sections: Any) -> dict[str, Any]:
    training: dict[str, Any] = {"rate": rate, "tokens": tokens, "validate_every": 40, "validation_sentences": 20}
    training |= {"label_smoothing": 0.0, "select": "last"}
    return {"task": task, "model": model, "training": training, "text": ENGLISH, "data": {"max_tokens": 48}, **sections}


BOTH = {"vocabulary": 450, "source_language": "en", "target_language": "de"}
ENGLISH = {"vocabulary": 560, "units": "pieces", "source_language": "en"}
LINES = {"max_tokens": 48, "documents": "line"}
SMALL = {"d_model": 64, "d_ff": 256, "heads": 4, "norm_place": "pre", "dropout": 0.0}
PAPER = {**SMALL, "encoder_layers": 2, "decoder_layers": 2, "d_model": 96, "d_ff": 192}
T5 = {**SMALL, "encoder_layers": 2, "decoder_layers": 2, "positions": "relative", "norm": "rms", "biases": False}
RECURRENT = {"family": "rnn", "score": "additive", "d_model": 64, "dropout": 0.0}
READS_BOTH_WAYS = {"family": "rnn-encoder", "pool": "attention", "d_model": 64, "dropout": 0.0}
BERT = {**SMALL, "layers": 2, "segments": 0, "embedding_norm": False, "pool": "mean", "pooler": False}
VIT = {**SMALL, "layers": 2, "height": SIDE, "width": SIDE, "channels": 1, "patch": 2, "positions": "grid"}
# two gaps at least: a lone one would always be a text's end
SPANS = {"spans": True, "span_share": 0.4, "span_length": 2.0}
LESSONS = {
    "translator": Lesson(_recipe("translation", PAPER, 5e-3, text=BOTH), 120, of_sides, 0.2),
    "recurrent": Lesson(_recipe("translation", RECURRENT, 2e-2, 1024, text=BOTH), 60, of_sides, 0.3),
    "words": Lesson(_recipe("masked-lm", BERT, data=LINES, masking={"share": 0.3}), 60, of_texts, 1.0),
    "classifier": Lesson(_recipe("classification", {**BERT, "positions": "sinusoidal"}), 70, of_labels, 0.1),
    "reader": Lesson(_recipe("classification", READS_BOTH_WAYS), 50, of_labels, 0.1),
    "tagger": Lesson(_recipe("tagging", BERT), 60, of_spans, 0.1),
    "writer": Lesson(_recipe("language-model", {**SMALL, "layers": 2}, data=LINES), 60, of_texts, 0.9),
    "spans": Lesson(
        _recipe("text-to-text", {**T5, "scale_scores": False}, data=LINES, text_to_text=SPANS), 110, of_texts, 0.6
    ),
    "tasks": Lesson(_recipe("text-to-text", {**T5, "d_model": 96}, 5e-3, text=BOTH), 200, of_prefixed, 0.2),
    "digits": Lesson(_recipe("image-classification", VIT, 4e-3), 150, of_images, 0.8),
}


def made(name: str, folder: Path) -> Path:
    """The folder of a model below ``folder``, taught now if it is not there; only one process teaches it."""
    with _held(folder / "data" / f"{name}.lock"):
        if not (done := folder / "data" / f"{name}.done").exists():
            lesson = LESSONS[name]
            options: dict[str, Any] = {"output": folder / name, "recipe": lesson.recipe, "steps": lesson.steps}
            options |= lesson.files(data_of(name, folder))
            regard.train(**options, seed=1, threads=1, device="cpu")
            done.touch()
    return folder / name


def data_of(name: str, folder: Path) -> Path:
    """Where the files lie that a model learned from."""
    path = folder / "data" / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def logged(folder: Path, kind: str) -> list[dict[str, Any]]:
    """The lines of a kind in the log of a training."""
    lines = map(json.loads, (folder / "training" / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line["kind"] == kind]


@contextmanager
def _held(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
