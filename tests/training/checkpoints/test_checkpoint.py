"""Checkpoints: whole or not there, every damage noticed, the right ones kept."""

import os
import random
import shutil

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch.testing import assert_close

from regard.config import FORMAT, checksum
from regard.models import store
from regard.system.errors import Damaged, NoValidCheckpoint, RegardError, UsageError
from regard.training.checkpoints import checkpoint, manifest
from regard.training.checkpoints.checkpoint import Checkpoints, verified_state, weights, whole, write_folder
from tests.refusals import refused
from tests.training.toy import Fast, Play, recipe


def contents(step):
    generator = random.Random(step)
    tensors = {part: [generator.randbytes(300)] for part in ("weights.safetensors", "optimiser.safetensors")}
    return {**tensors, "state.json": [f'{{"format": 1, "step": {step}}}'.encode()]}


@pytest.fixture
def saved(tmp_path):
    """Checkpoints of three steps."""
    checkpoints = Checkpoints(tmp_path, Fast())
    for step in (5, 10, 15):
        checkpoints.save(step, contents(step))
    return checkpoints


def steps(checkpoints):
    return [int(path.name[5:]) for path in whole(checkpoints.folder)]


def loaded(checkpoints, files=Fast):
    """The step of the newest good one, and what is told on the way."""
    told = []
    return int(Checkpoints(checkpoints.folder, files(), report=told.append).newest().name[5:]), told


def test_the_newest_is_loaded_and_latest_is_only_a_hint(saved):
    hint = saved.folder / "latest"
    assert hint.read_text() == "step-000015\n"
    for text in ("step-000999\n", "../../elsewhere", ""):
        hint.write_text(text)
        assert loaded(saved) == (15, [])
    hint.unlink()
    os.mkfifo(hint)
    assert saved.newest().name == "step-000015"
    saved.settle(saved.folder / "step-000015")
    assert hint.read_text() == "step-000015\n"


def test_names_sort_by_number_and_none_is_where_there_never_was_one(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    (tmp_path / "step-000005.partial-abc").mkdir()
    assert whole(tmp_path / "absent") == whole(tmp_path / "file") == []
    assert [Checkpoints(folder, Fast()).newest() for folder in (tmp_path, tmp_path / "absent")] == [None, None]
    for step in (5, 999_999, 1_000_000, 20):
        (tmp_path / checkpoint.name(step)).mkdir()
    (tmp_path / "step-000007.corrupt-x").mkdir()
    assert [path.name for path in whole(tmp_path)] == ["step-000005", "step-000020", "step-999999", "step-1000000"]
    monkeypatch.setattr(type(tmp_path), "exists", lambda path: True)  # it is removed behind the look for it
    assert whole(tmp_path / "absent") == []


def cut(folder):
    path = folder / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


DAMAGES = {
    "cut": cut,
    "swapped": lambda folder: shutil.copy(folder.parent / "step-000010" / "weights.safetensors", folder),
    "no manifest": lambda folder: (folder / manifest.NAME).unlink(),
    "another's manifest": lambda folder: shutil.copy(folder.parent / "step-000010" / manifest.NAME, folder),
    "a folder for a file": lambda folder: ((folder / "state.json").unlink(), (folder / "state.json").mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_is_noticed_and_the_older_one_is_used(saved, damage):
    damage(saved.folder / "step-000015")
    step, told = loaded(saved)
    assert (step, len(told), steps(saved)) == (10, 1, [5, 10])
    assert len(list(saved.folder.glob("step-000015.corrupt-*"))) == 1


def test_a_damaged_one_that_cannot_be_renamed_is_passed_over(saved):
    cut(saved.folder / "step-000015")

    class ReadOnly(Fast):
        def before(self, operation, path):
            raise OSError(30, "Read-only file system")

    step, told = loaded(saved, ReadOnly)
    assert (step, len(told)) == (10, 1)


def test_all_damaged_is_an_error_now_and_ever_after(saved):
    for path in whole(saved.folder):
        cut(path)
    for _ in range(2):  # the second start sees only what was set aside, and must not begin from nothing either
        with refused(NoValidCheckpoint) as caught:
            loaded(saved)
        assert caught.value.exit_code == 3


def test_a_newer_format_is_refused_and_left_alone(saved, monkeypatch):
    monkeypatch.setattr(checksum, "FORMAT", 2)
    saved.save(20, contents(20))
    monkeypatch.undo()
    with refused(RegardError, "manifest.json", "2"):
        loaded(saved)
    assert steps(saved) == [10, 15, 20]


def test_kept_are_the_newest_the_best_and_the_one_resumed_from(tmp_path):
    checkpoints = Checkpoints(tmp_path, Fast(), keep=2)
    checkpoints.save(1, contents(1))
    checkpoints.newest()
    for step in range(2, 8):
        checkpoints.save(step, contents(step), best=3 if step >= 3 else None)
    assert steps(checkpoints) == [1, 3, 6, 7]
    checkpoints.save(8, contents(8), best=3, finished=True)
    assert steps(checkpoints) == [3, 7, 8]  # as if it had never been resumed
    assert not [p for p in tmp_path.iterdir() if ".removing" in p.name]


def test_what_a_kill_behind_a_save_left_undone_is_done(tmp_path):
    checkpoints = Checkpoints(tmp_path, Fast(), keep=2)
    for step in range(1, 4):
        write_folder(tmp_path / checkpoint.name(step), contents(step), Fast())
    (tmp_path / "latest").write_text("step-000002\n")
    checkpoints.settle(checkpoints.newest())
    assert steps(checkpoints) == [2, 3]
    assert (tmp_path / "latest").read_text() == "step-000003\n"


def test_saving_a_step_twice_keeps_a_whole_one_and_mends_a_damaged_one(saved):
    saved.save(15, contents(99))
    assert (
        verified_state(saved.newest())["step"] == 15
    )  # a step's checkpoint is a function of the step: the first stands
    cut(saved.folder / "step-000015")
    saved.save(15, contents(15))
    assert saved.newest().name == "step-000015"
    assert len(list(saved.folder.glob("*.corrupt-*"))) == 1


def test_sweep_removes_only_remains(saved):
    for remains in ("step-000020.partial-ab", "step-000001.removing-cd", ".latest.partial-ef"):
        (saved.folder / remains).mkdir()
        (saved.folder / remains / "x").write_text("x")
    (saved.folder / "step-000003.corrupt-now").mkdir()
    saved.sweep()
    names = sorted(p.name for p in saved.folder.iterdir())
    assert names == ["latest", "step-000003.corrupt-now", "step-000005", "step-000010", "step-000015"]


def some():
    generator = torch.Generator().manual_seed(1)
    return {
        "b.weight": torch.randn(3, 5, generator=generator),
        "a": torch.tensor(7),
        "half": torch.randn(7, generator=generator).bfloat16(),
        "turned": torch.randn(4, 6, generator=generator).t(),
        "none": torch.zeros(0, 3),
        "double": torch.randn(2, dtype=torch.float64, generator=generator),
        "is": torch.tensor([True, False]),
    }


def test_the_library_reads_what_we_write_we_what_it_writes_and_a_cut_file_is_damaged(tmp_path):
    place = tmp_path / "x"
    raw = b"".join(bytes(chunk) for chunk in store.chunks(some(), {"step": "3"}))
    for write in (
        lambda: place.write_bytes(raw),
        lambda: save_file({name: t.contiguous() for name, t in some().items()}, place),
    ):
        write()
        found = checkpoint.load(place)
        assert found.keys() == some().keys()
        for name, tensor in some().items():
            assert_close(found[name], tensor, rtol=0, atol=0)
    place.write_bytes(raw)
    with safe_open(place, "pt") as file:
        assert file.metadata() == {"step": "3", "format": str(FORMAT)}
    place.write_bytes(raw[:-1])
    with refused(Damaged, "x"):
        checkpoint.load(place)
    place.unlink()
    os.mkfifo(place)  # which nobody waits for
    with refused(Damaged, "x"):
        checkpoint.load(place)
    assert store.to_bytes(some()) == b"".join(bytes(chunk) for chunk in store.chunks(some()))


@pytest.mark.parametrize("written", ["9" * 5000, "2"])
def test_a_newer_format_is_refused_with_a_short_sentence(tmp_path, written):
    save_file({"a": torch.zeros(1)}, tmp_path / "x", {"format": "pt"})
    assert checkpoint.load(tmp_path / "x").keys() == {"a"}
    save_file({"a": torch.zeros(1)}, tmp_path / "x", {"format": written})
    with refused(RegardError, "x") as caught:
        checkpoint.load(tmp_path / "x")
    assert len(str(caught.value)) < 300


def test_averaged_weights_are_taken_where_a_checkpoint_has_them_and_what_does_not_fit_is_said(tmp_path):
    play = Play(tmp_path / "m", recipe(steps=15, ema=0.5))
    play.fit()
    place = whole(play.output / "training" / "checkpoints")[-1]
    averages, raw = (checkpoint.load(place / f"{name}.safetensors") for name in ("ema", "weights"))
    found = weights(place)
    assert torch.equal(found["norm.bias"], averages["norm.bias"])
    assert torch.equal(found["seen"], raw["seen"])
    with refused(UsageError, "absent"):
        weights(tmp_path / "absent")
    (tmp_path / "x").write_bytes(b"nonsense")
    with refused(Damaged, "x"):
        weights(tmp_path / "x")
