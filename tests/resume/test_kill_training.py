"""``regard.train``, killed before any file operation, ends with the bits of a run that was not."""

import random
from functools import partial
from pathlib import Path

import pytest

from regard.training.checkpoints.output_folder import _set_aside, claim_output
from tests.resume.small_runs import SEEN, killed, killed_and_resumed, train

pytestmark = pytest.mark.usefixtures("counted")


def test_the_operations_are_those_of_the_whole_run(never):
    hidden = "tokenizer.source.json tokenizer.target.json recipe.toml resolved.toml model.safetensors card.md latest"
    for name in ("step-000004", *(f".{name}" for name in hidden.split())):
        assert any(f"rename {name}" in seen for seen in never[1]), name


@pytest.mark.parametrize("share", range(3))
def test_killed_somewhere(corpus, tmp_path, never, share):
    """One kill in each third of the run: while it begins, while it goes, and while it ends."""
    third = len(never[1]) // 3
    number = random.Random(f"third {share}").randrange(share * third, (share + 1) * third) + 1
    killed_and_resumed(partial(train, corpus), tmp_path / "model", number, never[0])


@pytest.mark.long(2)
@pytest.mark.parametrize("share", range(32))
def test_killed_anywhere(corpus, tmp_path, never, share):
    for number in range(1 + share, len(never[1]) + 1, 32):
        killed_and_resumed(partial(train, corpus), tmp_path / "model", number, never[0])


def earlier_run(output: Path):
    """A folder as a finished run leaves it, in outline."""
    (output / "training" / "checkpoints").mkdir(parents=True)
    for name in ("recipe.toml", "model.safetensors", "manifest.json", "training/metrics.jsonl"):
        (output / name).write_text(f"old {name}")


def test_killed_while_an_earlier_run_is_set_aside(tmp_path):
    """Nothing of it is lost, and the next ``--resume never`` starts."""
    earlier_run(tmp_path / "count")
    SEEN.clear()
    _set_aside(tmp_path / "count")
    operations = len(SEEN)
    assert operations >= 6
    for number in range(1, operations + 1):
        output = tmp_path / str(number)
        earlier_run(output)
        killed(partial(_set_aside, output), number)
        with claim_output(output, {}, "never"):
            assert sorted(path.name for path in (output / "training").iterdir()) == ["lock"]
        kept = {path.name: path.read_text() for path in output.rglob("*") if path.is_file() and path.name != "lock"}
        assert {"recipe.toml", "model.safetensors", "manifest.json", "metrics.jsonl"} == set(kept)
        assert all(text.startswith("old") for text in kept.values())
