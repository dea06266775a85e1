"""The mean of checkpoints is their mean, verified, and never written over anything."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.models.store import weights
from regard.runs.average import average, select_checkpoints
from regard.system.errors import Damaged, RegardError, UsageError
from regard.tasks.model_folder import load_recipe_and_assets
from regard.training.checkpoints.files import Files
from regard.training.checkpoints.provenance import Provenance, RunInputs, record
from tests.refusals import refused
from tests.tasks.small_tasks import keep, put, translator
from tests.training.toy import flip


def run(folder: Path, steps: tuple[int, ...] = (10, 20, 30), **model: Any) -> dict[int, dict[str, torch.Tensor]]:
    """A run's folder with checkpoints of random weights; gives those weights by step."""
    put(folder, translator(**model), weights=False)
    tasks = {step: translator(step, **model) for step in steps}
    for step, task in tasks.items():
        keep(folder, task, step, "checkpoints")
    return {step: weights(task.model) for step, task in tasks.items()}


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_the_mean_is_the_mean(tmp_path: Path, norm: str) -> None:
    made = run(tmp_path / "model", norm=norm, decoder_norm=norm)
    task = average(tmp_path / "model", tmp_path / "mean", last=2)
    for name, weight in weights(task.model).items():
        expected = sum(made[step][name].double() for step in (20, 30)) / 2
        assert torch.equal(weight, expected.float()), name
    assert task.translate("") == ""
    assert "step-000020" in (tmp_path / "mean" / "card.md").read_text()


def test_the_card_says_of_its_run_what_the_run_says(tmp_path: Path) -> None:
    run(tmp_path / "model")
    (tmp_path / "a.en").write_text("the cat")
    inputs = RunInputs("regard train --output model", (("a.en", tmp_path / "a.en"),), "CC BY 4.0")
    record(tmp_path / "model" / "training", inputs, Provenance(), {}, Files())
    for _ in range(2):  # the same command may be run again
        average(tmp_path / "model", tmp_path / "mean")
    card = (tmp_path / "mean" / "card.md").read_text()
    for part in ("a.en", "CC BY 4.0", "regard train --output model", sha256(b"the cat").hexdigest()):
        assert part in card


def test_which_confidence_is_usual_was_fitted_to_other_weights(tmp_path: Path) -> None:
    run(tmp_path / "model")
    task = translator()
    task.assets = replace(task.assets, doubted_below=0.5)
    put(tmp_path / "model", task, weights=False)
    assert load_recipe_and_assets(tmp_path / "model")[1].doubted_below == 0.5
    assert average(tmp_path / "model", tmp_path / "mean").assets.doubted_below is None


def test_all_that_are_kept_or_those_named(tmp_path: Path) -> None:
    made = run(tmp_path / "model")
    folder = tmp_path / "model" / "training" / "checkpoints"
    assert select_checkpoints(tmp_path / "model") == [folder / f"step-0000{step}" for step in (10, 20, 30)]
    files = [folder / "step-000010", folder / "step-000010" / "weights.safetensors"]
    task = average(tmp_path / "model", tmp_path / "mean", checkpoints=files)
    assert all(torch.equal(weight, made[10][name]) for name, weight in weights(task.model).items())


def test_it_writes_over_nothing(tmp_path: Path) -> None:
    run(tmp_path / "model")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("years")
    for place in ("taken", "taken/thesis.txt", "model"):
        with refused(RegardError, tmp_path / place):
            average(tmp_path / "model", tmp_path / place)
    assert (tmp_path / "taken" / "thesis.txt").read_text() == "years"


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path / "model")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Files, "rename", full)
        with refused(RegardError, tmp_path / "mean"):
            average(tmp_path / "model", tmp_path / "mean")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    average(tmp_path / "model", tmp_path / "mean")


def test_it_says_what_is_wrong(tmp_path: Path) -> None:
    run(tmp_path / "model")
    with refused(UsageError, "training", "5", "3"):
        average(tmp_path / "model", tmp_path / "mean", last=5)
    with refused(UsageError, "--last", "1"):
        average(tmp_path / "model", tmp_path / "mean", last=0)
    with refused(UsageError, "absent"):
        average(tmp_path / "model", tmp_path / "mean", checkpoints=[tmp_path / "absent"])
    with refused(Damaged, "manifest.json"):
        average(tmp_path / "model", tmp_path / "mean", checkpoints=[tmp_path])
    (tmp_path / "bare").mkdir()
    with refused(RegardError, "bare"):
        average(tmp_path / "bare", tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def test_a_flipped_bit_and_another_model_are_noticed(tmp_path: Path) -> None:
    run(tmp_path / "model")
    path = tmp_path / "model" / "training" / "checkpoints" / "step-000020" / "weights.safetensors"
    flip(path)
    with refused(Damaged, "weights.safetensors"):
        average(tmp_path / "model", tmp_path / "mean")
    run(tmp_path / "other", (10,), d_ff=32)
    other = tmp_path / "other" / "training" / "checkpoints" / "step-000010"
    with refused(RegardError, "step-000010"):
        average(tmp_path / "model", tmp_path / "mean", checkpoints=[other])
    good = tmp_path / "model" / "training" / "checkpoints" / "step-000010"
    with refused(RegardError, "step-000010"):
        average(tmp_path / "model", tmp_path / "mean", checkpoints=[good, other])
    assert not (tmp_path / "mean").exists()
