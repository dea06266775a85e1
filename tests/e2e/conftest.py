"""A small world of files and a translator trained for a moment, as a person would: through the command line."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.cli import main
from tests.cli.conftest import Done, Run, regard

__all__ = ["Done", "Run", "regard"]

WORDS = {
    "the": "die", "cat": "Katze", "dog": "Hündin", "sees": "sieht", "hears": "hört", "small": "kleine", "old": "alte",
    "woman": "Frau", "loves": "liebt", "and": "und", "green": "grüne", "snake": "Schlange", "finds": "findet",
}  # fmt: skip


def settings(fields: str) -> list[str]:
    """Fields of a recipe as options of a command."""
    return [word for field in fields.split() for word in ("--set", field)]


TINY = settings(
    "model.d_model=16 model.d_ff=32 model.heads=2 model.encoder_layers=2 model.decoder_layers=1 text.vocabulary=320 "
    "data.validation=10 training.tokens=256 data.max_tokens=64 decoding.max_extra=5 training.product=bf16"
)
"""Small; its products are named, so that every run goes the same way."""


def corpus(folder: Path, lines: int = 200, seed: int = 1) -> None:
    """Two files ``a.en`` and ``a.de`` that translate each other word by word."""
    draw = random.Random(seed)
    sentences = [draw.choices(sorted(WORDS), k=draw.randint(3, 9)) for _ in range(lines)]
    folder.mkdir(exist_ok=True)
    (folder / "a.en").write_text("".join(" ".join(words) + "\n" for words in sentences))
    (folder / "a.de").write_text("".join(" ".join(WORDS[word] for word in words) + "\n" for words in sentences))


def _train_options(folder: Path, output: Path, steps: int = 6) -> list[object]:
    """The command that trains for a moment on the corpus in ``folder``."""
    files = ["--source", folder / "a.en", "--target", folder / "a.de"]
    length = ["--steps", steps, "--set", f"training.validate_every={steps}"]
    return ["train", *files, "--output", output, *length, *TINY]


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpus and a finished ``model``; copy it before changing it."""
    folder = tmp_path_factory.mktemp("trained")
    corpus(folder)
    assert main([str(word) for word in _train_options(folder, folder / "model")]) == 0
    return folder


@pytest.fixture
def world(trained: Path, tmp_path: Path) -> Path:
    """A copy of that folder to break."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def train_options() -> Callable[..., list[object]]:
    """The command that trains for a moment."""
    return _train_options
