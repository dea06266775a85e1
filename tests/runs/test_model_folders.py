"""The mean of checkpoints is their mean, verified; a slim folder is the model alone, and a kill loses nothing."""

import fcntl
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
import torch

from regard.inspection.folders.folder import Folder
from regard.inspection.folders.models import Models
from regard.inspection.questions.answers import answer
from regard.models.store import weights
from regard.runs.model_folders import average, select_checkpoints, size_of, slim
from regard.system.errors import Damaged, RegardError, UsageError
from regard.tasks.model_folder import load, load_recipe_and_assets
from regard.training.checkpoints import checkpoint, manifest, resolved
from regard.training.checkpoints.files import Files
from regard.training.checkpoints.output_folder import is_finished
from regard.training.checkpoints.provenance import Provenance, RunInputs, record
from regard.training.progress import Progress
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, before, keep, put, translator
from tests.training.toy import Count, Fast, Killer, flip, in_child

KEPT = {"recipe.toml", "model.safetensors", "card.md", "manifest.json"}
FINAL = b"# A model\n\n## Scores on the validation data\n\n* BLEU 1.00\n"


def run(folder, steps=(10, 20, 30), **model):
    """A run's folder with checkpoints of random weights; gives those weights by step."""
    put(folder, translator(**model), weights=False)
    tasks = {step: translator(step, **model) for step in steps}
    for step, task in tasks.items():
        keep(folder, task, step, "checkpoints")
    return {step: weights(task.model) for step, task in tasks.items()}


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_the_mean_is_the_mean(tmp_path, norm):
    made = run(tmp_path / "model", norm=norm, decoder_norm=norm)
    task = average(tmp_path / "model", tmp_path / "mean", last=2)
    for name, weight in weights(task.model).items():
        expected = sum(made[step][name].double() for step in (20, 30)) / 2
        assert torch.equal(weight, expected.float()), name
    assert task.translate("") == ""
    assert "step-000020" in (tmp_path / "mean" / "card.md").read_text()


def test_the_card_says_of_its_run_what_the_run_says(tmp_path):
    run(tmp_path / "model")
    (tmp_path / "a.en").write_text("the cat")
    inputs = RunInputs("regard train --output model", (("a.en", tmp_path / "a.en"),), "CC BY 4.0")
    record(tmp_path / "model" / "training", inputs, Provenance(), {}, Files())
    for _ in range(2):  # the same command may be run again
        average(tmp_path / "model", tmp_path / "mean")
    card = (tmp_path / "mean" / "card.md").read_text()
    parts = ("a.en", "CC BY 4.0", "regard train --output model", sha256(b"the cat").hexdigest())
    assert [part for part in parts if part not in card] == []


def test_which_confidence_is_usual_was_fitted_to_other_weights(tmp_path):
    run(tmp_path / "model")
    task = translator()
    task.assets = replace(task.assets, doubted_below=0.5)
    put(tmp_path / "model", task, weights=False)
    assert load_recipe_and_assets(tmp_path / "model")[1].doubted_below == 0.5
    assert average(tmp_path / "model", tmp_path / "mean").assets.doubted_below is None


def test_all_that_are_kept_or_those_named(tmp_path):
    made = run(tmp_path / "model")
    folder = tmp_path / "model" / "training" / "checkpoints"
    assert select_checkpoints(tmp_path / "model") == [folder / f"step-0000{step}" for step in (10, 20, 30)]
    files = [folder / "step-000010", folder / "step-000010" / "weights.safetensors"]
    task = average(tmp_path / "model", tmp_path / "mean", checkpoints=files)
    assert all(torch.equal(weight, made[10][name]) for name, weight in weights(task.model).items())


def test_a_mean_is_written_over_nothing(tmp_path):
    run(tmp_path / "model")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("years")
    for place in ("taken", "taken/thesis.txt", "model"):
        with refused(RegardError, tmp_path / place):
            average(tmp_path / "model", tmp_path / place)
    assert (tmp_path / "taken" / "thesis.txt").read_text() == "years"


def test_what_cannot_be_averaged_is_said(tmp_path):
    run(tmp_path / "model")
    run(tmp_path / "other", (10,), d_ff=32)
    (tmp_path / "bare").mkdir()
    good, odd = (tmp_path / name / "training" / "checkpoints" / "step-000010" for name in ("model", "other"))
    for given, error, where, *holds in (
        ({"last": 5}, UsageError, "training", "5", "3"),
        ({"last": 0}, UsageError, "last", "1"),
        ({"checkpoints": [tmp_path / "absent"]}, UsageError, "absent"),
        ({"checkpoints": [tmp_path]}, Damaged, "manifest.json"),
        ({"checkpoints": [odd]}, RegardError, "step-000010"),
        ({"checkpoints": [good, odd]}, RegardError, "step-000010"),
    ):
        with refused(error, where, *holds):
            average(tmp_path / "model", tmp_path / "mean", **given)
    with refused(RegardError, "bare"):
        average(tmp_path / "bare", tmp_path / "mean")
    flip(good.with_name("step-000020") / "weights.safetensors")
    with refused(Damaged, "weights.safetensors"):
        average(tmp_path / "model", tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def made(folder, task, finished=True, steps=20):
    """A model folder with its run: two checkpoints, a snapshot, prepared data, a log, and an earlier run."""
    put(folder, task)
    manifest.replace(folder, {"card.md": [FINAL]}, Fast())
    training = folder / "training"
    keep(folder, task, 4)
    (training / "checkpoints").mkdir()
    for step in (10, 20):
        state = Progress(step=step, finished=finished and step == 20).dump()
        checkpoint.write_folder(training / "checkpoints" / checkpoint.name(step), {"state.json": [state]}, Fast())
    resolved.write(training, {"chosen.steps": steps}, Fast())
    (training / "data").mkdir()
    for name in ("data/ids.bin", "metrics.jsonl", "lock"):
        (training / name).write_bytes(b"" if name == "lock" else b"x" * 1000)
    shutil.copytree(training, folder / "training.before-20260101T000000")
    (folder / ".card.md.partial-next").write_bytes(b"half")
    return folder


@pytest.fixture
def folder(tmp_path):
    return made(tmp_path / "model", translator())


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def kept(folder, error, where, *holds):
    """It is refused, whether something would be removed or not, and all is as it was."""
    before = contents(folder)
    for dry_run in (True, False):
        with refused(error, where, *holds):
            slim(folder, dry_run=dry_run)
    assert contents(folder) == before


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", ["mine", "thesis.txt", "datasets.zip"])
def test_files_of_others_in_the_training_are_not_removed(folder, name):
    (folder / "training" / name).write_text("years")
    kept(folder, RegardError, folder / "training", name)


def test_what_is_used_remains_to_the_bit_and_what_goes_is_said_before(folder):
    (folder / "thesis.txt").write_text("years")
    before, told = contents(folder), list[str]()
    wanted = {name: found for name, found in before.items() if "/" not in name and ".partial-" not in name}
    size, said = size_of(folder), translator().translate("The animal")

    def tell(text):
        assert (folder / "training" / "data").exists()
        told.append(text)

    would_go = slim(folder, tell, dry_run=True)
    assert contents(folder) == before
    assert len(told) == len(would_go)
    told.clear()
    gone = slim(folder, tell)
    assert gone == would_go
    assert contents(folder) == wanted
    assert {"thesis.txt", *KEPT} < wanted.keys()
    assert sum(gone.values()) == size - size_of(folder)
    parts = {f"training/{name}" for name in ("checkpoints", "data", "snapshots", "metrics.jsonl", "resolved.toml")}
    assert set(gone) == {*parts, "training.before-20260101T000000", ".card.md.partial-next"}
    assert [any(name in line for line in told) for name in gone] == [True] * len(gone)
    manifest.verify(folder, extra=True)
    assert load(folder, "cpu").translate("The animal") == said
    assert slim(folder) == {}


@pytest.mark.one_of(12)
@pytest.mark.parametrize("name", EVERY)
def test_every_slim_model_is_explored(tmp_path, name):
    folder, asked = made(tmp_path / name, EVERY[name]()), before(name)
    wanted = answer(Models([folder]), "look", asked)
    slim(folder)
    state = Folder(folder).state(0)
    assert (state["ready"], state["course"], state["running"], state["snapshots"]) == (True, False, False, [])
    assert answer(Models([folder]), "look", asked)[-1000:] == wanted[-1000:]


def test_an_unfinished_training_or_one_at_work_is_refused(tmp_path, folder):
    unscored = made(tmp_path / "unscored", translator())
    manifest.replace(unscored, {"card.md": [FINAL.replace(b"* ", b"")]}, Fast())
    unfinished, longer = ({"finished": False}, {"steps": 30})
    others = [made(tmp_path / str(n), translator(), **given) for n, given in enumerate((unfinished, longer))]
    with open(folder / "training" / "lock", "a+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for one in (unscored, *others, folder):
            kept(one, RegardError, one)


def test_what_does_not_load_keeps_its_training(tmp_path, folder):
    flip(folder / "model.safetensors")
    kept(folder, Damaged, "model.safetensors")
    with refused(RegardError, tmp_path / "absent"):
        slim(tmp_path / "absent")


def test_a_run_without_checkpoints_is_finished_if_it_has_its_scores(folder):
    shutil.rmtree(folder / "training" / "checkpoints")
    assert is_finished(folder / "training")
    slim(folder)
    assert not (folder / "training").exists()


def test_a_link_to_a_training_goes_and_what_it_names_stays(tmp_path, folder):
    (folder / "training").rename(tmp_path / "far")
    (folder / "training").symlink_to(tmp_path / "far")
    slim(folder)
    assert not (folder / "training").is_symlink()
    assert (tmp_path / "far" / "metrics.jsonl").exists()


@pytest.mark.one_of(15, minutes=0.1)
@pytest.mark.parametrize("share", range(15))
def test_killed_before_any_operation_the_model_loads_and_the_next_call_ends_it(tmp_path, folder, share):
    shutil.copy(folder / "manifest.json", folder / "manifest.next.json")  # replacing was cut short, too
    model = {name for name in contents(folder) if "/" not in name and "partial" not in name and "next" not in name}
    files = Count()
    slim(shutil.copytree(folder, tmp_path / "never"), files=files)
    wanted = contents(tmp_path / "never")
    assert wanted.keys() == model
    renamed = [number for number, (what, _) in enumerate(files.operations, 1) if what == "rename"]
    for number in range(1 + share, files.number + 1, 15):
        copy = Path(shutil.copytree(folder, tmp_path / f"killed-{number}"))
        assert in_child(lambda number=number, copy=copy: slim(copy, files=Killer(number))) == 137
        manifest.verify(copy, extra=True)
        whole = (copy / "training").exists()
        assert whole or number > renamed[0]
        if whole:  # then it is not by half
            assert {name for name in contents(folder) if name.startswith("training/")} <= contents(copy).keys()
        slim(copy)
        assert contents(copy) == wanted, number
        assert load(copy, "cpu").name == "translation"
        shutil.rmtree(copy)


def test_a_folder_with_a_model_inside_is_not_that_model(tmp_path, folder):
    with refused(RegardError, tmp_path, str(folder)):
        slim(tmp_path)
    assert (folder / "training").is_dir()
