"""World: any number of processes makes the same weights, of every family and in every way to train."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import regard
from tests.scripts import load_script
from tests.training.toy import whole

SCRIPT = Path(__file__).parents[2] / "scripts" / "same_bits.py"
SHARDS, STEPS = 4, 6


def script() -> Any:
    """The runs of ``scripts/same_bits.py``: every task, family and way to train."""
    return load_script("scripts/same_bits.py")


RUNS = script()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    RUNS.write_data(folder)
    return folder


def train(name: str, data: Path, output: Path, processes: int) -> dict[str, bytes]:
    """The weights of a short run in so many processes."""
    run = RUNS.RUNS[name]
    words = run.files.split()
    files = {word[2:]: data / path for word, path in zip(words[::2], words[1::2], strict=True)}
    recipe = output.with_suffix(".toml")
    recipe.write_text(run.recipe)
    settings = [f"training.{field}={STEPS}" for field in ("steps", "validate_every", "save_every")]
    settings += [f"training.shards={SHARDS}", f"training.tokens={SHARDS * run.tokens}"]
    regard.train(
        **files, output=output, task=run.task, recipe=recipe, settings=settings, processes=processes, quiet=True
    )
    return whole(output / "model.safetensors")


@pytest.fixture(scope="module")
def alone(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, bytes]]:
    """The weights of a run in one process, made once."""
    return cache(lambda name: train(name, data, tmp_path_factory.mktemp("alone") / name, 1))


@pytest.mark.long(0.4)
@pytest.mark.parametrize("processes", [2, 4])
@pytest.mark.parametrize("name", ["batch-norm", *(name for name in RUNS.RUNS if name != "batch-norm")])
def test_any_number_of_processes_makes_the_same_weights(
    name: str, processes: int, alone: Callable[[str], dict[str, bytes]], data: Path, tmp_path: Path
) -> None:
    assert train(name, data, tmp_path / "several", processes) == alone(name)
