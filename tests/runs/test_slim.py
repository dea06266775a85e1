"""A slim folder is the model and nothing else; nothing is removed that is needed, and a kill loses nothing."""

import fcntl
import shutil
from pathlib import Path
from typing import Any

import pytest

from regard.inspection.folders.folder import Folder
from regard.inspection.folders.models import Models
from regard.inspection.questions.answers import answer
from regard.runs.conversion import export_model
from regard.runs.slim import size_of, slim
from regard.system.errors import Damaged, RegardError
from regard.tasks.model_folder import load
from regard.training.checkpoints import checkpoint, manifest, resolved
from regard.training.checkpoints.output_folder import is_finished
from regard.training.progress import Progress
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, before, keep, put, translator
from tests.training.toy import Count, Fast, Killer, flip, in_child

KEPT = {"recipe.toml", "model.safetensors", "card.md", "manifest.json"}
FINAL = b"# A model\n\n## Scores on the validation data\n\n* BLEU 1.00\n"


def run(folder: Path, task: Any, finished: bool = True, steps: int = 20) -> Path:
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


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["mine", "thesis.txt", "datasets.zip"])
def test_files_of_others_in_the_training_are_not_removed(tmp_path: Path, name: str) -> None:
    folder = run(tmp_path / "m", translator())
    (folder / "training" / name).write_text("years")
    before_all = contents(folder)
    for dry_run in (True, False):
        with refused(RegardError, folder / "training", name):
            slim(folder, dry_run=dry_run)
    assert contents(folder) == before_all


def test_what_is_used_remains_to_the_bit_and_what_goes_is_said_before(tmp_path: Path) -> None:
    folder, told = run(tmp_path / "m", translator()), list[str]()
    (folder / "thesis.txt").write_text("years")
    wanted = {name: found for name, found in contents(folder).items() if "/" not in name and ".partial-" not in name}
    size, said = size_of(folder), translator().translate("The animal")

    def tell(text: str) -> None:
        assert (folder / "training" / "data").exists()
        told.append(text)

    gone = slim(folder, tell)
    assert contents(folder) == wanted
    assert {"thesis.txt", *KEPT} < wanted.keys()
    assert sum(gone.values()) == size - size_of(folder)
    parts = {f"training/{name}" for name in ("checkpoints", "data", "snapshots", "metrics.jsonl", "resolved.toml")}
    assert set(gone) == {*parts, "training.before-20260101T000000", ".card.md.partial-next"}
    assert [any(name in line for line in told) for name in gone] == [True] * len(gone)
    manifest.verify(folder, extra=True)
    assert load(folder, "cpu").translate("The animal") == said
    assert slim(folder) == {}


def test_a_dry_run_says_the_same_and_changes_nothing(tmp_path: Path) -> None:
    folder = run(tmp_path / "m", translator())
    before, told = contents(folder), list[str]()
    said = slim(folder, told.append, dry_run=True)
    assert contents(folder) == before
    assert len(told) == len(said) == len(slim(folder))


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", EVERY)
def test_every_slim_model_is_explored(tmp_path: Path, name: str) -> None:
    folder = run(tmp_path / name, EVERY[name]())
    asked = before(name)
    wanted = answer(Models([folder]), "look", asked)
    slim(folder)
    state = Folder(folder).state(0)
    assert (state["ready"], state["course"], state["running"], state["snapshots"]) == (True, False, False, [])
    assert answer(Models([folder]), "look", asked)[-1000:] == wanted[-1000:]


def test_a_slim_model_is_exported(tmp_path: Path) -> None:
    folder = run(tmp_path / "m", EVERY["filler"]())
    slim(folder)
    export_model(folder, tmp_path / "out")
    assert (tmp_path / "out" / "model.safetensors").is_file()


def test_an_unfinished_training_is_refused(tmp_path: Path) -> None:
    open_, longer, unscored = run(tmp_path / "open", translator(), False), tmp_path / "longer", tmp_path / "unscored"
    run(longer, translator(), steps=30)
    manifest.replace(run(unscored, translator()), {"card.md": [FINAL.replace(b"* ", b"")]}, Fast())
    for folder in (open_, longer, unscored):
        before = contents(folder)
        for dry in (True, False):
            with refused(RegardError, folder):
                slim(folder, dry_run=dry)
        assert contents(folder) == before


def test_a_run_at_work_is_refused(tmp_path: Path) -> None:
    folder = run(tmp_path / "m", translator())
    before = contents(folder)
    with open(folder / "training" / "lock", "a+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with refused(RegardError, folder):
            slim(folder)
    assert contents(folder) == before


def test_what_does_not_load_keeps_its_training(tmp_path: Path) -> None:
    folder = run(tmp_path / "m", translator())
    flip(folder / "model.safetensors")
    before = contents(folder)
    with refused(Damaged, "model.safetensors"):
        slim(folder)
    with refused(RegardError, tmp_path / "absent"):
        slim(tmp_path / "absent")
    assert contents(folder) == before


def test_a_run_without_checkpoints_is_finished_if_it_has_its_scores(tmp_path: Path) -> None:
    folder = run(tmp_path / "m", translator())
    shutil.rmtree(folder / "training" / "checkpoints")
    assert is_finished(folder / "training")
    slim(folder)
    assert not (folder / "training").exists()


def test_a_link_to_a_training_goes_and_what_it_names_stays(tmp_path: Path) -> None:
    folder = run(tmp_path / "m", translator())
    (folder / "training").rename(tmp_path / "far")
    (folder / "training").symlink_to(tmp_path / "far")
    slim(folder)
    assert not (folder / "training").is_symlink()
    assert (tmp_path / "far" / "metrics.jsonl").exists()


@pytest.mark.one_of(5, minutes=0.1)
@pytest.mark.parametrize("share", range(5))
def test_killed_before_any_operation_the_model_loads_and_the_next_call_ends_it(tmp_path: Path, share: int) -> None:
    made = run(tmp_path / "made", translator())
    shutil.copy(made / "manifest.json", made / "manifest.next.json")  # replacing was cut short, too
    model = {name for name in contents(made) if "/" not in name and "partial" not in name and "next" not in name}
    files = Count()
    slim(shutil.copytree(made, tmp_path / "never"), files=files)
    wanted = contents(tmp_path / "never")
    assert wanted.keys() == model
    renamed = [number for number, (what, _) in enumerate(files.operations, 1) if what == "rename"]
    for number in range(1 + share, files.number + 1, 5):
        folder = shutil.copytree(made, tmp_path / f"killed-{number}")
        assert in_child(lambda number=number, folder=folder: slim(folder, files=Killer(number))) == 137
        manifest.verify(folder, extra=True)
        whole = (folder / "training").exists()
        assert whole or number > renamed[0]
        if whole:  # then it is not by half
            names = {name for name in contents(made) if name.startswith("training/")}
            assert names <= contents(folder).keys()
        slim(folder)
        assert contents(folder) == wanted, number
        assert load(folder, "cpu").name == "translation"
        shutil.rmtree(folder)


def test_a_folder_with_a_model_inside_is_not_that_model(tmp_path: Path) -> None:
    folder = run(tmp_path / "model", translator())
    with refused(RegardError, tmp_path, str(folder)):
        slim(tmp_path)
    assert (folder / "training").is_dir()
