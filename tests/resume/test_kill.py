"""Killed before any file operation, or while writing, a run resumes to the bits of one that was not."""

import random
import shutil

import pytest

from regard.system.errors import RegardError
from tests.training.toy import Count, Killer, Play, assert_same, in_child, recipe

SETTINGS = {"steps": 8, "validate_every": 4, "save_every": 2, "keep": 2, "ema": 0.9, "accumulate": 2}


@pytest.fixture(scope="module")
def never(tmp_path_factory):
    """The run that is never killed, and all its file operations."""
    play = Play(tmp_path_factory.mktemp("never") / "model", recipe(**SETTINGS))
    files = Count()
    play.fit(files)
    return play.ended(), files.operations


def killed(tmp_path, number, middle, never):
    play = Play(tmp_path / f"model-{number}-{middle}", recipe(**SETTINGS))
    assert in_child(lambda: play.fit(Killer(number, middle))) == 137
    resumed(play, never)
    shutil.rmtree(play.output)


def resumed(play, never):
    play.fit()
    assert_same(play, never)
    checkpoints = play.output / "training" / "checkpoints"
    assert [p.name for p in checkpoints.iterdir() if ".partial" in p.name or ".removing" in p.name] == []
    snapshots = sorted(p.name for p in (play.output / "training" / "snapshots").iterdir())
    assert snapshots == ["step-000001", "step-000002", "step-000004"]


def one_save(operations):
    """The numbers of all operations from one checkpoint's first file to the removal of a surplus one."""
    first = next(i for i, one in enumerate(operations) if " ".join(one).startswith("mkdir step-000006.partial"))
    last = next(i for i, (what, _) in enumerate(operations[first:], first) if what == "rmdir")
    return range(first + 1, last + 2)


def test_the_operations_of_a_save_are_all_numbered(never):
    _, operations = never
    save = [operations[n - 1][0] for n in one_save(operations)]
    assert {"mkdir", "create", "write", "fsync", "rename", "fsync folder", "unlink", "rmdir"} == set(save)
    assert len(save) >= 30


@pytest.mark.parametrize("share", range(4))
@pytest.mark.one_of(4, minutes=0.1)
def test_killed_before_every_operation_of_a_checkpoint(tmp_path, never, share):
    ended, operations = never
    for number in list(one_save(operations))[share::4]:
        killed(tmp_path, number, False, ended)


def test_killed_in_mid_write_of_every_file_of_a_checkpoint(tmp_path, never):
    ended, operations = never
    writes = [n for n in one_save(operations) if operations[n - 1][0] == "write"]
    assert len(writes) >= 12
    for number in random.Random(2).sample(writes, 10):
        killed(tmp_path, number, True, ended)


def test_killed_anywhere_in_the_run(tmp_path, never):
    ended, operations = never
    for number in random.Random(6).sample(range(1, len(operations) + 1), 8):
        killed(tmp_path, number, False, ended)


@pytest.mark.long(0.5)
@pytest.mark.parametrize("middle", [False, True])
@pytest.mark.parametrize("share", range(8))
def test_killed_before_every_operation_and_in_every_write_of_the_run(tmp_path, never, share, middle):
    ended, operations = never
    for number in range(1 + share, len(operations) + 1, 8):
        if not middle or operations[number - 1][0] == "write":
            killed(tmp_path, number, middle, ended)


def test_killed_again_and_again(tmp_path, never):
    """Each start is killed some operations later; the work still ends, as if nothing had happened."""
    ended, _ = never
    play, generator, code, starts = Play(tmp_path / "model", recipe(**SETTINGS)), random.Random(8), 137, 0
    while code == 137:
        fatal = generator.randrange(40, 120)
        code = in_child(lambda fatal=fatal: play.fit(Killer(fatal)))
        starts += 1
        assert starts < 40
    assert code == 0
    assert starts >= 4
    resumed(play, ended)


def test_an_error_in_the_child_is_not_taken_for_a_kill(tmp_path):
    def fails():
        raise RegardError("no")

    assert in_child(fails) == 1


@pytest.mark.one_of(6)
@pytest.mark.parametrize("number", range(1, 17))
def test_killed_while_resuming_a_killed_run_leaves_nothing_half_made(tmp_path, never, number):
    """The next start first cuts the log, which goes beyond its checkpoint; a kill there leaves half of a file."""
    ended, operations = never
    play = Play(tmp_path / "model", recipe(**SETTINGS))
    assert in_child(lambda: play.fit(Killer(one_save(operations)[3]))) == 137
    training = play.output / "training"
    assert any('"step": 6' in line for line in (training / "metrics.jsonl").read_text().splitlines())
    assert in_child(lambda: play.fit(Killer(number, middle=True))) in (0, 137)  # only what writes has a middle
    assert in_child(lambda: play.fit(Killer(one_save(operations)[3]))) in (0, 137)
    assert in_child(lambda: play.fit(Killer(number))) in (0, 137)
    resumed(play, ended)
    assert [path.name for path in training.iterdir() if "partial" in path.name] == []
    tails = sorted(path.read_bytes() for path in training.glob("metrics.after-*.jsonl"))
    assert len(tails) == len(set(tails))
