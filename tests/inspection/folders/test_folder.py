"""State of model folders and of the runs in them, read without weights."""

import fcntl
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from regard.inspection.folders import folder as module
from regard.inspection.folders.folder import Folder, count_parameters, is_preparing, is_running, snapshots
from regard.inspection.folders.models import Models
from regard.inspection.folders.training_curves import LOG
from regard.system.errors import RegardError
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, LABELS, classifier, filler, keep, log, put, translator

WRITES = {
    "translator": ("text", "text", ["source", "target"], ["encoder", "decoder"]),
    "recurrent": ("text", "text", ["source", "target"], []),
    "pairs": ("text", "classes", ["source"], ["encoder"]),
    "classifier": ("text", "classes", ["source"], ["encoder"]),
    "reader": ("text", "classes", ["source"], []),
    "tagger": ("text", "tags", ["source"], ["encoder"]),
    "filler": ("gapped", "words", ["source"], ["encoder"]),
    "speaker": ("text", "continuation", ["source"], ["decoder"]),
    "spanner": ("text", "text", ["source", "target"], ["encoder", "decoder"]),
    "asker": ("text", "text", ["source", "target"], ["encoder", "decoder"]),
    "viewer": ("image", "classes", [], ["encoder"]),
    "encoder": ("text", "nothing", ["source"], ["encoder"]),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / LOG).parent.mkdir()
    (tmp_path / LOG).write_text("{}\n")
    return tmp_path


@contextmanager
def at_work(folder: Path) -> Iterator[None]:
    """A training that has claimed a folder; its lock stays."""
    (folder / "training").mkdir(parents=True, exist_ok=True)
    with (folder / "training" / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def aged(folder: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(folder / LOG, (then, then))


def test_without_a_lock_a_young_log_is_being_written(folder: Path) -> None:
    assert is_running(folder)
    aged(folder, module.FRESH + 5)
    assert not is_running(folder)
    assert not is_running(folder / "elsewhere")


def test_the_lock_knows_better(folder: Path) -> None:
    with at_work(folder):
        aged(folder, module.FRESH + 5)  # a long validation
        assert is_running(folder)
        aged(folder, module.STALE + 5)
        assert not is_running(folder)
    aged(folder, 0)
    assert not is_running(folder)  # it wrote a moment ago, and is done
    with at_work(folder):  # looking kept no training from its lock
        assert is_running(folder)


def test_a_training_without_a_log_is_at_work_while_it_holds_the_lock(folder: Path) -> None:
    (folder / LOG).unlink()
    assert not is_running(folder)
    assert is_preparing(folder)  # there is no lock to ask, and it began lately
    (folder / "training" / "checkpoints").mkdir()
    assert not is_preparing(folder)
    with at_work(folder):
        assert is_running(folder)
        assert is_preparing(folder)
    assert not is_running(folder)
    assert not is_preparing(folder)
    assert not is_preparing(folder / "elsewhere")


def test_kept_weights_by_step(folder: Path) -> None:
    assert snapshots(folder) == {}
    task = filler()
    places = [keep(folder, task, step) for step in (1_000_000, 20, 3_000)]
    (folder / "training" / "snapshots" / "step-000040.partial-1").mkdir()
    found = snapshots(folder)
    assert list(found.items()) == [("step 20", places[1]), ("step 3,000", places[2]), ("step 1,000,000", places[0])]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Folder]]:
    made = tmp_path_factory.mktemp("folders")
    return {name: (task := make(), Folder(put(made / name, task))) for name, make in EVERY.items()}


@pytest.mark.parametrize("name", EVERY)
def test_every_model_is_told(folders: dict[str, tuple[Any, Folder]], name: str) -> None:
    task, folder = folders[name]
    found = folder.state(3)
    section = task.recipe.model
    assert (found["number"], found["name"], found["folder"]) == (3, name, str(folder.path))
    assert (found["task"], found["family"], found["d_model"]) == (task.name, section.family, section.d_model)
    assert (found["reads"], found["writes"], found["sides"], found["stacks"]) == WRITES[name]
    assert found["kinds"] == {kind: list(sizes) for kind, sizes in section.attention.items()}
    assert found["parameters"] == sum(weight.numel() for weight in task.model.parameters())
    assert (found["ready"], found["why"], found["running"], found["course"]) == (True, None, False, False)
    assert found["snapshots"] == []


def test_details(folders: dict[str, tuple[Any, Folder]]) -> None:
    told = {name: folder.state(0) for name, (_, folder) in folders.items()}
    image = {"height": 6, "width": 4, "channels": 1, "patch": 2, "largest": 9.0}
    wanted: dict[str, dict[str, Any]] = {
        "translator": {"divisor": 2.0, "masked": ["decoder"], "positions": True, "image": None},
        "spanner": {"divisor": 1, "positions": True},
        "speaker": {"masked": ["decoder"], "max_tokens": 40, "labels": None},
        "recurrent": {"masked": [], "positions": False},
        "classifier": {"masked": [], "labels": list(LABELS)},
        "tagger": {"labels": list(LABELS)},
        "viewer": {"labels": list(LABELS), "max_tokens": 7, "image": image},
    }
    for name, values in wanted.items():
        assert {key: told[name][key] for key in values} == values


def test_a_training_that_has_not_validated(tmp_path: Path) -> None:
    folder = Folder(put(tmp_path, translator(), weights=False))
    found = folder.state(0)
    assert (found["ready"], found["why"], found["parameters"]) == (False, module.STOPPED, None)
    log(tmp_path, [{"kind": "start", "step": 0, "steps": 5}])
    with at_work(tmp_path):
        found = folder.state(0)
        assert (found["ready"], found["why"], found["running"], found["course"]) == (False, module.WAITING, True, True)
        keep(tmp_path, translator(), 20)
        assert folder.state(0)["snapshots"] == ["step 20"]
        put(tmp_path, translator())
        found = folder.state(0)
    assert (found["ready"], found["why"], found["running"]) == (True, None, True)
    assert found["parameters"] > 0


def test_what_is_no_model_folder(tmp_path: Path) -> None:
    for where in (tmp_path / "absent", tmp_path):
        with refused(RegardError, where):
            Folder(where)
    put(tmp_path, translator())
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(RegardError):
        Folder(tmp_path)


def test_a_training_that_has_just_begun_is_told_and_becomes_a_model(tmp_path: Path) -> None:
    task = classifier()
    keys = Folder(put(tmp_path / "a", task)).state(0).keys()
    with at_work(tmp_path / "b" / "model"):
        folder = Folder(tmp_path / "b")
        found = folder.state(5)
        assert found.keys() == keys
        assert (found["number"], found["name"], found["ready"], found["why"]) == (5, "b", False, module.PREPARING)
        assert (found["running"], found["course"], found["kinds"], found["examples"]) == (True, False, {}, [])
        with refused(RegardError, "b"):
            assert folder.recipe
        put(tmp_path / "b" / "model", task, weights=False)
        found = folder.state(5)
        assert (found["ready"], found["why"], found["task"]) == (False, module.WAITING, "classification")
        assert folder.recipe == task.recipe
        put(tmp_path / "b" / "model", task)
        assert folder.state(5)["ready"]


@pytest.mark.parametrize("left", [None, "model.safetensors", "checkpoints"])
def test_without_a_recipe_a_training_that_stopped_is_no_model(tmp_path: Path, left: str | None) -> None:
    """Nor is one that was lost waited for."""
    with at_work(tmp_path):
        if left:
            put(tmp_path, translator(), weights=left == "model.safetensors")
        folder = Folder(tmp_path)
    if left:
        (tmp_path / "recipe.toml").unlink()
    if left == "checkpoints":
        (tmp_path / "training" / left).mkdir()
    assert (folder.state(0)["ready"], folder.state(0)["why"]) == (False, module.LOST if left else module.UNBEGUN)
    with refused(RegardError, tmp_path):
        Folder(tmp_path)


def test_labels_that_were_lost_are_said_before_anything_is_asked(tmp_path: Path) -> None:
    folder = Folder(put(tmp_path, classifier()))
    labels = (tmp_path / "labels.json").read_bytes()
    (tmp_path / "labels.json").unlink()
    for one in (folder, Folder(tmp_path)):
        found = one.state(0)
        assert (found["ready"], found["why"], found["labels"]) == (False, module.UNNAMED, [])
    (tmp_path / "labels.json").write_bytes(labels)
    assert (folder.state(0)["ready"], folder.state(0)["labels"]) == (True, list(LABELS))


def test_a_state_reads_nothing_again_that_has_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page asks every two seconds."""
    folder, read = Folder(put(tmp_path, classifier())), list[str]()
    log(tmp_path, [{"kind": "start", "step": 0, "steps": 5}])
    for name in ("recipe_values", "model_class", "examples", "count_parameters"):
        original = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, name=name, do=original: (read.append(name), do(*given))[1])
    states = [folder.state(0) for _ in range(3)]
    assert states[0] == states[1] == states[2]
    assert sorted(read) == ["count_parameters", "examples"]
    log(tmp_path, [{"kind": "sample", "step": 1, "source": "a cat", "reference": "", "hypothesis": ""}])
    assert folder.state(0)["examples"] == ["a cat"]
    put(tmp_path, classifier(d_model=24))
    assert folder.state(0)["d_model"] == 24
    assert sorted(read) == [*["count_parameters"] * 2, "examples", "examples", "model_class", "recipe_values"]


def test_two_threads_open_a_folder_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one reads is whole before the other uses it."""
    folder, inside, most = Folder(put(tmp_path, translator())), [0], [0]
    original = module.model_class

    def slow(*given: Any) -> Any:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.05)
        inside[0] -= 1
        return original(*given)

    monkeypatch.setattr(module, "model_class", slow)
    put(tmp_path, translator(d_model=24))
    threads = [threading.Thread(target=folder.state, args=(0,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert folder.state(0)["d_model"] == 24


def test_a_folder_that_goes_away_is_told_as_it_is(tmp_path: Path) -> None:
    folder = Folder(put(tmp_path / "a", translator()))
    shutil.rmtree(tmp_path / "a")
    found = folder.state(0)
    assert (found["ready"], found["why"]) == (False, "this folder is not there any more")
    (tmp_path / "a").symlink_to("a")
    assert not folder.state(0)["ready"]
    with refused(RegardError, tmp_path / "a"):  # links in a circle are a sentence
        Folder(tmp_path / "a")


@pytest.mark.parametrize("name", ["snapshots", "is_running", "examples", "saved_recipe"])
def test_a_folder_that_cannot_be_read_is_told_of_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    models = Models([put(tmp_path / "bad", translator()), put(tmp_path / "good", classifier())])
    original = getattr(module, name)
    if name == "saved_recipe":
        put(tmp_path / "bad", translator(d_model=24))  # read anew

    def denied(path: Path, *more: Any) -> Any:
        if "bad" in path.parts:
            raise PermissionError(13, "Permission denied", str(path))
        return original(path, *more)

    monkeypatch.setattr(module, name, denied)
    bad, good = models.states()
    assert (bad["ready"], bad["why"]) == (False, "this folder cannot be read: Permission denied")
    assert (bad["snapshots"], bad["weights"]) == ([], None)
    assert bad.keys() == good.keys()
    assert good["ready"]
    if name == "saved_recipe":
        with refused(RegardError, "bad"):
            Folder(tmp_path / "bad")
        with refused(RegardError, "bad"):
            models.load(0)


def test_a_recipe_that_is_empty_is_no_model(tmp_path: Path) -> None:
    """Not one with all that a recipe leaves open."""
    folder = Folder(put(tmp_path, classifier()))
    (tmp_path / "recipe.toml").write_text("")
    found = folder.state(0)
    assert (found["ready"], found["task"]) == (False, "classification")
    assert f"recipe.toml: {module.EMPTY}" in found["why"]
    with refused(RegardError, "recipe.toml"):
        Folder(tmp_path)


def test_a_file_of_weights_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff" * 100)
    assert [count_parameters(tmp_path / name) for name in ("absent", "a")] == [None, None]
