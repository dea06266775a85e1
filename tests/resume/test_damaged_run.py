"""One flipped bit or one cut in any file of an unfinished run: it ends with the same bits, or says what is damaged."""

import os
import random
import shutil
from pathlib import Path

import pytest

from regard.config import checksum
from regard.system.errors import Damaged, RegardError, Stopped
from regard.training.checkpoints import manifest, resolved
from tests.refusals import refused
from tests.resume.small_runs import results, train
from tests.training.toy import Counting, Fast, StopAt, flip, whole


@pytest.fixture(scope="module")
def stopped(corpus, tmp_path_factory):
    """A run stopped behind step 3 of 4."""
    output, flag = tmp_path_factory.mktemp("stopped") / "model", StopAt(3)
    with pytest.raises(Stopped):
        train(corpus, output, flag.reporter, should_stop=flag)
    return output


@pytest.fixture(scope="module")
def end(corpus, stopped, tmp_path_factory):
    """How it ends where nothing is damaged."""
    output = Path(shutil.copytree(stopped, tmp_path_factory.mktemp("end") / "model"))
    train(corpus, output)
    return ended(output)


def ended(output):
    """Everything a run leaves that a person or a resumed run reads."""
    training = output / "training"
    found = {f"data/{path.name}": path.read_bytes() for path in (training / "data").iterdir()}
    for part in ("weights", "optimiser", "ema"):
        tensors = whole(training / f"checkpoints/step-000004/{part}.safetensors")
        found |= {f"{part}/{name}": raw for name, raw in tensors.items()}
    return {**results(output), **found}


@pytest.fixture
def run(stopped, tmp_path):
    return Path(shutil.copytree(stopped, tmp_path / "model"))


def cut(path, seed):
    os.truncate(path, random.Random(seed).randrange(path.stat().st_size))


def resumed_or_refused(corpus, output, end, harmed):
    """Resume; what it says must be true of the file that was harmed."""
    reporter, refused = Counting(), ""
    try:
        train(corpus, output, reporter)
    except RegardError as error:
        refused = str(error)
    if refused:
        assert harmed.name in refused
        assert "damaged" in refused or "newer Regard" in refused
        return reporter
    assert ended(output) == end
    if "snapshots" in harmed.parts:  # weights kept for good, which nothing makes again
        with pytest.raises(Damaged):
            manifest.verify(harmed.parent)
    left = [path.name for path in (output / "training").iterdir()]
    assert not [name for name in left if "partial" in name or name.startswith("data.")]
    return reporter


@pytest.mark.one_of(62, 0.05)
@pytest.mark.parametrize(("harm", "seed"), [*((flip, n) for n in range(200)), *((cut, n) for n in range(100))])
def test_a_flipped_bit_or_a_cut(corpus, run, end, harm, seed):
    others = ("metrics.jsonl", "lock")  # a torn line of the log is set aside with what is made again; the lock is empty
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.name not in others)
    harm(harmed := random.Random(f"{harm.__name__} {seed}").choice(files), seed)
    resumed_or_refused(corpus, run, end, harmed)


CHANGED = ("accumulate = 1", "accumulate = 3"), ("tokens = 128", "tokens = 160"), ('schedule = "', 'schedule = "x')


@pytest.mark.parametrize(("old", "new"), [*CHANGED, ("[chosen]", None)])
def test_a_plan_that_is_changed_or_cut_is_taken_from_the_checkpoint(corpus, run, end, old, new):
    path = run / "training" / resolved.NAME
    whole_one = path.read_text()
    assert old in whole_one
    path.write_text(whole_one.replace(old, new) if new else whole_one.partition(old)[0])
    reporter = resumed_or_refused(corpus, run, end, path)
    assert "resolved.toml was lost or damaged; it is taken from the checkpoint step-000003" in reporter.events
    assert path.read_text() == whole_one


@pytest.mark.parametrize(("old", "new"), [('"tokens": ', '"tokens": 1'), ('"<u2"', '">u2"'), ('"sizes"', '"sixes"')])
def test_a_changed_index_is_made_anew(corpus, run, end, old, new):
    path = run / "training" / "data" / "index.json"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    reporter = resumed_or_refused(corpus, run, end, path)
    assert f"{path}: is damaged: its own sha256 does not fit; preparing the data again" in reporter.events


def test_a_whole_plan_wins_over_an_older_checkpoint(corpus, run):
    """Written midway, before the checkpoint that repeats it."""
    fields = resolved.read_fields(run / "training")
    resolved.write(run / "training", {**fields, "chosen.note": 7}, Fast())
    assert resolved.known_fields(run / "training") == ({**fields, "chosen.note": 7}, None)


@pytest.fixture
def other(corpus, tmp_path):
    """Other files of the same names."""
    folder = Path(shutil.copytree(corpus, tmp_path / "other"))
    (folder / "a.de").write_text((folder / "a.de").read_text().replace("treeen", "baumen"))
    return folder


def test_other_files_in_the_place_of_damaged_data_are_refused_and_nothing_is_lost(corpus, run, end, other):
    """The data cannot be made again from other files; with those of then the run still ends the same."""
    path = run / "training" / "data" / "index.json"
    path.write_bytes(path.read_bytes().replace(b"tokens", b"tokfns"))
    before = path.read_bytes()
    for _ in range(2):
        with refused(RegardError, "data"):
            train(other, run)
        assert path.read_bytes() == before
    resumed_or_refused(corpus, run, end, path)


def test_lost_data_is_made_again_from_the_same_files_only(corpus, run, end, other):
    shutil.rmtree(run / "training" / "data")
    with refused(RegardError, "data"):
        train(other, run)
    reporter = resumed_or_refused(corpus, run, end, run / "training" / "data")
    assert f"{run / 'training' / 'data'} is missing; preparing the data again" in reporter.events


def test_a_newer_index_is_refused_and_kept(corpus, run, end):
    path = run / "training" / "data" / "index.json"
    before = path.read_bytes()
    path.write_bytes(checksum.dump_json({**checksum.load_json(before, path), "format": 2}))
    newer = path.read_bytes()
    with refused(RegardError, "index.json"):
        train(corpus, run)
    assert path.read_bytes() == newer
    path.write_bytes(before)
    resumed_or_refused(corpus, run, end, path)


def test_a_damaged_plan_before_the_first_checkpoint_starts_from_the_first_step(corpus, run, end):
    shutil.rmtree(run / "training" / "checkpoints")
    path = run / "training" / resolved.NAME
    path.write_bytes(path.read_bytes()[:-9])
    reporter = resumed_or_refused(corpus, run, end, path)
    assert "resolved.toml was damaged, and no step is saved yet; the run starts from its first step" in reporter.events
    assert reporter.starts[0][0] == 0
