"""Checkpoints: whole or not there, every damage noticed, the right ones kept."""

import os
import random
import shutil

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load as reference_load
from safetensors.torch import save_file
from torch.testing import assert_close

from regard.config import FORMAT
from regard.models import store
from regard.system.errors import Damaged, NoValidCheckpoint, RegardError, UsageError
from regard.training.checkpoints import checkpoint, manifest
from regard.training.checkpoints.checkpoint import Checkpoints, newest, weights, whole, write_folder
from tests.refusals import refused
from tests.training.toy import Fast, Play, recipe


def contents(step):
    generator = random.Random(step)
    state = f'{{"format": 1, "step": {step}}}'.encode()
    tensors = {part: [generator.randbytes(300)] for part in ("weights.safetensors", "optimiser.safetensors")}
    return {**tensors, "state.json": [state]}


@pytest.fixture
def saved(tmp_path):
    """Checkpoints of three steps."""
    checkpoints = Checkpoints(tmp_path, Fast())
    for step in (5, 10, 15):
        checkpoints.save(step, contents(step))
    return checkpoints


def steps(checkpoints):
    return [int(path.name[5:]) for path in whole(checkpoints.folder)]


def fresh(checkpoints):
    told = []
    return Checkpoints(checkpoints.folder, Fast(), report=told.append), told


def test_the_newest_is_loaded_and_a_hint_that_is_a_pipe_replaced(saved):
    loaded = saved.load()
    assert loaded.path.name == "step-000015"
    assert loaded.state["step"] == 15
    assert (saved.folder / "latest").read_text() == "step-000015\n"
    (saved.folder / "latest").unlink()
    os.mkfifo(saved.folder / "latest")
    saved.settle(saved.folder / "step-000015")
    assert (saved.folder / "latest").read_text() == "step-000015\n"


def test_none_where_there_never_was_one(tmp_path):
    assert Checkpoints(tmp_path, Fast()).load() is None
    assert Checkpoints(tmp_path / "absent", Fast()).load() is None
    (tmp_path / "step-000005.partial-abc").mkdir()
    assert Checkpoints(tmp_path, Fast()).load() is None


def test_200_random_bit_flips_are_all_noticed_and_the_older_one_is_used(saved):
    newest, generator = saved.folder / "step-000015", random.Random(11)
    pristine = shutil.copytree(newest, saved.folder / "pristine")
    files = sorted(pristine.iterdir())
    assert len(files) == 4
    for _ in range(200):
        chosen = generator.choice(files)
        raw = bytearray(chosen.read_bytes())
        bit = generator.randrange(8 * len(raw))
        raw[bit // 8] ^= 1 << bit % 8
        (newest / chosen.name).write_bytes(raw)
        checkpoints, told = fresh(saved)
        assert checkpoints.load().state["step"] == 10
        assert len(told) == 1
        assert chosen.name in told[0]
        (aside,) = saved.folder.glob("step-000015.corrupt-*")
        shutil.rmtree(aside)
        shutil.copytree(pristine, newest)
    assert fresh(saved)[0].load().state["step"] == 15


def cut(folder):
    path = folder / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def edited(folder):
    path = folder / manifest.NAME
    path.write_bytes(path.read_bytes().replace(b"weights", b"weightz"))


DAMAGES = {
    "cut": cut,
    "empty": lambda folder: (folder / "state.json").write_bytes(b""),
    "missing": lambda folder: (folder / "optimiser.safetensors").unlink(),
    "extra": lambda folder: (folder / "more.safetensors").write_bytes(b""),
    "swapped": lambda folder: shutil.copy(folder.parent / "step-000010" / "weights.safetensors", folder),
    "no manifest": lambda folder: (folder / manifest.NAME).unlink(),
    "another's manifest": lambda folder: shutil.copy(folder.parent / "step-000010" / manifest.NAME, folder),
    "edited": edited,
    "a folder for a file": lambda folder: ((folder / "state.json").unlink(), (folder / "state.json").mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_is_noticed_and_the_older_one_is_used(saved, damage):
    damage(saved.folder / "step-000015")
    checkpoints, told = fresh(saved)
    assert checkpoints.load().state["step"] == 10
    assert len(told) == 1
    assert steps(checkpoints) == [5, 10]
    assert len(list(saved.folder.glob("step-000015.corrupt-*"))) == 1


def test_latest_is_only_a_hint(saved):
    for hint in ("step-000999\n", "../../elsewhere", ""):
        (saved.folder / "latest").write_text(hint)
        assert fresh(saved)[0].load().state["step"] == 15
    (saved.folder / "latest").unlink()
    assert fresh(saved)[0].load().state["step"] == 15


def test_all_damaged_is_an_error_now_and_ever_after(saved):
    for path in whole(saved.folder):
        cut(path)
    for _ in range(2):  # the second start sees only what was set aside, and must not begin from nothing either
        with pytest.raises(NoValidCheckpoint) as caught:
            fresh(saved)[0].load()
        assert caught.value.exit_code == 3


def test_a_newer_format_is_refused_and_left_alone(saved, monkeypatch):
    monkeypatch.setattr(manifest, "FORMAT", 2)
    saved.save(20, contents(20))
    monkeypatch.undo()
    with refused(RegardError, "manifest.json"):
        fresh(saved)[0].load()
    assert steps(saved) == [10, 15, 20]


def test_kept_are_the_newest_the_best_and_the_one_resumed_from(tmp_path):
    checkpoints = Checkpoints(tmp_path, Fast(), keep=2)
    checkpoints.save(1, contents(1))
    checkpoints.load()
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
    checkpoints.settle(checkpoints.load().path)
    assert steps(checkpoints) == [2, 3]
    assert (tmp_path / "latest").read_text() == "step-000003\n"


def test_names_sort_by_number(tmp_path):
    for step in (5, 999_999, 1_000_000, 20):
        (tmp_path / checkpoint.name(step)).mkdir()
    (tmp_path / "step-000007.corrupt-x").mkdir()
    (tmp_path / "notes").mkdir()
    assert [path.name for path in whole(tmp_path)] == ["step-000005", "step-000020", "step-999999", "step-1000000"]


def test_where_there_is_no_folder_there_is_no_checkpoint(tmp_path, monkeypatch):
    assert whole(tmp_path / "absent") == []
    (tmp_path / "file").write_text("")
    assert whole(tmp_path / "file") == []
    monkeypatch.setattr(type(tmp_path), "exists", lambda path: True)  # it is removed behind the look for it
    assert whole(tmp_path / "absent") == []


def test_saving_a_step_twice_keeps_a_whole_one_and_mends_a_damaged_one(saved):
    saved.save(15, contents(99))
    assert saved.load().state["step"] == 15  # a step's checkpoint is a function of the step: the first stands
    cut(saved.folder / "step-000015")
    saved.save(15, contents(15))
    assert saved.load().path.name == "step-000015"
    assert len(list(saved.folder.glob("*.corrupt-*"))) == 1


def test_sweep_removes_only_remains(saved):
    for remains in ("step-000020.partial-ab", "step-000001.removing-cd", ".latest.partial-ef"):
        (saved.folder / remains).mkdir()
        (saved.folder / remains / "x").write_text("x")
    (saved.folder / "step-000003.corrupt-now").mkdir()
    saved.sweep()
    names = sorted(p.name for p in saved.folder.iterdir())
    assert names == ["latest", "step-000003.corrupt-now", "step-000005", "step-000010", "step-000015"]


def test_a_damaged_one_that_cannot_be_renamed_is_passed_over(saved):
    cut(saved.folder / "step-000015")

    class ReadOnly(Fast):
        def before(self, operation, path):
            raise OSError(30, "Read-only file system")

    told = []
    assert Checkpoints(saved.folder, ReadOnly(), report=told.append).load().state["step"] == 10
    assert len(told) == 1


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


def test_the_library_reads_what_we_write_and_its_format_and_a_cut_file_is_damaged(tmp_path):
    raw = b"".join(bytes(chunk) for chunk in store.chunks(some(), {"step": "3"}))
    found = reference_load(raw)
    assert set(found) == set(some())
    for name, tensor in some().items():
        assert found[name].dtype == tensor.dtype
        assert_close(found[name], tensor, rtol=0, atol=0)
    (tmp_path / "x").write_bytes(raw)
    with safe_open(tmp_path / "x", "pt") as file:
        assert file.metadata() == {"step": "3", "format": str(FORMAT)}
    (tmp_path / "x").write_bytes(raw[:-1])
    with pytest.raises(Damaged):
        checkpoint.load(tmp_path / "x")
    (tmp_path / "x").unlink()
    os.mkfifo(tmp_path / "x")  # which nobody waits for
    with refused(Damaged, "x"):
        checkpoint.load(tmp_path / "x")
    assert store.to_bytes(some()) == b"".join(bytes(chunk) for chunk in store.chunks(some()))


@pytest.mark.parametrize("written", ["9" * 5000, "2"])
def test_a_newer_format_is_refused_with_a_short_sentence(tmp_path, written):
    save_file({"a": torch.zeros(1)}, tmp_path / "x", {"format": "pt"})
    assert checkpoint.load(tmp_path / "x").keys() == {"a"}
    save_file({"a": torch.zeros(1)}, tmp_path / "x", {"format": written})
    with refused(RegardError, "x") as caught:
        checkpoint.load(tmp_path / "x")
    assert len(str(caught.value)) < 300


def test_we_read_what_the_library_writes(tmp_path):
    save_file({name: t.contiguous() for name, t in some().items()}, tmp_path / "x")
    for name, tensor in checkpoint.load(tmp_path / "x").items():
        assert_close(tensor, some()[name], rtol=0, atol=0)


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    play = Play(tmp_path_factory.mktemp("average") / "m", recipe(steps=15))
    play.fit()
    return play.output / "training"


def test_averaged_weights_are_taken_where_a_checkpoint_has_them(tmp_path):
    play = Play(tmp_path / "m", recipe(steps=4, ema=0.5))
    play.fit()
    (place,) = newest(play.output / "training", 1)
    averages, raw = checkpoint.load(place / "ema.safetensors"), checkpoint.load(place / "weights.safetensors")
    found = weights(place)
    assert torch.equal(found["norm.bias"], averages["norm.bias"])
    assert torch.equal(found["seen"], raw["seen"])


def test_what_does_not_fit_is_said(training, tmp_path):
    with refused(UsageError, "absent"):
        weights(tmp_path / "absent")
    with refused(UsageError, "training", "4", "3"):
        newest(training, 4)
    (tmp_path / "x").write_bytes(b"nonsense")
    with pytest.raises(Damaged):
        weights(tmp_path / "x")
