"""Models are loaded on first use, and again when their files change."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.explore.folders import models as module
from regard.explore.folders.models import LOADED, Models
from regard.explore.questions.answers import answer
from regard.system.errors import Damaged, RegardError, UsageError
from regard.tasks import model_folder
from tests.explore.payloads import unpack
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, SOURCE, classifier, keep, put, translator


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the folders that are loaded, in order."""
    found: list[str] = []

    def load(folder: Path, device: str | None = None) -> Any:
        found.append(folder.name)
        return original(folder, device)

    original = model_folder.load
    monkeypatch.setattr(model_folder, "load", load)
    return found


def same(task: Any, other: Any) -> bool:
    return all(torch.equal(a, b) for a, b in zip(task.model.parameters(), other.model.parameters(), strict=True))


def test_nothing_is_loaded_before_it_is_asked(tmp_path: Path, loads: list[str]) -> None:
    made = {name: EVERY[name]() for name in ("translator", "tagger")}
    models = Models([put(tmp_path / name, task) for name, task in made.items()])
    assert [one["name"] for one in models.states()] == list(made)
    assert loads == []
    assert same(models.load(1).task, made["tagger"])
    assert models.load(1).task is models.load(1).task
    assert loads == ["tagger"]


def test_a_model_that_was_replaced_is_loaded_anew(tmp_path: Path, loads: list[str]) -> None:
    models = Models([put(tmp_path / "a", translator(1))])
    before = models.load(0)
    assert same(before.task, translator(1))
    other = translator(2)
    put(tmp_path / "a", other)
    after = models.load(0)
    assert same(after.task, other)
    assert before.key != after.key
    assert after is models.load(0)
    assert loads == ["a", "a"]


def test_weights_have_a_name(tmp_path: Path) -> None:
    """The same in what is told of a model as in what is seen of it, until there are others."""

    def told() -> str | None:
        return models.states()[0]["weights"]

    def seen() -> str:
        return unpack(answer(models, "look", {"text": SOURCE}))[0]["weights"]

    models = Models([put(tmp_path, translator(), weights=False)])
    assert told() is None
    put(tmp_path, translator())
    first = told()
    assert first == told() == seen()
    put(tmp_path, translator())
    assert first != told() == seen()
    keep(tmp_path, translator(), 20)
    kept = unpack(answer(models, "look", {"text": SOURCE, "snapshot": "step 20"}))[0]["weights"]
    assert kept not in (first, told())
    assert models.states()[0]["keeps"] == "best"


def test_a_few_are_held(tmp_path: Path, loads: list[str]) -> None:
    places = [put(tmp_path / str(number), classifier()) for number in range(LOADED + 1)]
    models = Models(places)
    for number in (*range(LOADED), 0, LOADED, 0, 1):
        models.load(number)
    assert loads == [*map(str, range(LOADED + 1)), "1"]  # 1 was asked the longest ago when the last came


def test_weights_that_a_run_kept(tmp_path: Path) -> None:
    best, early = translator(1), translator(2)
    models = Models([put(tmp_path, best)])
    keep(tmp_path, early, 1000)
    kept = models.load(0, "step 1,000")
    assert same(kept.task, early)
    assert not kept.task.model.training
    assert kept.task.translate(SOURCE, beam=1) == early.translate(SOURCE, beam=1)
    assert same(models.load(0).task, best)
    assert kept.key != models.load(0).key
    with refused(UsageError, "snapshot", "step 5", "1,000"):
        models.load(0, "step 5")


def test_a_folder_that_cannot_be_listed_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(folder: Path) -> dict[str, Path]:
        raise PermissionError(13, "Permission denied")

    models = Models([put(tmp_path, translator())])
    monkeypatch.setattr(module, "snapshots", denied)
    with refused(RegardError, tmp_path):
        models.load(0, "step 1")


def test_kept_weights_can_be_seen_before_there_is_a_best(tmp_path: Path) -> None:
    early = translator(2)
    models = Models([put(tmp_path, early, weights=False)])
    with refused(UsageError, "snapshot"):
        models.load(0, "step 1")
    keep(tmp_path, early, 1)
    assert same(models.load(0, "step 1").task, early)
    with refused(RegardError, tmp_path):
        models.load(0)
    put(tmp_path, translator(1))
    assert same(models.load(0).task, translator(1))


def test_damage_is_said(tmp_path: Path) -> None:
    models = Models([put(tmp_path, translator())])
    place = keep(tmp_path, translator(), 1) / "weights.safetensors"
    for path in (place, tmp_path / "model.safetensors"):
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
    for snapshot in (None, "step 1"):
        with refused(Damaged):
            models.load(0, snapshot)


def test_a_model_is_read_again_that_was_just_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = Models([put(tmp_path, translator(1))])
    original, tries = module._load_task, list[int]()

    def torn(folder: Path, place: Path | None) -> Any:
        tries.append(len(tries))
        if len(tries) == 1:  # a training replaces the model while it is being read
            put(tmp_path, translator(2))
            raise RegardError("is damaged")
        return original(folder, place)

    monkeypatch.setattr(module, "_load_task", torn)
    assert same(models.load(0).task, translator(2))
    assert tries == [0, 1]

    def always(folder: Path, place: Path | None) -> Any:
        tries.append(len(tries))
        put(tmp_path, translator(len(tries)))
        raise RegardError("is damaged")

    monkeypatch.setattr(module, "_load_task", always)
    put(tmp_path, translator(9))
    with refused(RegardError):
        models.load(0)
    assert len(tries) == 2 + module.TRIES


def test_weights_that_are_replaced_while_they_are_read_have_the_name_of_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read again, and where that does not end they have a name of their own."""
    models = Models([put(tmp_path, translator(1))])
    original, tries, replaced = module._load_task, 0, 1

    def late(folder: Path, place: Path | None) -> Any:
        nonlocal tries
        found = original(folder, place)
        tries += 1
        if tries <= replaced:
            put(tmp_path, translator(10 + tries))
        return found

    monkeypatch.setattr(module, "_load_task", late)
    found = models.load(0)
    assert (tries, found.weights) == (2, models.states()[0]["weights"])
    assert same(found.task, translator(11))
    tries, replaced = 0, module.TRIES
    put(tmp_path, translator(2))
    names = [found.weights, models.states()[0]["weights"]]
    found = models.load(0)
    assert tries == module.TRIES
    assert found.weights not in (*names, models.states()[0]["weights"])
    assert models.load(0, weights=found.weights) is found
    assert same(models.load(0).task, translator(10 + module.TRIES))


def test_names_tell_models_apart(tmp_path: Path) -> None:
    first = put(tmp_path / "a" / "same", translator())
    shutil.copytree(first, tmp_path / "b" / "same")
    models = Models([first, tmp_path / "b" / "same", put(tmp_path / "other", classifier())])
    assert [one["name"] for one in models.states()] == [str(first), str(tmp_path / "b" / "same"), "other"]
    assert [one["number"] for one in models.states()] == [0, 1, 2]


def test_models_that_are_not_there(tmp_path: Path) -> None:
    models = Models([put(tmp_path, translator())])
    for number in (1, -1):
        with refused(UsageError, "model", "0"):
            models.load(number)
    with refused(RegardError, "absent"):
        Models([tmp_path, tmp_path / "absent"])
