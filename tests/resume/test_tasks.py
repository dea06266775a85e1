"""Every task and family: stopped and begun again is never stopped, to the bit."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from regard.errors import Stopped
from regard.tasks.train import train
from regard.training.log import Quiet

SMALL = [
    "model.d_model=16",
    "model.dropout=0.1",
    "training.tokens=128",
    "training.validate_every=4",
    "text.vocabulary=300",
]
LAYERED = ["model.d_ff=32", "model.heads=2"]
ONE = [*LAYERED, "model.layers=1", "data.max_tokens=48"]
TWO = ["model.encoder_layers=1", "model.decoder_layers=1", "data.max_tokens=48"]
CASES: dict[str, tuple[str, str, list[str]]] = {
    "recurrent": ("translation", "pairs.tsv", ["model.family=rnn", *TWO]),
    "feeding": ("translation", "pairs.tsv", ["model.family=rnn", "model.input_feeding=true", *TWO]),
    "relative": ("translation", "pairs.tsv", ["model.positions=relative", "model.norm=rms", *LAYERED, *TWO]),
    "batch norm": (
        "translation",
        "pairs.tsv",
        ["model.norm=batch", "model.decoder_norm=layer", *LAYERED, *TWO],
    ),
    "classes": ("classification", "labels.tsv", [*ONE, "data.word_dropout=0.2", "training.ema=0.9"]),
    "recurrent classes": (
        "classification",
        "labels.tsv",
        ["model.family=rnn-encoder", "model.pool=attention", "data.max_tokens=48", "classification.adversarial=0.5"],
    ),
    "recurrent tags": (
        "tagging",
        "tags.conll",
        ["model.family=rnn-encoder", "model.cell=lstm", "data.max_tokens=48", "tagging.crf=true"],
    ),
    "tags": ("tagging", "tags.conll", ONE),
    "tag chain": ("tagging", "tags.conll", [*ONE, "tagging.crf=true"]),
    "language model": ("language-model", "text.txt", [*ONE, "text.units=characters"]),
    "masked words": ("masked-lm", "text.txt", ONE),
    "missing spans": ("span-corruption", "text.txt", [*LAYERED, *TWO, "text.vocabulary=400"]),
    "images": ("image-classification", "images.csv", [*ONE, "images.shift=1"]),
}
STEPS = 10


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A little of every kind of data."""
    folder, draw = tmp_path_factory.mktemp("tasks"), random.Random(5)
    words = ["ape", "bear", "cat", "dog", "elk", "fox", "gnu", "hen"]
    lines = [" ".join(draw.choices(words, k=draw.randint(2, 7))) for _ in range(160)]
    (folder / "pairs.tsv").write_text(
        "".join(f"{n} {line}\t{' '.join(line.split()[::-1])} {n}\n" for n, line in enumerate(lines))
    )
    (folder / "labels.tsv").write_text("".join(f"{n} {line}\t{line.split()[0]}\n" for n, line in enumerate(lines)))
    tagged = ("".join(f"{word}\t{'B-X' if word < 'd' else 'O'}\n" for word in line.split()) for line in lines)
    (folder / "tags.conll").write_text("\n".join(tagged))
    (folder / "text.txt").write_text("\n\n".join(lines * 3))
    rows = [[draw.randint(0, 16) for _ in range(16)] for _ in range(120)]
    (folder / "images.csv").write_text("".join(f"{','.join(map(str, row))},{int(sum(row) > 128)}\n" for row in rows))
    return folder


class StopAt(Quiet):
    """Asks to stop behind a step, once."""

    def __init__(self, step: int) -> None:
        self.wanted, self.reached = step, False

    def on_step(self, metrics: Any) -> None:
        self.reached |= metrics.step >= self.wanted

    def __call__(self) -> bool:
        return self.reached


def made(files: Path, case: str, output: Path, **more: Any) -> None:
    task, name, settings = CASES[case]
    data = {"pairs": files / name} if task == "translation" else {"task": task, "train": files / name}
    vocabulary = [one for one in SMALL if not (one.startswith("text.") and task == "image-classification")]
    chosen = {"settings": [*vocabulary, *settings], "steps": STEPS, "seed": 3, "threads": 1, "device": "cpu"}
    train(**data, output=output, despite_check=True, **chosen, **more)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.one_of(3, minutes=0.1)
def test_stopped_and_begun_again_is_never_stopped(files: Path, tmp_path: Path, case: str) -> None:
    made(files, case, tmp_path / "whole")
    for step in (3, 7):
        stop = StopAt(step)
        with pytest.raises(Stopped):
            made(files, case, tmp_path / "stopped", reporter=stop, should_stop=stop)
    made(files, case, tmp_path / "stopped")
    for name in ("model.safetensors", "card.md", f"training/checkpoints/step-{STEPS:06d}/optimiser.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "stopped" / name).read_bytes(), name
