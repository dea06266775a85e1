"""Steps made while measuring are the run's own: kept or, after a kill, made again, it is one run, bit by bit."""

import random
from functools import partial

import pytest

from regard.runs import train as training
from regard.system.errors import Stopped
from regard.training import budget, run
from regard.training.run import Hooks
from regard.training.update import MeasuredSteps
from tests.refusals import refused
from tests.resume.small_runs import FATAL, SEEN, SETTINGS, results
from tests.training.toy import StopAt, in_child, lines

pytestmark = pytest.mark.usefixtures("counted")
MORE = ["training.schedule=noam", "training.warmup=1", "training.validate_every=5", "training.save_every=4"]


class Ticking:
    """A clock that goes on by a second whenever it is read; in a minute that are two steps of measuring."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def train(corpus, output, stop=None, fatal=None):
    """Train; ``fatal`` is the operation the process dies before. The steps that are kept, if any are."""
    taken, clock, stop = [], Ticking(), stop or StopAt()

    def noted(kept, optimiser, give=MeasuredSteps.give):
        taken.append(len(kept.made))
        give(kept, optimiser)

    def work():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training, "Hooks", partial(Hooks, clock=clock))
            patch.setattr(MeasuredSteps, "give", noted)
            patch.setattr(run, "_SNAPSHOTS", (50, 100))  # the first ones of so short a run would be due at once
            patch.setattr(budget, "_AS_BEFORE", 1e9)  # a clock that was killed decides otherwise midway
            SEEN.clear()
            FATAL.extend([fatal] if fatal else [])
            files, options = (corpus / "a.en", corpus / "a.de"), {"threads": 1, "device": "cpu", "minutes": 1.0}
            settings = [*SETTINGS, *MORE]
            training.train(*files, output, reporter=stop.reporter, should_stop=stop, settings=settings, **options)

    if fatal:
        assert in_child(work) == 137
    else:
        work()
    return taken


@pytest.fixture(scope="module")
def whole(corpus, counted, tmp_path_factory):
    """A run that kept its first steps, and its file operations."""
    output = tmp_path_factory.mktemp("whole") / "model"
    assert train(corpus, output) == [2]
    return output, list(SEEN)


def same(output, whole):
    assert results(output) == results(whole)
    assert lines(output / "training" / "metrics.jsonl") == lines(whole / "training" / "metrics.jsonl")


def test_every_step_is_in_the_log_once(whole):
    made = [line["step"] for line in lines(whole[0] / "training" / "metrics.jsonl") if line["kind"] == "step"]
    assert made == list(range(1, len(made) + 1))
    assert len(made) > 10


def test_stopped_behind_them_it_goes_on(corpus, whole, tmp_path):
    with refused(Stopped, None, "2"):
        train(corpus, tmp_path / "model", StopAt(2))
    assert train(corpus, tmp_path / "model") == []
    same(tmp_path / "model", whole[0])


def test_killed_before_they_are_saved_they_are_made_again(corpus, whole, tmp_path):
    output, operations = whole
    fixed = operations.index("rename .resolved.toml")
    first = next(n for n, operation in enumerate(operations) if operation == "rename step-000004")
    for number in (fixed + 2, first + 1):
        place = tmp_path / f"{number}"
        train(corpus, place, fatal=number)
        assert not list((place / "training").glob("checkpoints/step-??????"))
        assert train(corpus, place) == []
        same(place, output)


@pytest.mark.long(minutes=0.5)
def test_killed_anywhere(corpus, whole, tmp_path):
    output, operations = whole
    for number in random.Random(7).sample(range(1, len(operations) + 1), 12):
        place = tmp_path / f"{number}"
        train(corpus, place, fatal=number)
        train(corpus, place)
        same(place, output)
