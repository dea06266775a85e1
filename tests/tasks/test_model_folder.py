"""A model folder is looked at before it is believed."""

import os
from pathlib import Path

import pytest
import torch

from regard.config import Recipe, TransformerSection, dump_toml
from regard.models import store
from regard.models.build import transformer
from regard.nn import ops
from regard.system.errors import Damaged, RegardError, UsageError
from regard.tasks.model_folder import choose_device, load, load_recipe_and_assets
from regard.text.tokenizers.vocabulary import learn_vocabularies
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Files
from tests.refusals import refused

RECIPE = Recipe(model=TransformerSection(encoder_layers=1, decoder_layers=1, d_model=8, d_ff=16, heads=2))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    vocabularies = learn_vocabularies([("a cat", "eine Katze")], 300)
    model = transformer(RECIPE.model, vocabularies.source.size, vocabularies.target.size, 1)
    contents = {name: [tokenizer.content] for name, tokenizer in vocabularies.files.items()}
    contents["recipe.toml"] = [dump_toml(RECIPE.model_dump()).encode()]
    contents["model.safetensors"] = [store.to_bytes(store.weights(model))]
    manifest.replace(tmp_path, contents, Files())
    return tmp_path


def test_what_was_saved_is_loaded(folder: Path) -> None:
    task = load(folder, "cpu")
    assert task.recipe == RECIPE
    assert store.to_bytes(store.weights(task.model)) == (folder / "model.safetensors").read_bytes()
    assert not task.model.training
    assert not any(parameter.requires_grad for parameter in task.model.parameters())
    products = {module.product for module in task.model.modules() if hasattr(module, "product")}
    assert products == {ops.full("cpu")}


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
    assert load_recipe_and_assets(folder)[0] == RECIPE  # enough for averaging
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
        with refused(UsageError, "--device", name):
            choose_device(name)
