"""Models of a server: found by language, opened at first use, let go when idle, opened again when they change."""

import re
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from regard.inspection import SHIPPED
from regard.serving import models as module
from regard.serving.core import ServiceError
from regard.serving.models import ServedModels
from regard.system.errors import RegardError, UsageError
from regard.tasks.model_folder import open_without_torch
from regard.training.checkpoints import manifest
from tests.tasks.small_tasks import SOURCE, put, recurrent, translator
from tests.tasks.test_low_rank import LOW_RANK, going_on
from tests.training.toy import Fast


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(SHIPPED[0] / "model", tmp_path / "model")


def named(tmp_path: Path, *pairs: str) -> list[str]:
    """A folder for each direction."""
    for pair in pairs:
        shutil.copytree(SHIPPED[0] / "model", tmp_path / pair.replace(":", "-"))
    return [f"{pair}={tmp_path / pair.replace(':', '-')}" for pair in pairs]


@pytest.fixture
def three(tmp_path: Path) -> ServedModels:
    """Reads English and German, writes German and French."""
    return ServedModels(named(tmp_path, "en:de", "de:fr", "de:pt-BR"))


@pytest.mark.parametrize(("written", "meant"), [("EN", "en"), ("en-US", "en"), ("eng", "en"), ("de_AT", "de")])
def test_codes_are_found_as_clients_write_them(three: ServedModels, written: str, meant: str) -> None:
    assert three.find_source(written) == meant


def test_a_code_with_a_region_is_the_one_that_is_nearest(three: ServedModels) -> None:
    assert [three.find_target(code) for code in ("pt", "PT-br", "pt-PT", "fra")] == ["pt-BR", "pt-BR", "pt-BR", "fr"]
    with pytest.raises(UsageError, match="xx"):
        three.find_target("xx")
    with pytest.raises(UsageError, match="fr"):
        three.find_source("fr")


def test_where_no_model_translates_two_do(three: ServedModels) -> None:
    assert [hop.direction for hop in three.route("en", "de")] == [("en", "de")]
    assert [hop.direction for hop in three.route("en-GB", "FR")] == [("en", "de"), ("de", "fr")]
    assert {one.code: one.targets for one in three.languages()} == {"de": ("fr", "pt-BR"), "en": ("de", "fr", "pt-BR")}
    assert {one.code: one.direct for one in three.languages()} == {"de": ("fr", "pt-BR"), "en": ("de",)}
    assert three.leads("en", "fr")
    with pytest.raises(ServiceError, match="de is the language of both sides"):
        three.route("de", "de")


def test_folders_that_cannot_be_told_apart_are_refused(tmp_path: Path) -> None:
    first = named(tmp_path, "en:de")
    with pytest.raises(UsageError, match="two folders are named"):
        ServedModels(first * 2)
    with pytest.raises(UsageError, match="write en:de="):
        ServedModels([str(put(tmp_path / "own", recurrent()))])
    with pytest.raises(RegardError, match="no such"):
        ServedModels(["en:de=/nowhere/at/all"])


def test_a_model_that_nobody_uses_for_long_leaves_memory(folder: Path, monkeypatch) -> None:
    clock = SimpleNamespace(now=1_000.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    served = ServedModels([f"en:de={folder}"], idle=60.0)
    [model] = served
    assert model.task is None
    with served.use(model) as task:
        clock.now += 1_000
        served.let_go()
        assert model.task is task  # it is in use
    clock.now += 59
    served.let_go()
    assert model.task is task
    clock.now += 2
    served.let_go()
    assert model.task is None
    with served.use(model) as again:
        assert again is not task
    assert model.loads == 2


def test_a_folder_that_changes_is_opened_again_and_no_call_is_lost(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "LOOK", 0.0)
    served = ServedModels([f"en:de={folder}"])
    [model] = served
    said, ended = list[Any](), threading.Event()

    def call() -> None:
        while not ended.is_set():
            try:
                with served.use(model) as task:
                    said.append(task.translate(SOURCE))
            except Exception as error:
                said.append(error)

    with served.use(model) as before:
        callers = [threading.Thread(target=call) for _ in range(3)]
        for caller in callers:
            caller.start()
        for number in range(3):
            manifest.replace(folder, {"card.md": [b"%d" % number]}, Fast())
            with served.use(model) as now:
                assert now is not before
        (folder / "manifest.json").rename(folder / "away")  # it is being written
        with served.use(model) as still:
            assert still is now
        (folder / "away").rename(folder / "manifest.json")
        expected = before.translate(SOURCE)
        ended.set()
        for caller in callers:
            caller.join()
    assert said
    assert set(said) == {expected}
    assert model.loads >= 4
    assert model.users == 0


def test_a_change_that_cannot_be_opened_is_told_once_and_the_model_goes_on(folder: Path, monkeypatch, caplog) -> None:
    monkeypatch.setattr(module, "LOOK", 0.0)
    served = ServedModels([f"en:de={folder}"])
    [model] = served
    with served.use(model) as before:
        manifest.replace(folder, {"recipe.toml": [b"none"]}, Fast())
        for _ in range(3):
            with served.use(model) as still:
                assert still is before
    [told] = caplog.messages
    assert told.startswith("the model model has changed, and is used as it was: ")


def test_a_change_of_languages_needs_a_new_start(folder: Path, monkeypatch, caplog) -> None:
    def write(source: str, target: str) -> None:
        text = (folder / "recipe.toml").read_text(encoding="utf-8")
        for name, code in (("source", source), ("target", target)):
            text = re.sub(rf'^{name}_language = "[^"]*"', f'{name}_language = "{code}"', text, flags=re.MULTILINE)
        manifest.replace(folder, {"recipe.toml": [text.encode()]}, Fast())

    monkeypatch.setattr(module, "LOOK", 0.0)
    write("en", "de")
    served = ServedModels([str(folder)])
    [model] = served
    with served.use(model) as before:
        write("en", "fr")
        with served.use(model) as after:
            assert after is before
    [told] = caplog.messages
    assert told.endswith("has other languages now; start the server anew")


def test_a_folder_that_has_gone_is_told_so(folder: Path) -> None:
    served = ServedModels([f"en:de={folder}"])
    folder.rename(folder.with_name("away"))
    with pytest.raises(ServiceError, match="no such"), served.use(served.all[0]):
        pass


def test_a_folder_of_another_task_is_none_of_the_same_model(folder: Path) -> None:
    served = ServedModels([f"en:de={folder}"])
    [model] = served
    model.recipe = model.recipe.model_copy(update={"task": "classification"})
    with pytest.raises(ServiceError, match="is a translator now; start the server anew"), served.use(model):
        pass


def test_a_damaged_folder_is_told_and_opened_when_it_is_mended(folder: Path) -> None:
    served = ServedModels([f"en:de={folder}"])
    [model] = served
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[:-4])
    with pytest.raises(ServiceError, match="cannot be opened") as caught, served.use(model):
        pass
    assert (caught.value.status, caught.value.retry_after) == (503, 30)
    (folder / "model.safetensors").write_bytes(weights)
    with served.use(model) as task:
        assert task.translate(SOURCE)


def test_adapters_of_one_base_share_its_matrices(tmp_path: Path) -> None:
    train = going_on(tmp_path)
    put(tmp_path / "begun", translator())
    names = ["one", "two"]
    for seed, name in enumerate(names):
        train(tmp_path / "begun", [LOW_RANK[0], LOW_RANK[2], f"seed={seed + 1}"], output=tmp_path / name)
    served = ServedModels([str(tmp_path / name) for name in ("begun", *names)], "fp32")
    [shared] = served._shared.values()
    found, counts = dict[str, Any](), list[int]()
    for model in served:
        with served.use(model) as task:
            found[model.name] = task.nbest([SOURCE])
        counts.append(len(shared.packed))
    assert found == {name: open_without_torch(tmp_path / name, "cpu", "fp32").nbest([SOURCE]) for name in found}
    assert found["begun"] != found["one"] != found["two"]
    first, *more = (now - before for now, before in zip(counts, [0, *counts], strict=False))
    assert max(more) < first


def test_a_command_finds_its_model_by_name_or_the_only_one(tmp_path: Path) -> None:
    served = ServedModels(named(tmp_path, "en:de", "de:fr"))
    assert served.of_command("translate", "de-fr").name == "de-fr"
    for command, name, status in (("translate", None, 400), ("translate", "none", 404), ("classify", None, 404)):
        with pytest.raises(ServiceError) as caught:
            served.of_command(command, name)
        assert caught.value.status == status
