"""Preparing by two processes, of which one is ended or stopped while pairs are scanned, counted or encoded.

The command says so in a sentence, or stops in peace; no process outlives it, nothing stands for prepared data that is
not whole, and the same command makes the bytes of one that was left alone. All are long, for a start of a run takes
seconds; the quick test of a process that is killed is in ``system/test_forks.py``.
"""

import os
import random
import shutil
import signal
import time

import pytest

from regard.runs.demo.grammar.corpus import generate
from regard.system.forks import SAFE
from tests.e2e.conftest import settings
from tests.runs.workers.started import alive, begin, children, gone

pytestmark = pytest.mark.skipif(not SAFE, reason="processes are not copied here")
PASSES = {"scan": 1, "count": 2, "encode": 3}
KINDS = [
    *(("first", number) for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)),
    *(("other", number) for number in (signal.SIGKILL, signal.SIGTERM)),
]
EACH = [(stage, *kind) for stage in PASSES for kind in KINDS]
SMALL = settings(
    "model.d_model=16 model.d_ff=32 model.heads=2 model.encoder_layers=1 model.decoder_layers=1 text.vocabulary=2000 "
    "data.validation=10 data.max_tokens=64 training.tokens=256 training.shards=2 training.product=exact "
    "decoding.max_extra=2"
)


class Prepared:
    """A folder with pairs, and the prepared data of a run that was left alone."""

    def __init__(self, folder, pairs):
        self.folder = folder
        some = list(generate("train", pairs))
        for side, name in (("source", "a.en"), ("target", "a.de")):
            (folder / name).write_text("".join(f"{getattr(pair, side)}\n" for pair in some))
        self.words = ["train", "--source", folder / "a.en", "--target", folder / "a.de", "--steps", 1, "--seed", 1]
        self.words += ["--threads", 1, "--processes", 2, "--device", "cpu", "--despite-check", *SMALL, "--output"]
        self.whole = self.finish(folder / "whole")

    def finish(self, output):
        """Run the command to its end; the prepared data of the run, and its weights."""
        with begin([*self.words, output]) as process:
            _, said = process.communicate(timeout=200)
        assert process.returncode == 0, said
        return {**contents(output / "training" / "data"), "model": (output / "model.safetensors").read_bytes()}


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return Prepared(tmp_path_factory.mktemp("few"), 15_000)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return Prepared(tmp_path_factory.mktemp("many"), 100_000)


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize(("stage", "which", "number"), EACH)
def test_ended_at_work(few, stage, which, number):
    end_and_rerun(few, stage, which, number, 0)


@pytest.mark.long(minutes=3)
@pytest.mark.parametrize(("stage", "which", "number"), EACH)
def test_ended_at_any_moment(many, stage, which, number):
    end_and_rerun(many, stage, which, number, 0.4 * random.Random(f"{stage} {which} {number}").random())


def end_and_rerun(given, stage, which, number, seconds):
    """Send a signal so many seconds after the processes of a pass began, and run the same command again."""
    output = given.folder / "out"
    shutil.rmtree(output, ignore_errors=True)
    with begin([*given.words, output]) as first:
        workers = await_pass(first, PASSES[stage])
        time.sleep(seconds)
        if all(map(alive, workers)):
            os.kill(first.pid if which == "first" else workers[0], number)
        _, said = first.communicate(timeout=100)
    assert "Traceback" not in said
    if which == "first":
        assert first.returncode in (0, -number if number == signal.SIGKILL else 75), said
    elif first.returncode != 0:  # else it was done with its work
        assert first.returncode == 1, said
        wanted = f"regard: a process of this command was ended by {number.name}; rerun the same command"
        assert said.splitlines()[-1] == wanted
    assert gone(workers, 20)
    data = output / "training" / "data"
    if data.exists():  # a whole one, which the signal came too late for
        assert contents(data).items() <= given.whole.items()
    assert given.finish(output) == given.whole


def await_pass(first, number):
    """The two processes of a pass over the pairs, as soon as both are there."""
    seen, deadline = [], time.monotonic() + 100
    while first.poll() is None and time.monotonic() < deadline:
        now = children(first.pid)
        if len(now) == 2 and now not in seen:
            seen.append(now)
            if len(seen) == number:
                return now
        time.sleep(0.001)
    raise AssertionError(f"{len(seen)} passes were seen; {first.poll()}")
