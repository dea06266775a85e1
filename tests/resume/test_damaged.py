"""One flipped bit or one cut in any file of a run: it ends with the same bits, or says what is damaged.

A finished model folder with a damaged or lost file is written anew by the run it came from.
"""

import os
import random
import shutil
from functools import partial
from pathlib import Path

import pytest

from regard.config import checksum
from regard.system.errors import Damaged, NoValidCheckpoint, RegardError, Stopped
from regard.tasks.model_folder import load
from regard.tasks.training import model_writer
from regard.training.checkpoints import manifest, resolved
from regard.training.progress import Best, Progress
from tests.refusals import refused
from tests.resume.small_runs import killed, killed_and_resumed, operations, results, train
from tests.training.toy import Fast, StopAt, flip, in_child, whole

pytestmark = pytest.mark.usefixtures("counted")
MODEL = "model.safetensors"


@pytest.fixture(scope="module")
def stopped(corpus, tmp_path_factory):
    """A run stopped behind step 3 of 4, and how it ends where nothing is damaged."""
    output = tmp_path_factory.mktemp("stopped") / "model"
    with pytest.raises(Stopped):
        train(corpus, output, StopAt(3))
    end = Path(shutil.copytree(output, tmp_path_factory.mktemp("end") / "model"))
    train(corpus, end)
    return output, ended(end)


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
    return Path(shutil.copytree(stopped[0], tmp_path / "model"))


@pytest.fixture
def resume(corpus, run, stopped):
    """Resumes the run; what it says must be true of the file that was harmed. The reporter."""

    def resumed_or_refused(harmed):
        flag, said = StopAt(), ""
        try:
            train(corpus, run, flag)
        except RegardError as error:
            said = str(error)
        if said:
            assert harmed.name in said
            assert "damaged" in said or "newer Regard" in said
            return flag.reporter
        assert ended(run) == stopped[1]
        if "snapshots" in harmed.parts:  # weights kept for good, which nothing makes again
            with pytest.raises(Damaged):
                manifest.verify(harmed.parent)
        left = [path.name for path in (run / "training").iterdir()]
        assert not [name for name in left if "partial" in name or name.startswith("data.")]
        return flag.reporter

    return resumed_or_refused


def cut(path, seed=0):
    os.truncate(path, random.Random(seed).randrange(path.stat().st_size))


@pytest.mark.one_of(150, 0.05)
@pytest.mark.parametrize(("harm", "seed"), [*((flip, n) for n in range(200)), *((cut, n) for n in range(100))])
def test_a_flipped_bit_or_a_cut(run, resume, harm, seed):
    others = ("metrics.jsonl", "lock")  # a torn line of the log is set aside with what is made again; the lock is empty
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.name not in others)
    harm(harmed := random.Random(f"{harm.__name__} {seed}").choice(files), seed)
    resume(harmed)


CHANGED = ("accumulate = 1", "accumulate = 3"), ("tokens = 128", "tokens = 160"), ('schedule = "', 'schedule = "x')


@pytest.mark.one_of(6)
@pytest.mark.parametrize("harm", [*CHANGED, "[chosen]", b"", b"format =", None])
def test_a_plan_that_is_changed_cut_or_lost_is_taken_from_the_checkpoint(run, resume, harm):
    path = run / "training" / resolved.NAME
    whole_one = path.read_text()
    if harm is None:
        path.unlink()
    elif isinstance(harm, bytes):
        path.write_bytes(harm)
    elif isinstance(harm, str):
        path.write_text(whole_one.partition(harm)[0])
    else:
        assert harm[0] in whole_one
        path.write_text(whole_one.replace(*harm))
    wanted = "resolved.toml was lost or damaged; it is taken from the checkpoint step-000003"
    assert wanted in resume(path).events
    assert path.read_text() == whole_one


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("old", "new"), [('"tokens": ', '"tokens": 1'), ('"<u2"', '">u2"'), ('"sizes"', '"sixes"')])
def test_a_changed_index_is_made_anew(run, resume, old, new):
    path = run / "training" / "data" / "index.json"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert f"{path}: is damaged: its own sha256 does not fit; preparing the data again" in resume(path).events


def test_a_whole_plan_wins_over_an_older_checkpoint(run):
    """Written midway, before the checkpoint that repeats it."""
    fields = resolved.read_fields(run / "training")
    resolved.write(run / "training", {**fields, "chosen.note": 7}, Fast())
    assert resolved.known_fields(run / "training") == ({**fields, "chosen.note": 7}, None)


@pytest.mark.one_of(2, minutes=0.05)
@pytest.mark.parametrize("lost", [False, True])
def test_data_is_made_again_from_the_same_files_only_and_nothing_is_lost(corpus, run, resume, tmp_path, lost):
    """From other files of the same names it cannot be; with those of then the run still ends the same."""
    other = Path(shutil.copytree(corpus, tmp_path / "other"))
    (other / "a.de").write_text((other / "a.de").read_text().replace("treeen", "baumen"))
    data = run / "training" / "data"
    if lost:
        shutil.rmtree(data)
        with refused(RegardError, "data"):
            train(other, run)
        assert f"{data} is missing; preparing the data again" in resume(data).events
        return
    path = data / "index.json"
    path.write_bytes(before := path.read_bytes().replace(b"tokens", b"tokfns"))
    for _ in range(2):
        with refused(RegardError, "data"):
            train(other, run)
        assert path.read_bytes() == before
    resume(path)


def test_a_newer_index_is_refused_and_kept(corpus, run, resume):
    path = run / "training" / "data" / "index.json"
    before = path.read_bytes()
    path.write_bytes(checksum.dump_json({**checksum.load_json(before, path), "format": 2}))
    newer = path.read_bytes()
    with refused(RegardError, "index.json"):
        train(corpus, run)
    assert path.read_bytes() == newer
    path.write_bytes(before)
    resume(path)


def test_a_damaged_plan_before_the_first_checkpoint_starts_from_the_first_step(run, resume):
    shutil.rmtree(run / "training" / "checkpoints")
    path = run / "training" / resolved.NAME
    path.write_bytes(path.read_bytes()[:-9])
    reporter = resume(path)
    assert "resolved.toml was damaged, and no step is saved yet; the run starts from its first step" in reporter.events
    assert reporter.starts[0][0] == 0


@pytest.fixture
def finished(never, tmp_path):
    """A copy of the finished model to break."""
    return Path(shutil.copytree(never[2], tmp_path / "model"))


def mended(corpus, output):
    """What was said while a start mends the folder, in a process of its own."""
    told = output.parent / "told"

    def work():
        flag = StopAt()
        train(corpus, output, flag)
        told.write_text("\n".join(flag.reporter.events))

    assert in_child(work) == 0
    return [line for line in told.read_text().splitlines() if "rewrite" in line or "rewritten" in line]


HARMS = [*((harm, name) for harm in (flip, Path.unlink) for name in (manifest.NAME, MODEL)), (cut, "recipe.toml")]


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("harm", "name"), [*HARMS, (flip, "tokenizer.source.json")])
def test_after_the_run(corpus, never, finished, harm, name):
    harm(finished / name)
    (said,) = mended(corpus, finished)
    assert said.startswith(str(finished / name))
    assert "the model folder is rewritten from step-00000" in said
    assert results(finished) == never[0]
    assert mended(corpus, finished) == []


MOMENTS = [
    (MODEL, "create .card.md", "rewrit"),  # the last card's file is that of the final scores
    (manifest.NAME, "create .card.md", "rewrit"),
    (manifest.NAME, "mkdir step-000002", "training rewrites the model folder"),
]


@pytest.mark.long(minutes=0.03)
@pytest.mark.parametrize(("name", "before", "said"), MOMENTS)
def test_before_the_final_scores_and_before_the_first_checkpoint(corpus, never, tmp_path, name, before, said):
    output = tmp_path / "model"
    numbers = [number for number, seen in enumerate(never[1], 1) if seen == before]
    killed(partial(train, corpus, output), numbers[0] if "mkdir" in before else numbers[-1])
    assert "* BLEU" not in (output / "card.md").read_text()
    flip(output / name)
    (line,) = mended(corpus, output)
    assert said in line
    assert results(output) == never[0]


def test_where_its_checkpoint_is_lost_an_older_one_goes_on(corpus, never, finished):
    flip(finished / MODEL)
    shutil.rmtree(finished / "training" / "checkpoints" / "step-000004")
    (said,) = mended(corpus, finished)
    assert said.endswith("from step-000002")
    assert results(finished) == never[0]


def test_without_the_best_checkpoint_it_says_what_to_do(corpus, finished, monkeypatch):
    flip(finished / MODEL)
    before = {path.name: path.read_bytes() for path in finished.iterdir() if path.is_file()}
    monkeypatch.setattr(model_writer, "load_progress", lambda training: Progress(4, best=Best(3, "loss", 2.5)))
    with refused(NoValidCheckpoint, "step-000003"):
        train(corpus, finished)
    assert {path.name: path.read_bytes() for path in finished.iterdir() if path.is_file()} == before


@pytest.mark.long(minutes=0.05)
@pytest.mark.parametrize("most", [3, pytest.param(None, marks=pytest.mark.long(2))])
def test_killed_while_it_is_mended(corpus, never, finished, tmp_path, most):
    flip(finished / MODEL)
    damaged = shutil.copytree(finished, tmp_path / "damaged")
    numbers = range(1, len(operations(partial(train, corpus), finished)) + 1)
    for number in random.Random(7).sample(numbers, most or len(numbers)):
        output = Path(shutil.copytree(damaged, tmp_path / f"model-{number}"))
        killed_and_resumed(partial(train, corpus), output, number, never[0])
    load(finished)
