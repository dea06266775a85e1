"""A path stands for a model folder, which is verified before it is loaded."""

import os
from pathlib import Path

import pytest
import torch

from regard.inspection.folders.folder import Folder
from regard.models import store
from regard.nn import ops
from regard.runs import conversion, model_folders
from regard.system import processor
from regard.system.errors import Damaged, RegardError, UsageError
from regard.tasks import model_folder as bundle
from regard.tasks.assets import PROCESSORS, json_content
from regard.tasks.model_folder import choose_device, load, load_recipe_and_assets
from regard.tasks.model_path import fingerprint, model_folder
from regard.tasks.text.preparation import Pretrained
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Files
from tests.refusals import refused
from tests.tasks.small_tasks import classifier, encoder, put, translator


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return put(tmp_path, translator())


def test_what_was_saved_is_loaded(folder: Path) -> None:
    task = load(folder, "cpu")
    assert task.recipe == translator().recipe
    assert store.to_bytes(store.weights(task.model)) == (folder / "model.safetensors").read_bytes()
    assert not task.model.training
    assert not any(parameter.requires_grad for parameter in task.model.parameters())
    products = {module.product for module in task.model.modules() if hasattr(module, "product")}
    assert products == {ops.full("cpu")}


@pytest.mark.one_of(6)
@pytest.mark.parametrize("path", ["exact", "onednn", "numpy", "bf16"])
@pytest.mark.parametrize("here", [True, False])
def test_products_are_computed_as_when_it_was_validated(folder: Path, path: ops.Path, here: bool) -> None:
    kind = processor.kind() if here else "another processor"
    manifest.replace(folder, {PROCESSORS: [json_content({"paths": {kind: path}})]}, Files())
    task = load(folder, "cpu")
    known = here and path in ops.full_paths()
    products = {module.product for module in task.model.modules() if hasattr(module, "product")}
    assert products == {path if known else ops.full("cpu")}


def test_paths_that_cannot_be_read(folder: Path) -> None:
    manifest.replace(folder, {PROCESSORS: [json_content({"paths": {"a": 3}})]}, Files())
    with refused(RegardError, folder / PROCESSORS):
        load(folder)


@pytest.mark.parametrize("name", ["recipe.toml", "tokenizer.json", "model.safetensors"])
@pytest.mark.parametrize("damage", [lambda raw: b"", lambda raw: raw[: len(raw) // 2], lambda raw: b"[[" + raw[2:]])
def test_a_damaged_file_is_called_damaged_by_its_name(folder: Path, name: str, damage) -> None:
    path = folder / name
    path.write_bytes(damage(path.read_bytes()))
    with refused(Damaged, path):
        load(folder)


def test_what_is_no_model_folder(folder: Path, tmp_path: Path) -> None:
    with refused(RegardError, "absent"):
        load(tmp_path / "absent")
    (folder / "model.safetensors").unlink()
    with refused(RegardError, folder, "model.safetensors") as lost:
        load(folder)
    (folder / "training").mkdir()
    with refused(RegardError, folder, "model.safetensors") as unfinished:
        load(folder)
    assert str(lost.value) != str(unfinished.value)
    assert load_recipe_and_assets(folder)[0] == translator().recipe  # enough for averaging
    (folder / "recipe.toml").unlink()
    for reads in (load, load_recipe_and_assets):
        with refused(RegardError, folder, "recipe.toml"):
            reads(folder)


@pytest.mark.parametrize("name", ["recipe.toml", "tokenizer.json", "model.safetensors", "manifest.json"])
def test_a_pipe_is_not_waited_for(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with refused(RegardError, folder / name):
        load(folder)


def test_a_device_is_one_of_this_machine() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    for name in ("cuda:99", "tpu", "cpu:99", "meta"):
        with refused(UsageError, "device", name):
            choose_device(name)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As ``regard demo --without positions`` leaves it."""
    folder = tmp_path_factory.mktemp("made") / "demo"
    put(folder / "without-positions", translator(9))
    (folder / "corpus").mkdir()
    put(folder / "model", translator(5))
    return folder


def test_a_model_folder_is_itself_and_so_is_what_is_none(demo: Path, tmp_path: Path) -> None:
    (tmp_path / "begun" / "training").mkdir(parents=True)
    put(tmp_path / "begun" / "model", encoder())
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for path in (demo / "model", *(tmp_path / name for name in ("begun", "absent", "file", "empty"))):
        assert model_folder(path) == path
    assert model_folder(demo) == model_folder(f"{demo}/") == demo / "model"  # which stands before others


def test_the_only_model_inside_is_meant_and_of_several_each_is_named(tmp_path: Path) -> None:
    put(tmp_path / "b", encoder())
    (tmp_path / "data").mkdir()
    assert model_folder(tmp_path) == tmp_path / "b"
    put(tmp_path / "a", encoder())
    with refused(RegardError, tmp_path, "2", f"{tmp_path}/a, {tmp_path}/b"):
        model_folder(tmp_path)
    for name in "cdefg":
        put(tmp_path / name, encoder())
    with refused(RegardError, tmp_path, "7", "/a, ", "/e", "2"):
        model_folder(tmp_path)


def test_every_way_to_open_a_model_means_the_same(demo: Path, tmp_path: Path) -> None:
    text = "The animal"
    assert bundle.load(demo).translate(text) == bundle.load(demo / "model").translate(text)
    assert load_recipe_and_assets(demo)[0] == load_recipe_and_assets(demo / "model")[0]
    assert Folder(demo).path == demo / "model"
    assert fingerprint(demo) == fingerprint(demo / "model") != fingerprint(demo / "without-positions")
    with refused(RegardError, "demo/model"):
        model_folders.average(demo, tmp_path / "averaged")
    conversion.export_model(demo, tmp_path / "out")
    conversion.export_model(demo / "model", tmp_path / "same")
    assert (tmp_path / "out" / "config.json").read_bytes() == (tmp_path / "same" / "config.json").read_bytes()
    put(tmp_path / "shown" / "model", classifier())
    assert Pretrained.load(tmp_path / "shown").folder == tmp_path / "shown" / "model"


def test_a_fingerprint_changes_with_any_file_of_a_model(tmp_path: Path) -> None:
    assert fingerprint(tmp_path) is None
    before = fingerprint(put(tmp_path, encoder()))
    assert before == fingerprint(tmp_path)
    put(tmp_path, encoder(), weights=False)
    assert before == fingerprint(tmp_path)
    task = encoder()
    next(iter(task.model.parameters())).add_(1)
    assert before != fingerprint(put(tmp_path, task))


def test_an_engine_that_is_opened_late_is_opened_as_late_for_a_shortlist() -> None:
    opened: list[object] = []

    class Engine:
        word = "all"

        def with_shortlist(self, pieces: str) -> object:
            opened.append(pieces)
            return type("Short", (), {"word": pieces})

    late = bundle.LazyEngine(Engine)
    short = late.with_shortlist("some")
    assert not opened
    assert (short.word, late.word, opened) == ("some", "all", ["some"])
