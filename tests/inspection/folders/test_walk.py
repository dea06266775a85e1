"""The guided walk is read from ``walk.json`` beside a model's folder; another file there gives none, and says why."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regard.config import checksum
from regard.inspection.folders import folder as module
from regard.inspection.folders.folder import Folder
from regard.inspection.folders.walk import NAME, NO_WALK_STATE, write_walk
from regard.models.ablation import Head
from regard.runs.demo.ablation_study import AblationStudy, HeadAblation, HeadFinding
from regard.runs.demo.grammar.scores import Shares
from regard.tasks.model_path import weights_sha256
from tests.tasks.small_tasks import put, recurrent, translator


def study(task: Any) -> AblationStudy:
    """Found of a model with the heads of this one."""
    heads = [
        Head(kind, layer, head)
        for kind, (layers, count) in task.recipe.model.attention.items()
        for layer in range(1, layers + 1)
        for head in range(1, count + 1)
    ]
    shares = {"encoder": Shares(0.9, 0.05, 0.4, 0.1), "cross": Shares(0.01, 0.02, 0.01, 0.1, 0.95)}
    found = tuple(HeadFinding(one, shares.get(one.kind), 290) for one in heads)
    off = HeadAblation((heads[0],), 100)
    return AblationStudy(300, 300, 110, found, (off,), off, off)


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """A demonstration's folder with a walk of its model."""
    task = translator()
    model = put(tmp_path / "demo" / "model", task)
    (tmp_path / "demo" / "corpus").mkdir()
    (tmp_path / "demo" / NAME).write_bytes(write_walk(study(task), weights_sha256(model)))
    return tmp_path / "demo"


def state(folder: Path) -> dict[str, Any]:
    return {name: value for name, value in Folder(folder).state(0).items() if name in NO_WALK_STATE}


def test_the_walk_is_that_of_the_file(demo: Path) -> None:
    for folder in (demo, demo / "model"):
        found = state(folder)
        assert found["walk_why"] is None
        told = json.loads((demo / NAME).read_text(encoding="utf-8"))
        shown = json.loads(json.dumps(found["walk"]))
        assert shown.pop("fits") is True
        assert shown == {name: value for name, value in told.items() if name not in ("format", "sha256")}
    assert found["walk"]["sentences"][1]["antecedent"] == "street"
    assert found["walk"]["sentences"][1]["pronoun"] == "sie"
    assert found["walk"]["encoder"] == {"kind": "encoder", "layer": 1, "head": 1}


def test_it_is_found_from_inside_and_through_a_link(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(demo / "model")
    assert state(tmp_path / "link")["walk"]["fits"]
    monkeypatch.chdir(demo / "model")
    assert state(Path())["walk"]["fits"]


def test_a_model_that_is_not_part_of_a_demonstration_has_none(demo: Path) -> None:
    os.rmdir(demo / "corpus")  # so the file is somebody's own
    assert state(demo) == NO_WALK_STATE
    (demo / "corpus").mkdir()
    os.rename(demo / "model", demo / "other")
    assert state(demo / "other") == NO_WALK_STATE
    put(demo / "model", translator())
    (demo / NAME).unlink()
    assert state(demo) == NO_WALK_STATE


def test_a_demonstration_has_its_sentences_before_anything_is_measured(
    demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the recipe on, beside a walk or a damaged one, and no other model has them."""
    (demo / "model" / "model.safetensors").rename(demo / "later")
    monkeypatch.setattr(module, "is_demo", lambda *_: True)
    told = {name: json.loads((demo / NAME).read_text(encoding="utf-8"))[name] for name in ("pronoun", "sentences")}
    assert state(demo)["classic"] == told
    content = (demo / NAME).read_bytes()
    (demo / NAME).unlink()
    assert state(demo) == {"walk": None, "walk_why": None, "classic": told}
    (demo / "later").rename(demo / "model" / "model.safetensors")
    folder = Folder(demo)
    assert folder.state(0)["classic"] == told
    (demo / NAME).write_bytes(content[:99])
    found = folder.state(0)
    assert (found["walk"], found["classic"]) == (None, told)
    assert "damaged" in found["walk_why"]
    monkeypatch.setattr(module, "is_demo", lambda *_: False)
    assert state(demo)["classic"] is None


def test_other_weights_are_told(demo: Path) -> None:
    folder = Folder(demo)
    assert folder.state(0)["walk"]["fits"]
    values = checksum.load_json((demo / NAME).read_bytes(), demo / NAME)
    (demo / NAME).write_bytes(checksum.dump_json({**values, "weights": "0" * 64}))
    assert not folder.state(0)["walk"]["fits"]
    (demo / NAME).write_bytes(checksum.dump_json(values))
    assert folder.state(0)["walk"]["fits"]
    (demo / "model" / "manifest.json").unlink()
    assert not folder.state(0)["walk"]["fits"]


def changed(values: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    """The values with one of them replaced; its place in dots."""
    names = place.split(".")
    inner: Any = values
    for name in names[:-1]:
        inner = inner[int(name) if name.isdigit() else name]
    last = int(names[-1]) if names[-1].isdigit() else names[-1]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return values


FOREIGN: dict[str, list[Any]] = {
    "study": [None, []],
    "study.heads": [[]],
    "study.heads.0": [None],
    "study.heads.0.head.layer": [99, True],
    "study.heads.0.head.kind": ["pool"],
    "study.heads.0.right": [301],
    "study.heads.0.shares.antecedent": [float("nan"), "0.5", 7],
    "study.right": [-1],
    "study.sentences": [0],
    "study.spare": [10**9],
    "study.smallest.heads": [[{"kind": "encoder", "layer": 1, "head": 77}]],
    "sentences": [[]],
    "sentences.0.source": ["x" * 2000, 3],
    "encoder": [{"kind": kind, "layer": 1, "head": 1} for kind in ("decoder", "cross")],
    "weights": ["../../model"],
    "pronoun": [None, "("],
    "more": [1],
}
"""By place what makes another file of a walk; ``None`` takes it away."""


@pytest.mark.one_of(5)
@pytest.mark.parametrize(("place", "value"), [(place, value) for place, some in FOREIGN.items() for value in some])
def test_a_foreign_file_is_no_walk(demo: Path, place: str, value: Any) -> None:
    values = checksum.load_json((demo / NAME).read_bytes(), demo / NAME)
    (demo / NAME).write_bytes(checksum.dump_json(changed(values, place, value)))
    found = state(demo)
    assert found["walk"] is None
    assert found["walk_why"] == (
        "the guided walk cannot be shown: walk.json is no walk of this model; "
        f"rerun regard demo with --output {demo}, which writes it anew"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "damaged"),
        (b"[]", "damaged"),
        (b"\x80\x04K\x01.", "damaged"),
        (b'{"format": 1}', "damaged"),
        (b"[" * 100_000, "damaged"),
        (b" " * ((1 << 20) + 1), "larger than 1 MB"),
        (checksum.dump_json({"format": 1}), "no walk of this model"),
        (checksum.dump_json({"format": 2}), "written by a newer Regard"),
        (checksum.dump_json({"format": "1"}), "no format"),
    ],
)
def test_a_damaged_file_is_no_walk(demo: Path, content: bytes, said: str) -> None:
    (demo / NAME).write_bytes(content)
    found = state(demo)
    assert found["walk"] is None
    assert said in found["walk_why"]
    assert "rerun regard demo" in found["walk_why"]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_is_no_walk(demo: Path, make: Any) -> None:
    (demo / NAME).unlink()
    make(demo / NAME)
    found = state(demo)
    assert found["walk"] is None
    assert found["walk_why"].startswith("the guided walk cannot be shown: walk.json ")


def test_the_walk_of_a_model_with_other_heads_is_none(demo: Path) -> None:
    few = study(translator())
    (demo / NAME).write_bytes(write_walk(replace(few, heads=few.heads[1:]), "0" * 64))
    assert "no walk of this model" in state(demo)["walk_why"]
    put(demo / "model", recurrent())
    assert state(demo)["walk"] is None
