"""What a page is told of a model folder, without its weights."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path
from typing import Any

import pytest

from regard.config import RnnSection, recipe_from
from regard.errors import RegardError
from regard.explore.folders import STOPPED, WAITING, Folder, parameters, positions_of, stamp_of, title
from regard.tasks.demo import RECIPE
from small_tasks import EVERY, LABELS, keep, log, put, spanner, tagger, translator, viewer


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Folder]]:
    made = tmp_path_factory.mktemp("folders")
    return {name: (task := make(), Folder(put(made / name, task))) for name, make in EVERY.items()}


WRITES = {
    "translator": ("text", "text", ["source", "target"], ["encoder", "decoder"]),
    "recurrent": ("text", "text", ["source", "target"], []),
    "classifier": ("text", "classes", ["source"], ["encoder"]),
    "tagger": ("text", "tags", ["source"], ["encoder"]),
    "filler": ("gapped", "words", ["source"], ["encoder"]),
    "speaker": ("text", "continuation", ["source"], ["decoder"]),
    "spanner": ("gapped", "text", ["source", "target"], ["encoder", "decoder"]),
    "viewer": ("image", "classes", [], ["encoder"]),
    "encoder": ("text", "nothing", ["source"], ["encoder"]),
}


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
    assert told["translator"]["title"] == "English → German"
    assert told["translator"]["divisor"] == pytest.approx(2)  # √(12 / 3)
    assert told["spanner"]["divisor"] == 1
    assert told["translator"]["masked"] == told["speaker"]["masked"] == ["decoder"]
    assert told["classifier"]["masked"] == told["recurrent"]["masked"] == []
    assert [told[name]["positions"] for name in ("translator", "spanner", "recurrent")] == [True, True, False]
    assert told["classifier"]["labels"] == told["tagger"]["labels"] == told["viewer"]["labels"] == list(LABELS)
    assert told["translator"]["labels"] is None
    assert told["translator"]["max_tokens"] == 40
    assert told["viewer"]["max_tokens"] == 7
    assert told["viewer"]["image"] == {"height": 6, "width": 4, "channels": 1, "patch": 2, "largest": 9.0}
    assert told["translator"]["image"] is None


def test_a_training_that_has_not_validated(tmp_path: Path) -> None:
    folder = Folder(put(tmp_path, translator(), weights=False))
    found = folder.state(0)
    assert (found["ready"], found["why"], found["parameters"]) == (False, STOPPED, None)
    log(tmp_path, [{"kind": "start", "step": 0, "steps": 5}])
    with (tmp_path / "training" / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = folder.state(0)
        assert (found["ready"], found["why"], found["running"], found["course"]) == (False, WAITING, True, True)
        keep(tmp_path, translator(), 20)
        assert folder.state(0)["snapshots"] == ["step 20"]
        put(tmp_path, translator())
        found = folder.state(0)
    assert (found["ready"], found["why"], found["running"]) == (True, None, True)
    assert found["parameters"] > 0


def test_what_is_no_model_folder(tmp_path: Path) -> None:
    for where, said in ((tmp_path / "absent", "no such folder"), (tmp_path, "is no model folder")):
        with pytest.raises(RegardError, match=said):
            Folder(where)
    (tmp_path / "training").mkdir()
    with pytest.raises(RegardError, match="still prepares the data"):
        Folder(tmp_path)
    put(tmp_path, translator())
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(RegardError):
        Folder(tmp_path)


def test_a_folder_of_the_demonstration_has_its_model_inside(tmp_path: Path) -> None:
    put(tmp_path / "shown" / "model", translator())
    outer, inner = Folder(tmp_path / "shown"), Folder(tmp_path / "shown" / "model")
    assert outer.path == inner.path == tmp_path / "shown" / "model"
    assert outer.name == inner.name == "shown"


def test_a_folder_that_goes_away_or_becomes_another_is_told_as_it_is(tmp_path: Path) -> None:
    folder = Folder(put(tmp_path / "a", translator()))
    put(tmp_path / "a", translator(d_model=24))
    assert folder.state(0)["d_model"] == 24
    shutil.rmtree(tmp_path / "a")
    found = folder.state(0)
    assert not found["ready"]
    assert "no such folder" in found["why"]


def test_titles() -> None:
    def of(source: str, target: str) -> str:
        return title(recipe_from({"text": {"source_language": source, "target_language": target}}))

    assert of("en-GB", "deu") == "English → German"
    assert of("hsb", "de") == "hsb → German"
    assert of("und", "de") == "Translator"
    assert title(recipe_from(RECIPE)) == "English → German"
    assert [title(make().recipe) for make in (tagger, spanner, viewer)] == [
        "Tagger",
        "Model of missing spans",
        "Classifier of images",
    ]


def test_a_file_of_weights_that_is_none(tmp_path: Path) -> None:
    assert parameters(tmp_path / "absent") is None
    (tmp_path / "a").write_bytes(b"\xff" * 100)
    assert parameters(tmp_path / "a") is None
    before = stamp_of(tmp_path / "a")
    assert before == stamp_of(tmp_path / "a")
    (tmp_path / "b").write_bytes(b"\xff" * 100)
    (tmp_path / "b").replace(tmp_path / "a")
    assert stamp_of(tmp_path / "a") != before
    assert stamp_of(tmp_path / "absent") is None
    assert positions_of(RnnSection()) == "none"
