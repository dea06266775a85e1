"""Models and images: loaded once, reloaded when their files change, cached within bounds."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from regard.inspection.folders import models as module
from regard.inspection.folders.models import LOADED, PASSES, ROOM, Gallery, LruCache, Models
from regard.runs.demo.images import TEST, TRAIN, VALID, several_digits
from regard.system.errors import Damaged, RegardError, UsageError
from regard.tasks import model_folder
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, SOURCE, classifier, keep, put, translator, viewer


def test_it_is_made_once() -> None:
    made: list[str] = []
    kept: LruCache[str] = LruCache(2)
    for name in ("a", "b", "a", "c", "a", "b"):
        assert kept.get(name, lambda name=name: (made.append(name), name.upper())[1]) == name.upper()
    assert made == ["a", "b", "c", "b"]  # c came when a was asked more lately than b
    assert len(kept._values) == 2
    with pytest.raises(ZeroDivisionError):
        kept.get("d", lambda: str(1 / 0))
    assert kept.get("d", lambda: "what fails is not kept") == "what fails is not kept"


def test_room_is_by_size_which_is_asked_once() -> None:
    asked: list[int] = []
    kept: LruCache[int] = LruCache(10, lambda value: (asked.append(value), value)[1])
    for value in (4, 3, 2, 1, 5):
        kept.put(value, value)
    assert (asked, [*kept._values]) == ([4, 3, 2, 1, 5], [2, 1, 5])  # with 3 they would be 11
    kept.put("too large", 11)
    kept.put(5, 1)
    kept.put(6, 6)
    assert len(kept._values) == 4
    kept.put(7, 1)
    assert [kept.get(key, lambda: -1) for key in (5, 6, 7, "too large")] == [1, 6, 1, -1]


def test_of_small_passes_few_are_kept_and_one_of_a_long_text_too() -> None:
    models = Models([])
    for number in range(3 * PASSES):
        models.passes.put(number, SimpleNamespace(size=1000))
        models.written.put(number, (1,))
    assert (len(models.passes._values), len(models.written._values)) == (PASSES, 2 * PASSES)
    long = SimpleNamespace(size=ROOM)
    models.passes.put("long", long)
    assert models.passes.get("long", lambda: None) is long


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 10, (5, 24))


def test_images_of_a_file(tmp_path: Path, rows: np.ndarray) -> None:
    lines = [f"{','.join(map(str, row))},label {number}\n" for number, row in enumerate(rows.tolist())]
    (tmp_path / "a.csv").write_text("".join(lines))
    gallery, task = Gallery(tmp_path / "a.csv"), viewer()
    found = gallery.batch(task, 1, 3)
    assert (found.labels, found.total) == (("label 1", "label 2", "label 3"), 5)
    np.testing.assert_array_equal(found.pixels, rows[1:4].reshape(3, 6, 4, 1))
    np.testing.assert_array_equal(gallery.image(task, 4), rows[4].reshape(6, 4, 1))
    assert [gallery.label(task, number) for number in (0, 4, 5)] == ["label 0", "label 4", None]
    assert gallery.batch(task, 7, 3).pixels.shape == (0, 6, 4, 1)
    with refused(UsageError, "image", "6", "5"):
        gallery.image(task, 5)


def test_images_without_labels_or_of_another_size(tmp_path: Path, rows: np.ndarray) -> None:
    (tmp_path / "u.csv").write_text("".join(f"{','.join(map(str, row))}\n" for row in rows.tolist()))
    gallery = Gallery(tmp_path / "u.csv")
    assert gallery.batch(viewer(), 0, 2).labels == ("", "")
    assert gallery.label(viewer(), 1) is None
    with pytest.raises(RegardError):
        gallery.batch(viewer(height=4), 0, 2)
    with pytest.raises(RegardError):
        Gallery(tmp_path / "absent.csv").batch(viewer(), 0, 2)


def test_images_that_the_project_makes() -> None:
    task, gallery = viewer(height=32, width=32, patch=8), Gallery(None)
    found = gallery.batch(task, 2, 2)
    made = [several_digits(TRAIN + VALID + number, task.recipe.seed) for number in (2, 3)]
    assert (found.labels, found.total) == (tuple(str(one.label) for one in made), TEST)
    np.testing.assert_array_equal(found.pixels[..., 0], [one.image for one in made])
    assert len(gallery.batch(task, TEST - 1, 5).labels) == 1
    assert len(gallery.batch(task, 10**9, 5).labels) == 0
    none = gallery.batch(viewer(), 0, 24)  # of another size than those that it makes
    assert (none.pixels.shape, none.labels, none.total) == ((0, 6, 4, 1), (), 0)
    with refused(UsageError, "image"):
        gallery.image(viewer(), 0)


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


def test_a_model_is_loaded_when_it_is_asked_for_and_again_when_it_was_replaced(
    tmp_path: Path, loads: list[str]
) -> None:
    made = {name: EVERY[name]() for name in ("tagger", "translator")}
    models = Models([put(tmp_path / name, task) for name, task in made.items()])
    assert ([one["name"] for one in models.states()], loads) == (list(made), [])
    before = models.load(1)
    assert same(before.task, made["translator"])
    assert models.load(1) is before
    put(tmp_path / "translator", translator(2))
    after = models.load(1)
    assert same(after.task, translator(2))
    assert before.key != after.key
    assert (after is models.load(1), loads) == (True, ["translator", "translator"])


def test_weights_have_a_name_once_they_are_there(tmp_path: Path) -> None:
    """Those that a run kept have another."""
    models = Models([put(tmp_path, translator(), weights=False)])
    assert (models.states()[0]["weights"], models.states()[0]["keeps"]) == (None, "best")
    put(tmp_path, translator())
    keep(tmp_path, translator(), 20)
    names = {models.states()[0]["weights"], models.load(0).weights, models.load(0, "step 20").weights}
    assert len(names) == 2


def test_a_few_are_held(tmp_path: Path, loads: list[str]) -> None:
    places = [put(tmp_path / str(number), classifier()) for number in range(LOADED + 1)]
    models = Models(places)
    for number in (*range(LOADED), 0, LOADED, 0, 1):
        models.load(number)
    assert loads == [*map(str, range(LOADED + 1)), "1"]  # 1 was asked the longest ago when the last came


def test_weights_that_a_run_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They can be seen before there is a best."""
    best, early = translator(1), translator(2)
    models = Models([put(tmp_path, early, weights=False)])
    with refused(UsageError, "snapshot"):
        models.load(0, "step 1,000")
    keep(tmp_path, early, 1000)
    kept = models.load(0, "step 1,000")
    assert same(kept.task, early)
    assert not kept.task.model.training
    assert kept.task.translate(SOURCE, beam=1) == early.translate(SOURCE, beam=1)
    with refused(RegardError, tmp_path):
        models.load(0)
    put(tmp_path, best)
    assert same(models.load(0).task, best)
    assert kept.key != models.load(0).key
    with refused(UsageError, "snapshot", "step 5", "1,000"):
        models.load(0, "step 5")

    def denied(folder: Path) -> dict[str, Path]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(module, "snapshots", denied)
    with refused(RegardError, tmp_path):
        models.load(0, "step 1")


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


@pytest.mark.parametrize("torn", [True, False])
def test_a_model_that_is_replaced_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torn: bool
) -> None:
    """Damaged or whole; where that does not end it is refused, or its weights have the name of no others."""
    models = Models([put(tmp_path, translator(1))])
    original, tries, replaced = module._load_task, 0, 1

    def load(folder: Path, place: Path | None) -> Any:
        nonlocal tries
        tries += 1
        found = original(folder, place)
        if tries <= replaced:
            put(tmp_path, translator(10 + tries))
            if torn:
                raise RegardError("is damaged")
        return found

    monkeypatch.setattr(module, "_load_task", load)
    found = models.load(0)
    assert (tries, found.weights) == (2, models.states()[0]["weights"])
    assert same(found.task, translator(11))
    tries, replaced = 0, module.TRIES
    put(tmp_path, translator(2))
    names = [found.weights, models.states()[0]["weights"]]
    if torn:
        with refused(RegardError):
            models.load(0)
        assert tries == module.TRIES
        return
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
