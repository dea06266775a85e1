"""A folder with a model inside stands for that model, wherever a model folder is asked for."""

from pathlib import Path

import pytest

from regard.explore.folders.folder import Folder
from regard.runs import average, conversion
from regard.system.errors import RegardError, UsageError
from regard.tasks import model_folder as bundle
from regard.tasks.model_path import fingerprint, model_folder
from regard.tasks.text.pretrained import Pretrained
from tests.refusals import refused
from tests.tasks.small_tasks import classifier, encoder, put, translator


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As ``regard demo --ablate`` leaves it."""
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


def test_the_demonstrations_model_stands_before_others(demo: Path) -> None:
    assert model_folder(demo) == model_folder(f"{demo}/") == demo / "model"


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
    assert bundle.load_recipe_and_assets(demo)[0] == bundle.load_recipe_and_assets(demo / "model")[0]
    assert Folder(demo).path == demo / "model"
    assert fingerprint(demo) == fingerprint(demo / "model") != fingerprint(demo / "without-positions")
    with refused(UsageError, "demo/model"):
        average.average(demo, tmp_path / "averaged")
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
